// A stand-in for NCCL between processes of one machine, through shared memory. Sends wait for their
// receivers, operations of a communicator run one after the other whatever their streams, and kernels occupy
// multiprocessors until they end: programs that would hang for large messages or on a small GPU hang here as
// well.
#include <fmt/format.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/stand_in/memory.hpp"
#include "tests/stand_in/multiprocessors.hpp"
#include "tests/stand_in/nccl_profiler.hpp"
#include "tests/stand_in/numbers.hpp"
#include "tests/stand_in/observed.hpp"
#include "tests/stand_in/settings.hpp"
#include "tests/stand_in/shared.hpp"
#include "tests/stand_in/streams.hpp"

using namespace stand_in;

namespace {

constexpr int kDefaultBlocks = 16;

Multiprocessors multiprocessors;

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclUint8:
    case ncclInt8:
      return 1;
    default:
      violation(fmt::format("NCCL's data type {} is not in the stand-in", static_cast<int>(type)));
  }
}

const char* name_of(ncclDataType_t type) {
  return type == ncclFloat32    ? "ncclFloat32"
         : type == ncclFloat16  ? "ncclFloat16"
         : type == ncclBfloat16 ? "ncclBfloat16"
                                : "ncclInt8";
}

Number number_type(ncclDataType_t type) {
  return type == ncclFloat32 ? Number::fp32 : type == ncclFloat16 ? Number::fp16 : Number::bf16;
}

struct Message {
  bool send = false;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
};

}  // namespace

struct ncclComm {
  void* profiled = nullptr;  // the profiler plugin's context
  int members = 0, member = 0, device = 0, blocks = kDefaultBlocks;
  bool blocking = true, finalized = false;
  std::atomic<int> registered{0};  // registered buffers
  std::unique_ptr<SharedMemory> memory;
  std::atomic<int> state{ncclSuccess};
  std::atomic<bool> aborted{false};
  std::mutex mutex;  // protects `last`
  std::shared_ptr<Completion> last;
  long shown = 0;                                          // chunks of collectives so far
  long sent[kMostMembers] = {}, taken[kMostMembers] = {};  // chunks of messages, by peer
  bool until(const std::function<bool()>& reached) { return wait_until(reached, aborted); }
};

namespace {

// Counts the operations of this process and applies settings().fault when its number is reached.
void meet_fault(ncclComm& comm) {
  static std::atomic<long> operations{0};
  static std::atomic<int> own_member{-1};
  int nobody = -1;
  own_member.compare_exchange_strong(nobody, comm.member);
  if (settings().fault.empty() || settings().fault_member != own_member) return;
  if (++operations != settings().fault_number) return;
  if (settings().fault == "die") kill(getpid(), SIGKILL);
  if (settings().fault == "hang") comm.until([] { return false; });
}

ncclResult_t enqueue(ncclComm& comm, cudaStream_t stream, const std::string& name,
                     const std::function<void()>& work) {
  if (comm.state == ncclInProgress)
    violation("a communicator was used while an operation of it is in progress");
  if (comm.aborted || comm.finalized) violation("a communicator was used after its end");
  if (comm.state != ncclSuccess) return static_cast<ncclResult_t>(comm.state.load());
  expect_stream(stream, "an operation of NCCL");
  const auto done = std::make_shared<Completion>();
  std::shared_ptr<Completion> before;
  if (!is_capturing(stream)) {  // a graph has an order of its own and might never be launched
    const std::lock_guard lock(comm.mutex);
    before = comm.last;
    comm.last = done;
  }
  const auto issue = [&comm, stream, name, work, before, done] {
    push_kernel(stream, name, [&comm, work, before, done] {
      if (before) before->wait();
      if (multiprocessors.take(comm.blocks, comm.aborted)) {
        meet_fault(comm);
        if (!comm.aborted) work();
        multiprocessors.give(comm.blocks);
      }
      done->end();
    });
  };
  if (comm.blocking) {
    issue();
    return ncclSuccess;
  }
  comm.state = ncclInProgress;  // a separate thread issues it, as in NCCL
  const int device = current_device("an operation of NCCL");
  std::thread([&comm, issue, device] {
    choose_device(device);
    delay();
    issue();
    comm.state = ncclSuccess;
  }).detach();
  return ncclInProgress;
}

// The part of a collective's result that a chunk covers.
struct Shown {
  std::size_t first = 0, count = 0;  // in elements
};
// Runs a collective chunk by chunk: `fill` writes this member's chunk to its slot in shared memory and, once
// all members have written theirs, `read` reads them.
template <class Fill, class Read>
ncclResult_t collective(ncclComm& comm, cudaStream_t stream, const std::string& function, std::size_t count,
                        std::size_t element_bytes, Fill fill, Read read) {
  return enqueue(comm, stream, "ncclDevKernel_" + function, [&comm, count, element_bytes, fill, read] {
    SharedState& state = comm.memory->state();
    const std::size_t most = std::max<std::size_t>(kChunk / element_bytes, 1);
    for (std::size_t first = 0; first < count; first += most) {
      const Shown chunk{first, std::min(most, count - first)};
      const long number = ++comm.shown;
      const auto all = [&](const std::atomic<long>* counters, long at_least) {
        return comm.until([&comm, counters, at_least] {
          return std::all_of(counters, counters + comm.members, [&](const auto& c) { return c >= at_least; });
        });
      };
      if (!all(state.read, number - 1)) return;
      fill(comm.memory->shown_by(comm.member), chunk);
      state.shown[comm.member] = number;
      if (!all(state.shown, number)) return;
      read(chunk);
      state.read[comm.member] = number;
    }
  });
}

void reduce_shown(const ncclComm& comm, ncclRedOp_t reduction, ncclDataType_t type, std::size_t offset,
                  std::size_t count, std::byte* to) {
  if (reduction != ncclSum && reduction != ncclMax)
    violation("a reduction that is neither ncclSum nor ncclMax");
  const std::size_t each = bytes_of(type);
  for (std::size_t i = 0; i < count; ++i) {
    const auto shown = [&](int member) {
      return load(comm.memory->shown_by(member) + (offset + i) * each, number_type(type));
    };
    float result = shown(0);
    for (int m = 1; m < comm.members; ++m)
      result = reduction == ncclSum ? result + shown(m) : std::max(result, shown(m));
    store(to + i * each, number_type(type), result);
  }
}

// Sends and receives all messages of a group concurrently.
ncclResult_t exchange(ncclComm& comm, cudaStream_t stream, std::vector<Message> messages) {
  return enqueue(comm, stream, "ncclDevKernel_SendRecv", [&comm, messages = std::move(messages)] {
    struct Going {
      Message message;
      std::size_t done = 0;
      bool ended = false, waits = false;
    };
    std::vector<Going> all;
    for (const Message& message : messages) all.push_back({message});
    const auto advance = [&](Going& going) {
      const Message& m = going.message;
      SharedState::Mailbox& box = m.send ? comm.memory->state().mail[comm.member][m.peer]
                                         : comm.memory->state().mail[m.peer][comm.member];
      const std::size_t bytes = std::min(kChunk, m.bytes - going.done);
      if (m.send) {
        if (box.taken < comm.sent[m.peer]) return;  // the receiver has not taken the last chunk yet
        if (going.done == m.bytes && going.waits) {
          going.ended = true;
          return;
        }
        std::memcpy(comm.memory->mail(comm.member, m.peer), m.data + going.done, bytes);
        box.sent = ++comm.sent[m.peer];
        going.waits = true;
      } else {
        if (box.sent <= comm.taken[m.peer]) return;
        std::memcpy(m.data + going.done, comm.memory->mail(m.peer, comm.member), bytes);
        box.taken = ++comm.taken[m.peer];
        going.ended = going.done + bytes == m.bytes;
      }
      going.done += bytes;
    };
    comm.until([&] {
      // Messages in the same direction with the same peer stay in order.
      std::map<std::pair<bool, int>, bool> busy;
      for (Going& going : all) {
        bool& taken = busy[{going.message.send, going.message.peer}];
        if (going.ended || taken) continue;
        advance(going);
        taken = !going.ended;
      }
      return std::all_of(all.begin(), all.end(), [](const Going& g) { return g.ended; });
    });
  });
}

// The messages that a thread has issued between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  struct Part {
    ncclComm* comm = nullptr;
    cudaStream_t stream = nullptr;
    std::vector<Message> messages;
  };
  std::vector<Part> parts;
};
thread_local Group group;

ncclResult_t message(ncclComm& comm, cudaStream_t stream, const Message& m) {
  expect_range(m.data, m.bytes, m.send ? "ncclSend" : "ncclRecv");
  if (m.peer < 0 || m.peer >= comm.members) return ncclInvalidArgument;
  if (group.depth == 0) return exchange(comm, stream, {m});
  const auto part = std::find_if(group.parts.begin(), group.parts.end(),
                                 [&](const Group::Part& p) { return p.comm == &comm && p.stream == stream; });
  if (part == group.parts.end())
    group.parts.push_back({&comm, stream, {m}});
  else
    part->messages.push_back(m);
  return ncclSuccess;
}

void expect_no_group() {
  if (group.depth > 0) violation("a collective in a group, which the stand-in does not have");
}

std::string device_of(int device) {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  const char* other = std::getenv("NCCL_HOSTID");
  return fmt::format("{} GPU {}", other != nullptr ? other : host, device);
}

// Waits until all members have joined; sets ncclInvalidUsage if another member uses the same GPU.
void connect(ncclComm& comm, const std::string& name) {
  comm.memory = std::make_unique<SharedMemory>(name, comm.members);
  SharedState& state = comm.memory->state();
  const std::string own = device_of(comm.device);
  std::strncpy(state.device[comm.member], own.c_str(), sizeof state.device[0] - 1);
  ++state.here;
  if (!comm.until([&] { return state.here >= comm.members; })) return;
  for (int m = 0; m < comm.members; ++m)
    if (m != comm.member && own == state.device[m]) {
      comm.state = ncclInvalidUsage;
      return;
    }
  ++state.gone;
  if (!comm.until([&] { return state.gone >= comm.members; })) return;
  comm.memory->unlink();
  comm.state = ncclSuccess;
}

// Writes NCCL's log to standard output unless NCCL_DEBUG_FILE names a file (NCCL User Guide, "Environment
// Variables").
void log_start(const ncclComm& comm) {
  const char* const level = std::getenv("NCCL_DEBUG");
  if (level == nullptr || std::strcmp(level, "INFO") != 0) return;
  const char* const path = std::getenv("NCCL_DEBUG_FILE");
  std::FILE* const log = path == nullptr ? stdout : std::fopen(path, "w");
  if (log == nullptr) return;
  std::fprintf(log, "gpu-stand-in:%d [%d] NCCL INFO ncclCommInitRankConfig rank %d nranks %d\n", getpid(),
               comm.device, comm.member, comm.members);
  if (log != stdout) (void)std::fclose(log);
}

// Reports the choice of a tuner with two rules: tree if NCCL_ALGO names it, else ring; LL for messages below
// 4 KiB.
void tell_choice(ncclComm& comm, const char* function, std::size_t count, const char* type,
                 std::size_t bytes) {
  constexpr std::size_t kSmall = std::size_t{1} << 12;
  const char* const asked = std::getenv("NCCL_ALGO");
  const bool tree = asked != nullptr && std::strstr(asked, "ree") != nullptr;
  tell_profiler(comm.profiled, {function, count, type, comm.blocks, tree ? "TREE" : "RING",
                                bytes < kSmall ? "LL" : "SIMPLE"});
}

ncclResult_t start(ncclComm& comm, const std::string& name, const ncclConfig_t* config) {
  if (comm.members > kMostMembers) violation("a communicator of more members than the stand-in has room for");
  comm.device = current_device("ncclCommInitRank");
  if (config != nullptr) {
    comm.blocking = config->blocking != 0;
    if (config->maxCTAs > 0) comm.blocks = config->maxCTAs;
  }
  count(&Counts::communicators, 1);
  log_start(comm);
  start_profiler(&comm.profiled);
  comm.state = ncclInProgress;
  if (comm.blocking) {
    connect(comm, name);
    return static_cast<ncclResult_t>(comm.state.load());
  }
  std::thread([&comm, name] {
    delay();
    connect(comm, name);
  }).detach();
  return ncclInProgress;
}

void wait_for_last(ncclComm& comm) {
  std::shared_ptr<Completion> last;
  {
    const std::lock_guard lock(comm.mutex);
    last = comm.last;
  }
  if (last) last->wait();
}

const std::byte* at(const void* data) {
  return static_cast<const std::byte*>(data);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclInvalidArgument:
      return "invalid argument";
    default:
      return "an error of the stand-in's";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm != nullptr && comm->state == ncclInvalidUsage ? "Duplicate GPU detected" : "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made{0};
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "/gpu-stand-in-%d-%d", getpid(), made++);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int members, ncclUniqueId id, int member,
                                    ncclConfig_t* config) {
  *comm = new ncclComm;
  (*comm)->members = members;
  (*comm)->member = member;
  return start(**comm, id.internal, config);
}

// As in NCCL, the members agree on the new communicator through a collective of the old one.
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* comm, ncclConfig_t* config) {
  struct Choice {
    int color, key;
  };
  static std::atomic<int> splits{0};
  const Choice own{color, key};
  std::vector<Choice> all(static_cast<std::size_t>(parent->members));
  if (parent->state == ncclInProgress) violation("ncclCommSplit while an operation is in progress");
  cudaStream_t stream = nullptr;
  const ncclResult_t asked = collective(
      *parent, stream, "AllGather", 1, sizeof(Choice),
      [&](std::byte* to, const Shown&) { std::memcpy(to, &own, sizeof own); },
      [&](const Shown&) {
        for (int m = 0; m < parent->members; ++m)
          std::memcpy(&all[static_cast<std::size_t>(m)], parent->memory->shown_by(m), sizeof(Choice));
      });
  if (asked != ncclSuccess && asked != ncclInProgress) return asked;
  while (parent->state == ncclInProgress) std::this_thread::yield();
  wait_for_last(*parent);
  *comm = nullptr;
  const long number = parent->shown;
  if (color == NCCL_SPLIT_NOCOLOR || parent->aborted) return ncclSuccess;
  std::vector<std::pair<int, int>> members;  // key, member in the parent
  for (int m = 0; m < parent->members; ++m)
    if (all[static_cast<std::size_t>(m)].color == color)
      members.emplace_back(all[static_cast<std::size_t>(m)].key, m);
  std::sort(members.begin(), members.end());
  *comm = new ncclComm;
  (*comm)->members = static_cast<int>(members.size());
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i].second == parent->member) (*comm)->member = static_cast<int>(i);
  char name[64] = {};
  std::snprintf(name, sizeof name, "/gpu-stand-in-%d-%ld-%d", getppid(), number, color);
  return start(**comm, name, config);
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* data, std::size_t bytes, void** handle) {
  expect_range(data, bytes, "ncclCommRegister");
  *handle = comm;
  ++comm->registered;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
  --comm->registered;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = static_cast<ncclResult_t>(comm->state.load());
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm->finalized) violation("ncclCommFinalize was called twice");
  comm->finalized = true;
  if (comm->blocking) {
    wait_for_last(*comm);
    return ncclSuccess;
  }
  comm->state = ncclInProgress;
  std::thread([comm] {
    wait_for_last(*comm);
    comm->state = ncclSuccess;
  }).detach();
  return ncclInProgress;
}

// Leaves the object allocated, since other threads may still read it.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm->finalized) wait_for_last(*comm);
  if (comm->registered != 0) violation("ncclCommDestroy before all buffers were deregistered");
  comm->finalized = true;
  count(&Counts::communicators, -1);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm->aborted) violation("ncclCommAbort was called twice");
  comm->aborted = true;
  wait_for_last(*comm);
  count(&Counts::communicators, -1);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (const Group::Part& part : std::exchange(group.parts, {})) {
    const ncclResult_t one = exchange(*part.comm, part.stream, part.messages);
    if (result == ncclSuccess) result = one;
  }
  return result;
}

ncclResult_t ncclSend(const void* from, std::size_t elements, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return message(*comm, stream, {true, const_cast<std::byte*>(at(from)), elements * bytes_of(type), peer});
}

ncclResult_t ncclRecv(void* to, std::size_t elements, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return message(*comm, stream, {false, static_cast<std::byte*>(to), elements * bytes_of(type), peer});
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t elements, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  expect_no_group();
  const std::size_t each = bytes_of(type);
  expect_range(from, elements * each, "ncclAllReduce");
  expect_range(to, elements * each, "ncclAllReduce");
  tell_choice(*comm, "AllReduce", elements, name_of(type), elements * each);
  return collective(
      *comm, stream, "AllReduce", elements, each,
      [=](std::byte* slot, const Shown& c) { std::memcpy(slot, at(from) + c.first * each, c.count * each); },
      [=](const Shown& c) {
        reduce_shown(*comm, reduction, type, 0, c.count, static_cast<std::byte*>(to) + c.first * each);
      });
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t elements, ncclDataType_t type,
                        ncclRedOp_t reduction, int root, ncclComm_t comm, cudaStream_t stream) {
  expect_no_group();
  const std::size_t each = bytes_of(type);
  expect_range(from, elements * each, "ncclReduce");
  tell_choice(*comm, "Reduce", elements, name_of(type), elements * each);
  return collective(
      *comm, stream, "Reduce", elements, each,
      [=](std::byte* slot, const Shown& c) { std::memcpy(slot, at(from) + c.first * each, c.count * each); },
      [=](const Shown& c) {
        if (comm->member == root)
          reduce_shown(*comm, reduction, type, 0, c.count, static_cast<std::byte*>(to) + c.first * each);
      });
}

// A chunk holds the same part of each member's share.
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t elements, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  expect_no_group();
  const std::size_t each = bytes_of(type), members = static_cast<std::size_t>(comm->members);
  expect_range(from, members * elements * each, "ncclReduceScatter");
  expect_range(to, elements * each, "ncclReduceScatter");
  tell_choice(*comm, "ReduceScatter", elements, name_of(type), elements * each);
  return collective(
      *comm, stream, "ReduceScatter", elements, each * members,
      [=](std::byte* slot, const Shown& c) {
        for (std::size_t m = 0; m < members; ++m)
          std::memcpy(slot + m * c.count * each, at(from) + (m * elements + c.first) * each, c.count * each);
      },
      [=](const Shown& c) {
        reduce_shown(*comm, reduction, type, static_cast<std::size_t>(comm->member) * c.count, c.count,
                     static_cast<std::byte*>(to) + c.first * each);
      });
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t elements, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  expect_no_group();
  const std::size_t each = bytes_of(type), members = static_cast<std::size_t>(comm->members);
  expect_range(from, elements * each, "ncclAllGather");
  expect_range(to, members * elements * each, "ncclAllGather");
  tell_choice(*comm, "AllGather", elements * each, "ncclInt8", elements * each);  // NCCL counts bytes here
  return collective(
      *comm, stream, "AllGather", elements, each,
      [=](std::byte* slot, const Shown& c) { std::memcpy(slot, at(from) + c.first * each, c.count * each); },
      [=](const Shown& c) {
        for (std::size_t m = 0; m < members; ++m)
          std::memcpy(static_cast<std::byte*>(to) + (m * elements + c.first) * each,
                      comm->memory->shown_by(static_cast<int>(m)), c.count * each);
      });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t elements, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  expect_no_group();
  const std::size_t each = bytes_of(type);
  expect_range(to, elements * each, "ncclBroadcast");
  tell_choice(*comm, "Broadcast", elements * each, "ncclInt8", elements * each);  // NCCL counts bytes here
  return collective(
      *comm, stream, "Broadcast", elements, each,
      [=](std::byte* slot, const Shown& c) {
        if (comm->member == root) std::memcpy(slot, at(from) + c.first * each, c.count * each);
      },
      [=](const Shown& c) {
        std::memcpy(static_cast<std::byte*>(to) + c.first * each, comm->memory->shown_by(root),
                    c.count * each);
      });
}

}  // extern "C"
