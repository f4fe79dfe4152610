#include "backend/cuda/nccl_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "backend/cuda/check.hpp"
#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/cuda_clock.hpp"
#include "backend/cuda/gpu_place.hpp"
#include "backend/cuda/held_stream.hpp"
#include "backend/cuda/nccl_calls.hpp"
#include "backend/cuda/nccl_communicator.hpp"
#include "backend/runtime/communicators.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/nccl_choices.hpp"

namespace rehearse {
namespace {

// Returns the number of operations per measurement: 20 as nccl-tests' -n, fewer for large buffers.
int in_a_row(std::size_t buffer_bytes) {
  return buffer_bytes < (std::size_t{16} << 20) ? 20 : 5;
}

// Returns the largest of the ranks' times at the first of these ranks, and its own time at the others.
double slowest(Transport& transport, const std::vector<int>& ranks, double own_s) {
  if (transport.rank() != ranks.front()) {
    carry_value(transport, Parcel::Kind::send, ranks.front(), own_s);
    return own_s;
  }
  for (auto rank = ranks.begin() + 1; rank != ranks.end(); ++rank) {
    double seconds = 0;
    carry_value(transport, Parcel::Kind::receive, *rank, seconds);
    own_s = std::max(own_s, seconds);
  }
  return own_s;
}

std::size_t each_to_each(const Transport& transport) {
  const auto ranks = static_cast<std::size_t>(transport.ranks());
  return ranks * ranks;
}

std::string words(const LinkGroup& group) {
  return fmt::format("{} of {} ranks",
                     group.collective ? kCollectiveNames[static_cast<std::size_t>(group.kind)] : "message",
                     group.ranks.size());
}

class NcclLinks : public LinkCarrier {
public:
  NcclLinks(const NcclLinkOptions& options, GpuPlace place, Transport& transport)
      : options_(options), place_(std::move(place)), transport_(transport), gpu_(place_.device, 1) {}

  std::string name() const override {
    std::string text = "NCCL " + nccl_version();
    for (const char* variable : {"NCCL_ALGO", "NCCL_PROTO"})
      if (const char* value = std::getenv(variable)) text += fmt::format(", {}={}", variable, value);
    return text;
  }
  std::string hardware() const override { return gpu_.device_name(); }
  std::vector<std::string> notes() const override { return place_.notes; }
  bool carries(CollectiveKind kind) const override {
    return has_collective(options_.algorithm, options_.protocol, kind);
  }
  double most_buffer_bytes() const override { return std::min(1073741824.0, gpu_.traits().memory_bytes / 8); }

  void open(const std::vector<LinkGroup>& groups) override {
    groups_ = groups;
    std::vector<Communicator> all;
    for (const LinkGroup& group : groups) {
      const bool known =
          std::any_of(all.begin(), all.end(), [&](const Communicator& c) { return c.ranks == group.ranks; });
      if (!known) all.push_back({static_cast<int>(all.size()), group.ranks, {}});
    }
    const std::vector<std::string> ids = share_ids(transport_, all, make_nccl_id);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const int member = all[i].member_of(transport_.rank());
      if (member < 0) continue;
      Team& team = teams_[all[i].ranks];
      team.member = member;
      team.nccl = std::make_unique<NcclCommunicator>(static_cast<int>(all[i].ranks.size()), member, ids[i], 0,
                                                     options_.patience_s);
    }
    // Runs each group once, because NCCL connects peers and loads kernels when they are first needed.
    constexpr std::size_t kLittle = 4096;
    for (const LinkGroup& group : groups) {
      const auto team = teams_.find(group.ranks);
      if (team == teams_.end()) continue;
      const Payload payload = hold(group, kLittle);
      meet(group, team->second);
      issue(group, team->second, payload);
      team->second.nccl->settle(words(group), stream());
    }
  }

  double time_s(std::size_t number, std::size_t bytes) override {
    const LinkGroup& group = groups_[number];
    Team& team = teams_.at(group.ranks);
    const Payload payload = hold(group, bytes);
    const int times = in_a_row(payload.bytes);
    const CudaEvent begin, end;
    {
      const HeldStream held(stream());
      issue(group, team, payload);
      meet(group, team);
      CHECKED(cudaEventRecord(begin.get(), stream()));
      for (int i = 0; i < times; ++i) issue(group, team, payload);
      CHECKED(cudaEventRecord(end.get(), stream()));
    }
    team.nccl->settle(words(group), stream());
    const double one_s = elapsed_s(begin, end) / times;
    return slowest(transport_, group.ranks, group.collective ? one_s : one_s / 2);
  }

private:
  struct Team {
    int member = 0;
    std::unique_ptr<NcclCommunicator> nccl;
  };

  cudaStream_t stream() const { return gpu_.stream(0); }

  // Returns the buffer of a transfer of `bytes`; that of an all-to-all has a part for each pair.
  Payload hold(const LinkGroup& group, std::size_t bytes) {
    if (group.collective && group.kind == CollectiveKind::all_to_all)
      bytes *= group.ranks.size() * group.ranks.size();
    const std::size_t elements = (bytes + 3) / 4;
    if (buffer_->elements < elements) {
      const std::size_t grown = std::max(elements, 2 * buffer_->elements);
      buffer_ = OwnedArray();  // first, so that both need not fit
      buffer_ = OwnedArray(gpu_, grown, Precision::fp32);
    }
    return {buffer_->data, bytes, Precision::fp32};
  }

  // Makes every member wait for all others, with messages, which forced algorithms do not affect.
  void meet(const LinkGroup& group, Team& team) {
    const int members = static_cast<int>(group.ranks.size());
    const Payload payload{meeting_->data, 4 * group.ranks.size() * group.ranks.size(), Precision::fp32};
    rehearse::issue("meeting before " + words(group), {{team.nccl.get(), [&](ncclComm_t nccl) {
                                                          return nccl_collective(
                                                              nccl, CollectiveKind::all_to_all, payload,
                                                              members, team.member, stream());
                                                        }}});
  }

  // Issues a collective, or a message in both directions.
  void issue(const LinkGroup& group, Team& team, const Payload& payload) {
    const int members = static_cast<int>(group.ranks.size());
    if (group.collective) {
      rehearse::issue(words(group), {{team.nccl.get(), [&](ncclComm_t nccl) {
                                        return nccl_collective(nccl, group.kind, payload, members,
                                                               team.member, stream());
                                      }}});
      return;
    }
    for (const bool send : {team.member == 0, team.member != 0})
      rehearse::issue(words(group), {{team.nccl.get(), [&](ncclComm_t nccl) {
                                        return nccl_message(nccl, send, payload, 1 - team.member, stream());
                                      }}});
  }

  const NcclLinkOptions options_;
  const GpuPlace place_;
  Transport& transport_;
  CudaArithmetic gpu_;
  const OwnedArray meeting_{gpu_, each_to_each(transport_), Precision::fp32};
  OwnedArray buffer_;
  std::vector<LinkGroup> groups_;
  std::map<std::vector<int>, Team> teams_;  // of this rank, by their ranks
};

void force(const char* variable, const std::string& value) {
  if (!value.empty()) setenv(variable, value.c_str(), 1);
}

}  // namespace

std::unique_ptr<LinkCarrier> nccl_links(const NcclLinkOptions& options, Transport& transport) {
  force("NCCL_ALGO", options.algorithm);
  force("NCCL_PROTO", options.protocol);
  GpuPlace place = take_gpu(transport, options.oversubscribe);
  if (!place.refused.empty()) throw RunError(place.refused);
  return std::make_unique<NcclLinks>(options, std::move(place), transport);
}

}  // namespace rehearse
