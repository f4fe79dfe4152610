// Which communicators a schedule takes, who makes their ids, in which order all create them, and what a
// collective asks of them: all of NCCL's use that needs no GPU.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backend/runtime/transport.hpp"
#include "simulator/schedule/communication.hpp"

namespace rehearse {

// For all ops of one transfer of the schedule, so that ops match in the order in which the transfer's ends
// issue them, whatever other streams do meanwhile.
struct Communicator {
  int transfer = 0;
  std::vector<int> ranks;          // over all roles; a rank's place is its number in the communicator
  std::set<CollectiveKind> kinds;  // that go over it; empty: messages from rank 0 to rank 1 of it
  int member_of(int rank) const;   // -1: none
};

// In the order in which all ranks create them. To create one takes all its members; since all keep to one
// order, those of the first one that is not there yet are free to create it.
std::vector<Communicator> communicators(const Schedule& schedule, const Communication& communication);

// RunError if the schedule has what the streams of a GPU cannot do: once an op is issued they wait for what
// it names, and never for whoever comes first.
void refuse_unordered(const Schedule& schedule, const Communication& communication);

// By communicator, its id, which its first member has made with `make_id`; all ranks call it.
std::vector<std::string> share_ids(Transport& transport, const std::vector<Communicator>& communicators,
                                   const std::function<std::string()>& make_id);

// How many thread blocks the kernels of a communicator may use, so that those of all communicators of any
// rank fit on its GPU side by side and leave a quarter of it to computation: a kernel that waits for its
// peers holds its multiprocessors, and one that finds none may be what a peer waits for. Powers of two, as
// NCCL has channels for messages; collectives, in which all members' rates add up, get theirs first. 0: no
// rank has more than one communicator, and NCCL may choose. RunError if one block for each is too many.
struct BlockBudget {
  int collectives = 0, messages = 0;  // of each communicator of that kind
  int most_together = 0;              // communicators of one rank
};
BlockBudget block_budget(const std::vector<Communicator>& communicators, int ranks, int multiprocessors);

// What a member of a collective passes to NCCL, in elements of the buffer; parts in place, as NCCL defines
// that. Of a buffer that the members cannot share evenly, the rest (fewer elements than members) stays out.
struct CollectiveCall {
  std::size_t count = 0;
  std::size_t send = 0, receive = 0;  // where these parts begin
};
CollectiveCall collective_call(CollectiveKind kind, std::size_t elements, int members, int member);
// An all-to-all's buffer has a part for each pair; where the one from `from` to `to` begins.
std::size_t pair_part(std::size_t count, int members, int from, int to);

}  // namespace rehearse
