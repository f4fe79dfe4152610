#include "simulator/schedule/rank_symmetry.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include "simulator/schedule/folding.hpp"

namespace rehearse {
namespace {

// What the ops of a schedule allow: by axis, the multiple of coordinates that ranks can move; 0: none.
class Moves {
public:
  explicit Moves(const Schedule& schedule)
      : mesh_(schedule.roles.front().meshes.front()), multiple_(mesh_.axes().size(), 1) {
    for (const Program& program : schedule.programs) {
      for (const At& at : program.where) fix(at.mesh, at.axis);
      for (const Tensor& tensor : program.tensors) look_at(tensor.bytes);
      const Collective* last = nullptr;  // ops in succession often have the same group
      for (const Op& op : program.ops) {
        look_at(op.share);
        for (const Message& message : op.messages) {
          look_at(message.bytes);
          look_at(message.peer);
        }
        if (op.kind != OpKind::collective) continue;
        look_at(op.collective.bytes);
        if (last == nullptr || last->kind != op.collective.kind ||
            last->algorithm != op.collective.algorithm || !(last->group == op.collective.group))
          look_at(op.collective);
        last = &op.collective;
      }
    }
  }

  RankSymmetry most_copies(int ranks_per_move) const {
    RankSymmetry best;
    std::int64_t stride = 1;
    for (std::size_t axis = 0; axis < multiple_.size(); ++axis) {
      const std::int64_t size = mesh_.axes()[axis].size;
      if (impossible_ || multiple_[axis] == 0) {
        stride *= size;
        continue;
      }
      const std::int64_t shift =
          std::lcm(multiple_[axis], ranks_per_move / std::gcd<std::int64_t>(stride, ranks_per_move));
      if (size % shift == 0 && size / shift > best.copies())
        best = RankSymmetry(static_cast<int>(shift * stride), static_cast<int>(size / shift));
      stride *= size;
    }
    return best;
  }

private:
  void fix(int mesh, int axis) {
    if (mesh != 0 || axis < 0 || axis >= static_cast<int>(multiple_.size()))
      impossible_ = true;
    else
      multiple_[static_cast<std::size_t>(axis)] = 0;
  }
  void look_at(const Quantity& quantity) {
    if (!quantity.values.empty()) fix(quantity.mesh, quantity.axis);
  }
  void look_at(const Peer& peer) {
    if (peer.kind == Peer::Kind::offset)
      fix(peer.mesh, peer.axis);
    else
      impossible_ = true;
  }
  void look_at(const Collective& collective) {
    const Group& group = collective.group;
    if (group.mesh != 0) {
      impossible_ = true;
      return;
    }
    const bool rotates =
        course_of(collective.kind) == Course::pairs ||
        (course_of(collective.kind) == Course::ring && collective.used_algorithm() == Algorithm::ring);
    for (std::size_t i = 0; i < group.axes.size(); ++i) {
      const GroupAxis& part = group.axes[i];
      std::int64_t& multiple = multiple_[static_cast<std::size_t>(part.axis)];
      const int size = mesh_.axes()[static_cast<std::size_t>(part.axis)].size;
      const bool whole = part.block == 0 || part.block * part.stride == size;
      // The members keep their cyclic order only if this part of the group counts slowest.
      if (!part.coordinates.empty() || (whole && size > 1 && !(rotates && i + 1 == group.axes.size())))
        multiple = 0;
      else if (multiple > 0)
        multiple = std::lcm(multiple, whole ? part.block == 0 ? 1 : part.stride : part.block * part.stride);
    }
  }

  const Mesh& mesh_;
  std::vector<std::int64_t> multiple_;
  bool impossible_ = false;
};

}  // namespace

RankSymmetry find_symmetry(const Schedule& schedule, int ranks_per_move) {
  if (schedule.roles.size() != 1 || schedule.roles.front().meshes.empty() || schedule.asynchrony ||
      !foldable(schedule))
    return {};
  return Moves(schedule).most_copies(ranks_per_move);
}

}  // namespace rehearse
