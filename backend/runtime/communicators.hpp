// Computes everything about the use of NCCL that needs no GPU: which communicators a schedule needs, who
// makes their ids, the order in which all ranks create them, and the arguments of the collective calls.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backend/runtime/transport.hpp"
#include "simulator/schedule/communication.hpp"

namespace rehearse {

// A communicator for all ops of one transfer of the schedule. Its ops match in the order in which both ends
// issue them, whatever other streams do in the meantime.
struct Communicator {
  int transfer = 0;
  std::vector<int> ranks;          // over all roles; the index of a rank is its number in the communicator
  std::set<CollectiveKind> kinds;  // collectives that use it; empty: messages from member 0 to member 1
  int member_of(int rank) const;   // -1: not a member
};

// Returns the communicators in the order in which all ranks create them. Creating a communicator takes all of
// its members. Since all ranks follow one order, this cannot deadlock: the members of the first communicator
// that is not created yet are always free to create it.
std::vector<Communicator> communicators(const Schedule& schedule, const Communication& communication);

// Throws RunError if the schedule needs what the streams of a GPU cannot do: an issued op can wait only for
// the ops that it names, never for whichever peer comes first.
void refuse_unordered(const Schedule& schedule, const Communication& communication);

// Returns the id of each communicator, which its first member makes with `make_id`. All ranks must call it.
std::vector<std::string> share_ids(Transport& transport, const std::vector<Communicator>& communicators,
                                   const std::function<std::string()>& make_id);

// The number of thread blocks that the kernels of a communicator may use, chosen so that the kernels of all
// communicators of a rank fit on its GPU at the same time and leave a quarter of it to computation. A kernel
// that waits for its peers occupies its multiprocessors, and a kernel that finds none free may be the one
// that a peer waits for. The numbers are powers of two, as NCCL's channel counts for messages are.
// Collectives, in which the rates of all members add up, get their blocks first. 0: no rank has more than one
// communicator, and NCCL may choose. block_budget() throws RunError if even one block per communicator is too
// many.
struct BlockBudget {
  int collectives = 0, messages = 0;  // per communicator of that kind
  int most_together = 0;              // the largest number of communicators of one rank
};
BlockBudget block_budget(const std::vector<Communicator>& communicators, int ranks, int multiprocessors);

// The arguments that a member of a collective passes to NCCL, in elements of the buffer. Parts are in place,
// as NCCL defines it. If the members cannot share the buffer evenly, the remainder (fewer elements than
// members) is left out.
struct CollectiveCall {
  std::size_t count = 0;
  std::size_t send = 0, receive = 0;  // offsets at which these parts begin
};
CollectiveCall collective_call(CollectiveKind kind, std::size_t elements, int members, int member);
// Returns the offset of the part from `from` to `to` in the buffer of an all-to-all, which has a part for
// each pair.
std::size_t pair_part(std::size_t count, int members, int from, int to);

}  // namespace rehearse
