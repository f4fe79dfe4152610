#include "backend/runtime/journal.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>

#include "models/text/error.hpp"
#include "simulator/schedule/program_index.hpp"

namespace rehearse {
namespace {

bool has_span(const Op& op) {
  return op.kind != OpKind::repeat_begin && op.kind != OpKind::repeat_end;
}

// Returns how many spans a step of the program has, for ops that repeat endlessly (counted once) or for all
// others.
std::size_t spans_per_step(const Schedule& schedule, const Program& program, bool endless) {
  const ProgramIndex index(schedule, program);
  std::size_t spans = 0;
  for (std::size_t op = 0; op < program.ops.size(); ++op)
    if (has_span(program.ops[op]) && (index.per_step[op] == 0) == endless)
      spans += static_cast<std::size_t>(std::max(1, index.per_step[op]));
  return spans;
}

}  // namespace

// A span and the flag that it was written completely: `whole` stays 0 if a rank is killed while it writes.
struct Journal::Entry {
  RankSpan span;
  std::atomic<int> whole;
};

struct alignas(64) Journal::Head {
  std::atomic<std::size_t> taken;   // number of entries
  std::atomic<std::size_t> losses;  // number of losses written
  std::atomic<int> tells_losses, shared, closed;
  char token[40];  // rank 0's: distinguishes this journal from other files of the same name
};

static_assert(std::atomic<std::size_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

Journal::Journal(const Schedule& schedule, int repeats) {
  lay_out(schedule, repeats);
  file_ = memfd_create("rehearse-journal", MFD_CLOEXEC);
  const bool named = file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes_)) == 0;
  map(named ? file_ : -1);
  std::string token;
  std::ifstream("/proc/sys/kernel/random/uuid") >> token;
  if (!named || token.size() >= sizeof(Head::token)) return;
  std::copy(token.begin(), token.end(), head(0).token);
  name_ = fmt::format("/proc/{}/fd/{} {}", getpid(), file_, token);
}

Journal::Journal(const Schedule& schedule, int repeats, const std::string& name) {
  lay_out(schedule, repeats);
  const std::size_t space = name.find(' ');
  const int file = open(name.substr(0, space).c_str(), O_RDWR | O_CLOEXEC);
  struct stat found {};
  const bool fits =
      file >= 0 && fstat(file, &found) == 0 && static_cast<std::size_t>(found.st_size) == bytes_;
  if (fits) map(file);
  if (file >= 0) ::close(file);
  const bool right = fits && space != std::string::npos && name.substr(space + 1) == head(0).token;
  if (fits && !right) munmap(memory_, bytes_);
  if (!right) throw RunError(fmt::format("{} is not the journal of this run", name));
}

void Journal::lay_out(const Schedule& schedule, int repeats) {
  std::size_t entries = 0;
  const auto steps = static_cast<std::size_t>(repeats);
  for (int rank = 0, role = 0, first = 0; rank < schedule.ranks(); ++rank) {
    while (rank >= first + schedule.roles[role].size()) first += schedule.roles[role++].size();
    first_.push_back(entries);
    std::size_t room = 0;
    if (const int number = schedule.program_of(role, rank - first); number >= 0) {
      const Program& program = schedule.programs[number];
      // An endless op runs once for each round of each worker.
      room = steps * (spans_per_step(schedule, program, false) +
                      spans_per_step(schedule, program, true) *
                          static_cast<std::size_t>(schedule.roles.front().size()));
    }
    room_.push_back(room);
    entries += room;
  }
  heads_bytes_ = room_.size() * sizeof(Head);
  losses_at_ = heads_bytes_ + entries * sizeof(Entry);
  most_losses_ = steps * static_cast<std::size_t>(schedule.optimizer_steps);
  bytes_ = losses_at_ + room_.size() * most_losses_ * sizeof(double);
}

// -1: maps anonymous memory.
void Journal::map(int file) {
  const int kind = MAP_SHARED | MAP_NORESERVE | (file < 0 ? MAP_ANONYMOUS : 0);
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, kind, file, 0);
  if (memory == MAP_FAILED)
    throw RunError(fmt::format("cannot allocate {:.3g} MB for spans: {}", 1e-6 * static_cast<double>(bytes_),
                               std::strerror(errno)));
  memory_ = static_cast<std::byte*>(memory);
}

Journal::~Journal() {
  munmap(memory_, bytes_);
  if (file_ >= 0) ::close(file_);
}

// mmap() returns memory of zeros, which is a valid initial state of these types.
Journal::Head& Journal::head(int rank) const {
  return *std::launder(reinterpret_cast<Head*>(memory_ + static_cast<std::size_t>(rank) * sizeof(Head)));
}

void Journal::write(int rank, const RankSpan& span) {
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t place = head(rank).taken.fetch_add(1, std::memory_order_relaxed);
  if (place >= room_[r]) return;
  auto* entry =
      std::launder(reinterpret_cast<Entry*>(memory_ + heads_bytes_ + (first_[r] + place) * sizeof(Entry)));
  entry->span = span;
  entry->whole.store(1, std::memory_order_release);
}

double* Journal::losses_of(int rank) const {
  return std::launder(reinterpret_cast<double*>(
      memory_ + losses_at_ + static_cast<std::size_t>(rank) * most_losses_ * sizeof(double)));
}

void Journal::expect_losses(int rank) {
  head(rank).tells_losses.store(1, std::memory_order_release);
}

void Journal::write_loss(int rank, double loss) {
  const std::size_t place = head(rank).losses.load(std::memory_order_relaxed);
  if (place >= most_losses_) return;
  losses_of(rank)[place] = loss;
  head(rank).losses.store(place + 1, std::memory_order_release);
}

std::vector<std::vector<double>> Journal::losses() const {
  std::size_t known = most_losses_;
  const auto tells = [&](int rank) { return head(rank).tells_losses.load(std::memory_order_acquire) != 0; };
  const int ranks = static_cast<int>(room_.size());
  for (int rank = 0; rank < ranks; ++rank)
    if (tells(rank)) known = std::min(known, head(rank).losses.load(std::memory_order_acquire));
  std::vector<std::vector<double>> all(room_.size());
  for (int rank = 0; rank < ranks; ++rank)
    if (tells(rank)) all[rank].assign(losses_of(rank), losses_of(rank) + known);
  return all;
}

void Journal::share() {
  head(0).shared.store(1, std::memory_order_release);
}

bool Journal::shared() const {
  return head(0).shared.load(std::memory_order_acquire) != 0;
}

void Journal::close() {
  head(0).closed.store(1, std::memory_order_release);
}

bool Journal::closed() const {
  return head(0).closed.load(std::memory_order_acquire) != 0;
}

std::vector<RankSpan> Journal::read(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t taken = std::min(head(rank).taken.load(), room_[r]);
  std::vector<RankSpan> spans;
  for (std::size_t i = 0; i < taken; ++i) {
    const auto* entry = std::launder(
        reinterpret_cast<const Entry*>(memory_ + heads_bytes_ + (first_[r] + i) * sizeof(Entry)));
    if (entry->whole.load(std::memory_order_acquire) != 0) spans.push_back(entry->span);
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const RankSpan& a, const RankSpan& b) { return a.call.stream < b.call.stream; });
  return spans;
}

FinishedSteps finished_steps(const Schedule& schedule, std::vector<std::vector<RankSpan>> by_rank,
                             int repeats) {
  FinishedSteps result;
  result.steps = repeats;
  // By rank and op: 1 if the op's iterations count as steps.
  std::vector<std::vector<char>> by_round(by_rank.size());
  for (int rank = 0, role = 0, first = 0; rank < schedule.ranks(); ++rank) {
    while (rank >= first + schedule.roles[role].size()) first += schedule.roles[role++].size();
    const int number = schedule.program_of(role, rank - first);
    if (number < 0) continue;
    const Program& program = schedule.programs[number];
    const ProgramIndex index(schedule, program);
    const bool by_rounds = schedule.asynchrony && role != 0;
    std::vector<int> runs(program.ops.size(), 0);
    for (const RankSpan& span : by_rank[rank]) ++runs.at(static_cast<std::size_t>(span.call.op));
    for (std::size_t op = 0; op < runs.size(); ++op) {
      const bool endless = index.per_step[op] == 0;
      by_round[rank].push_back(by_rounds && endless ? 1 : 0);
      if (has_span(program.ops[op]) && endless == by_rounds)
        result.steps = std::min(result.steps, runs[op] / std::max(1, index.per_step[op]));
    }
  }
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    std::erase_if(by_rank[rank], [&](const RankSpan& span) {
      const bool round = by_round[rank][static_cast<std::size_t>(span.call.op)] != 0;
      return (round ? span.call.iteration : span.call.step) >= result.steps;
    });
  result.spans = std::move(by_rank);
  return result;
}

}  // namespace rehearse
