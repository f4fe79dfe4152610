#include "backend/cuda/rank_links.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "backend/cuda/check.hpp"
#include "backend/cuda/nccl_calls.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/placement.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kHardwareQueues = 32;  // CUDA Programming Guide, CUDA_DEVICE_MAX_CONNECTIONS

}  // namespace

OwnedStream::OwnedStream() {
  CHECKED(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, most_urgent_priority()));
}

RankLinks::RankLinks(const Schedule& schedule, const Wiring& wiring, int rank, Transport& transport,
                     CudaArithmetic& arithmetic, const CudaHardwareOptions& options)
    : rank_(rank),
      arithmetic_(arithmetic),
      options_(options),
      program_(schedule.programs[static_cast<std::size_t>(wiring.communication().program_of_rank(rank))]),
      issued_(program_.ops.size()),
      tables_(program_.ops.size()) {
  const Communication& communication = wiring.communication();
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    const OpKind kind = program_.ops[i].kind;
    const int op = static_cast<int>(i);
    exchanges_.push_back(kind == OpKind::exchange ? wiring.exchange(rank, op) : std::vector<ExchangePart>());
    collectives_.push_back(kind == OpKind::collective ? wiring.collective(rank, op) : nullptr);
    const int slot =
        collectives_.back() ? communication.slot(communication.program_of_rank(rank), op, 0) : -1;
    transfer_.push_back(collectives_.back() ? communication.at(rank, slot).front() : -1);
  }
  if (options_.message_tables) make_tables();
  try {
    connect(communicators(schedule, communication), transport);
  } catch (...) {
    for (const auto& [transfer, link] : links_)
      if (link->nccl) link->nccl->abort();  // peers may be gone
    throw;
  }
}

void RankLinks::issue_collective(int op, int stream, const Payload& payload) {
  const RankLink& link = *links_.at(transfer_[static_cast<std::size_t>(op)]);
  if (options_.message_tables) return carry_out(op, stream, link, payload);
  link.nccl->register_buffer(payload.data, payload.bytes);
  issued_[static_cast<std::size_t>(op)] = payload;
  const Op& its = program_.ops[static_cast<std::size_t>(op)];
  issue(its.name, {{link.nccl.get(), [&](ncclComm_t nccl) {
                      return nccl_collective(nccl, its.collective.kind, payload, link.members, link.member,
                                             arithmetic_.stream(stream));
                    }}});
}

std::vector<ChosenCollective> RankLinks::chosen_collectives() const {
  std::vector<ChosenCollective> chosen;
  for (std::size_t op = 0; op < issued_.size(); ++op) {
    const Payload& payload = issued_[op];
    if (payload.bytes == 0) continue;
    const RankLink& link = *links_.at(transfer_[op]);
    if (link.choices == nullptr) continue;
    const Op& its = program_.ops[op];
    const auto element = static_cast<std::size_t>(element_bytes(payload.type));
    const CollectiveCall call =
        collective_call(its.collective.kind, payload.bytes / element, link.members, link.member);
    for (const auto& [choice, calls] : link.choices->of(its.collective.kind, call.count * element))
      chosen.push_back({static_cast<int>(op), its.name,
                        std::string(kCollectiveNames[static_cast<std::size_t>(its.collective.kind)]),
                        static_cast<double>(payload.bytes), choice.algorithm, choice.protocol,
                        choice.channels, calls});
  }
  return chosen;
}

std::string RankLinks::error() const {
  for (const auto& [transfer, link] : links_)
    if (const std::string error = link->nccl->error(); !error.empty()) return error;
  return "";
}

// Uses a thread for each communicator, because one may be waiting for another that is blocked.
bool RankLinks::abort() {
  constexpr auto kPatience = std::chrono::seconds(5);
  std::vector<std::future<void>> aborted;
  for (const auto& [transfer, link] : links_) {
    auto done = std::make_shared<std::promise<void>>();
    aborted.push_back(done->get_future());
    std::thread([done, device = arithmetic_.device(), nccl = link->nccl.get()] {
      (void)cudaSetDevice(device);
      nccl->abort();
      done->set_value();
    }).detach();
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  return std::all_of(aborted.begin(), aborted.end(), [&](const std::future<void>& one) {
    return one.wait_until(until) == std::future_status::ready;
  });
}

// Runs each round as an NCCL group and adds up what it received before the next round begins.
void RankLinks::carry_out(int op, int stream, const RankLink& link, const Payload& payload) {
  const std::string& name = program_.ops[static_cast<std::size_t>(op)].name;
  const cudaStream_t own = arithmetic_.stream(stream);
  const Table& table = tables_[static_cast<std::size_t>(op)];
  // The table's elements have 4 bytes, so the last one may extend beyond the buffer.
  const auto bytes_of = [&](const TablePiece& piece) {
    return std::min(piece.bytes, payload.bytes - std::min(payload.bytes, piece.begin));
  };
  for (const TableRound& round : table.rounds) {
    std::vector<NcclCall> calls;
    for (const TablePiece& piece : round.pieces) {
      std::byte* at = piece.reduce ? table.scratch->data + piece.scratch : payload.data + piece.begin;
      if (bytes_of(piece) > 0)
        calls.push_back(
            {link.nccl.get(), [&piece, part = Payload{at, bytes_of(piece)}, own](ncclComm_t nccl) {
               return nccl_message(nccl, piece.send, part, piece.peer, own);
             }});
    }
    if (!calls.empty()) issue(name, calls);
    for (const TablePiece& piece : round.pieces) {
      const std::size_t elements = bytes_of(piece) / static_cast<std::size_t>(element_bytes(payload.type));
      if (!piece.reduce || elements == 0) continue;
      const Array came{table.scratch->data + piece.scratch, elements, payload.type};
      const Array there{payload.data + piece.begin, elements, payload.type};
      if (payload.reduction == Collective::Reduction::maximum)
        arithmetic_.largest(stream, came, there);
      else
        arithmetic_.add(stream, came, there);
    }
  }
}

// Called before anything runs, because memory must not be allocated beside running kernels.
void RankLinks::make_tables() {
  for (std::size_t op = 0; op < tables_.size(); ++op) {
    if (!collectives_[op]) continue;
    const MessageTable& messages = collectives_[op]->table;
    Table& table = tables_[op];
    table.rounds = table_rounds(messages, collectives_[op]->member_of(rank_),
                                static_cast<std::size_t>(messages.elements) * kElementBytes);
    std::size_t scratch = 0;
    for (const TableRound& round : table.rounds) scratch = std::max(scratch, round.scratch_bytes);
    table.scratch = OwnedArray(arithmetic_, scratch / kElementBytes, Precision::fp32);
  }
}

// Creates the communicators one after the other and sends a few bytes over each, since NCCL connects peers
// when they first communicate: later, that would count towards the ops' times and allocate beside running
// kernels.
// No communicator is split off another one (ncclCommSplit). All members of the parent must call a split,
// including those that take no part in it, so all ranks would wait for each other at every communicator;
// giving up on a missing member would take aborting the parent and everything split off it; and a parent of
// all ranks would itself have to be connected. A split would save the exchange of ids, which is one message
// here, and the rendezvous over an id, but no more: both ways search the topology and connect peers.
void RankLinks::connect(const std::vector<Communicator>& all, Transport& transport) {
  const std::vector<std::string> ids = share_ids(transport, all, make_nccl_id);
  const int multiprocessors = least_multiprocessors(transport);
  const BlockBudget budget = block_budget(all, transport.ranks(), multiprocessors);
  refuse_more_queues(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].member_of(rank_) < 0) continue;
    RankLink& link =
        *links_.emplace(all[i].transfer, std::make_unique<RankLink>(all[i], rank_)).first->second;
    if (options_.choices && !all[i].kinds.empty()) link.choices = &listen_to_next_communicator();
    const int blocks = all[i].kinds.empty() ? budget.messages : budget.collectives;
    link.nccl =
        std::make_unique<NcclCommunicator>(link.members, link.member, ids[i], blocks, options_.patience_s);
    meet(link, all[i]);
  }
  if (budget.most_together > 1)
    notes_.push_back(
        fmt::format("NCCL may use {} thread blocks for a collective and {} for a message, so that the {} "
                    "communicators of a rank can wait at the same time on a GPU of {} multiprocessors",
                    budget.collectives, budget.messages, budget.most_together, multiprocessors));
}

// Returns the multiprocessors of the smallest GPU, on which all ranks base their block budget.
int RankLinks::least_multiprocessors(Transport& transport) const {
  int least = 0;
  CHECKED(cudaDeviceGetAttribute(&least, cudaDevAttrMultiProcessorCount, arithmetic_.device()));
  for (const std::string& text : all_gather(transport, std::to_string(least)))
    least = std::min(least, std::stoi(text));
  return least;
}

// Throws RunError if there are more streams than hardware queues: streams that share a queue block each
// other, and a waiting stream could block the one that it waits for.
void RankLinks::refuse_more_queues(const std::vector<Communicator>& all) const {
  std::size_t streams = program_.streams.size();
  for (const Communicator& c : all)
    if (c.kinds.empty() && c.member_of(rank_) >= 0) ++streams;
  if (streams > kHardwareQueues)
    throw RunError(fmt::format(
        "rank {} needs {} streams that wait for each other; allowed: {}, the hardware queues of a GPU "
        "(CUDA_DEVICE_MAX_CONNECTIONS)",
        rank_, streams, kHardwareQueues));
}

// Returns calls, in groups, that send a few bytes over each connection that the communicator will use.
std::vector<std::vector<NcclCall>> RankLinks::first_calls(const RankLink& link, const Communicator& c,
                                                          const Payload& payload) const {
  const auto message = [&link](bool send, const Payload& part, int peer) {
    return NcclCall{link.nccl.get(), [&link, send, part, peer](ncclComm_t nccl) {
                      return nccl_message(nccl, send, part, peer, link.stream.get());
                    }};
  };
  if (c.kinds.empty()) return {{message(link.member == 0, payload, 1 - link.member)}};
  std::vector<std::vector<NcclCall>> groups;
  if (!options_.message_tables) {
    for (const CollectiveKind kind : c.kinds)
      groups.push_back({{link.nccl.get(), [&link, kind, payload](ncclComm_t nccl) {
                           return nccl_collective(nccl, kind, payload, link.members, link.member,
                                                  link.stream.get());
                         }}});
    return groups;
  }
  for (std::size_t op = 0; op < tables_.size(); ++op) {
    if (!collectives_[op] || transfer_[op] != c.transfer) continue;
    std::vector<NcclCall>& group = groups.emplace_back();
    for (const Connection& ends : collectives_[op]->table.connections) {
      const auto element = static_cast<std::size_t>(ends.from * link.members + ends.to) * kElementBytes;
      const Payload part{payload.data + element, kElementBytes};
      if (ends.from == link.member) group.push_back(message(true, part, ends.to));
      if (ends.to == link.member) group.push_back(message(false, part, ends.from));
    }
    if (group.empty()) groups.pop_back();
  }
  return groups;
}

void RankLinks::meet(RankLink& link, const Communicator& c) {
  const auto members = static_cast<std::size_t>(link.members);
  const OwnedArray scratch(arithmetic_, members * members, Precision::fp32);
  const Payload payload{scratch->data, scratch->bytes()};
  const std::string name = fmt::format("first meeting of ranks {} to {}", c.ranks.front(), c.ranks.back());
  // The call that issues a first message connects the peers and may block if a peer is missing, so it runs in
  // a separate thread.
  std::promise<void> met;
  std::future<void> meeting = met.get_future();
  std::thread issuing([&] {
    try {
      CHECKED(cudaSetDevice(arithmetic_.device()));
      for (const std::vector<NcclCall>& calls : first_calls(link, c, payload)) issue(name, calls);
      met.set_value();
    } catch (...) {
      met.set_exception(std::current_exception());
    }
  });
  if (meeting.wait_for(std::chrono::duration<double>(options_.patience_s)) == std::future_status::timeout)
    link.nccl->abort();
  issuing.join();
  meeting.get();
  link.nccl->settle(name, link.stream.get());
}

}  // namespace rehearse
