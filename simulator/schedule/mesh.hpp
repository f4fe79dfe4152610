// Defines the participants: roles, the device meshes of their ranks, and how an op names its peers and
// groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

struct Axis {
  std::string name;  // "data", "pipeline", "tensor", "context", "expert"
  int size = 1;
};

// A factorisation of the ranks 0 .. size()-1 of one role; the first axis is innermost.
class Mesh {
public:
  Mesh() = default;
  explicit Mesh(std::vector<Axis> axes);

  const std::vector<Axis>& axes() const { return axes_; }
  int size() const { return size_; }
  int axis(const std::string& name) const;  // -1 if there is none
  int coordinate(int rank, int axis) const { return rank / strides_[axis] % axes_[axis].size; }
  // Returns the rank with another coordinate on one axis.
  int moved(int rank, int axis, int coordinate) const {
    return rank + (coordinate - this->coordinate(rank, axis)) * strides_[axis];
  }

private:
  std::vector<Axis> axes_;
  std::vector<int> strides_;
  int size_ = 1;
};

inline constexpr int kWorkers = 0;  // the role of the ranks that train

// Ranks of one kind. All `meshes` are factorisations of the same ranks; ops refer to a mesh by its index.
struct Role {
  std::string name = "worker";  // for people: "server", "aggregator"
  std::vector<Mesh> meshes;
  int size() const { return meshes.empty() ? 0 : meshes.front().size(); }
};

// A condition on a rank: "axis has this coordinate".
struct At {
  int axis = 0;
  int coordinate = 0;
  int mesh = 0;
  bool operator==(const At&) const = default;
};

// A number that can depend on the coordinate on one axis of a mesh: the bytes of an uneven shard, for
// example.
struct Quantity {
  double base = 0;  // the value, if `values` is empty
  int axis = -1;
  int mesh = 0;
  std::vector<double> values;  // by coordinate on `axis`
  Quantity() = default;
  Quantity(double value) : base(value) {}  // NOLINT: a number is a quantity
  double at(const Role& role, int rank) const {
    return values.empty() ? base : values[role.meshes[mesh].coordinate(rank, axis)];
  }
  bool operator==(const Quantity&) const = default;
};

// The other end of a message, as seen from a rank.
struct Peer {
  enum class Kind {
    offset,  // the rank `offset` further along `axis` of its own role's mesh
    member,  // rank `index` of `role`
    each,    // every rank of `role` that satisfies `where`: one transfer for each
    any,     // receive only: the rank of `role` that sends first
    sender,  // send only: the rank that the last `any` of this stream received from
  } kind = Kind::offset;
  int mesh = 0, axis = 0, offset = 0;
  bool wrap = false;
  int role = 0;
  Quantity index;
  std::vector<At> where;
  bool operator==(const Peer&) const = default;

  static Peer along(int axis, int offset, bool wrap = false, int mesh = 0);
  static Peer member(int role, Quantity index);
  static Peer each(int role, std::vector<At> where = {});
  static Peer any(int role);
  static Peer sender();
};

// One axis of a group: a set of ranks, including the rank that names it, that is a product of (parts of)
// axes.
struct GroupAxis {
  int axis = 0;
  // A factor of the axis: `block` members, which are `stride` apart; block 0: the entire axis. For a data
  // axis of 64 over nodes of 8, the part inside a node is {block 8, stride 1}, the part across nodes {block
  // 8, stride 8}.
  int block = 0, stride = 1;
  std::vector<int> coordinates;  // or only these (first and last stage); the rank must be at one of them
  bool operator==(const GroupAxis&) const = default;
};
struct Group {
  std::vector<GroupAxis> axes;
  int mesh = 0;
  bool operator==(const Group&) const = default;
};

// Returns the lowest rank of the role that satisfies all conditions; -1 if there is none.
int first_rank_at(const Role& role, const std::vector<At>& where);

// Returns the members of the group of `rank`, in mesh order with the first axis of the group innermost. Empty
// if the rank is at none of the listed coordinates.
std::vector<int> group_members(const Role& role, const Group& group, int rank);
int group_size(const Role& role, const Group& group);

// Returns the ranks of the peer's role that `peer` names, as seen from `rank` of role `role`. Empty if there
// is none (beyond the end of an axis), and for `any` and `sender`, which are only known at run time.
std::vector<int> peer_ranks(const std::vector<Role>& roles, int role, const Peer& peer, int rank);

}  // namespace rehearse
