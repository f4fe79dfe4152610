#include "simulator/schedule/mesh.hpp"

#include <algorithm>
#include <utility>

namespace rehearse {

Mesh::Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {
  for (const Axis& axis : axes_) {
    strides_.push_back(size_);
    size_ *= axis.size;
  }
}

int Mesh::axis(const std::string& name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == name) return static_cast<int>(i);
  return -1;
}

Peer Peer::along(int axis, int offset, bool wrap, int mesh) {
  Peer p;
  p.kind = Kind::offset;
  p.mesh = mesh;
  p.axis = axis;
  p.offset = offset;
  p.wrap = wrap;
  return p;
}

Peer Peer::member(int role, Quantity index) {
  Peer p;
  p.kind = Kind::member;
  p.role = role;
  p.index = std::move(index);
  return p;
}

Peer Peer::each(int role, std::vector<At> where) {
  Peer p;
  p.kind = Kind::each;
  p.role = role;
  p.where = std::move(where);
  return p;
}

Peer Peer::any(int role) {
  Peer p;
  p.kind = Kind::any;
  p.role = role;
  return p;
}

Peer Peer::sender() {
  Peer p;
  p.kind = Kind::sender;
  return p;
}

namespace {

// Returns the coordinates, on one axis, of the group that `own` belongs to; empty if it belongs to none.
std::vector<int> part_of_axis(const GroupAxis& part, int size, int own) {
  if (!part.coordinates.empty()) {
    const bool inside =
        std::find(part.coordinates.begin(), part.coordinates.end(), own) != part.coordinates.end();
    return inside ? part.coordinates : std::vector<int>{};
  }
  const int block = part.block == 0 ? size : part.block;
  const int stride = part.block == 0 ? 1 : part.stride;
  const int first = own / (block * stride) * (block * stride) + own % stride;
  std::vector<int> coordinates(block);
  for (int i = 0; i < block; ++i) coordinates[i] = first + i * stride;
  return coordinates;
}

}  // namespace

int first_rank_at(const Role& role, const std::vector<At>& where) {
  const auto satisfies = [&](int rank) {
    return std::all_of(where.begin(), where.end(), [&](const At& at) {
      return role.meshes[at.mesh].coordinate(rank, at.axis) == at.coordinate;
    });
  };
  int first = 0;
  for (const At& at : where) first = role.meshes[at.mesh].moved(first, at.axis, at.coordinate);
  if (satisfies(first)) return first;
  for (first = 0; first < role.size(); ++first)  // conditions on several meshes
    if (satisfies(first)) return first;
  return -1;
}

std::vector<int> group_members(const Role& role, const Group& group, int rank) {
  const Mesh& mesh = role.meshes[group.mesh];
  std::vector<int> members = {rank};
  for (const GroupAxis& part : group.axes) {
    const std::vector<int> coordinates =
        part_of_axis(part, mesh.axes()[part.axis].size, mesh.coordinate(rank, part.axis));
    std::vector<int> grown;
    grown.reserve(members.size() * coordinates.size());
    for (int coordinate : coordinates)
      for (int member : members) grown.push_back(mesh.moved(member, part.axis, coordinate));
    members = std::move(grown);
  }
  return members;
}

int group_size(const Role& role, const Group& group) {
  int size = 1;
  for (const GroupAxis& part : group.axes) {
    if (!part.coordinates.empty())
      size *= static_cast<int>(part.coordinates.size());
    else
      size *= part.block == 0 ? role.meshes[group.mesh].axes()[part.axis].size : part.block;
  }
  return size;
}

std::vector<int> peer_ranks(const std::vector<Role>& roles, int role, const Peer& peer, int rank) {
  switch (peer.kind) {
    case Peer::Kind::offset: {
      const Mesh& mesh = roles[role].meshes[peer.mesh];
      const int size = mesh.axes()[peer.axis].size;
      int to = mesh.coordinate(rank, peer.axis) + peer.offset;
      if (peer.wrap) to = (to % size + size) % size;
      if (to < 0 || to >= size) return {};
      return {mesh.moved(rank, peer.axis, to)};
    }
    case Peer::Kind::member:
      return {static_cast<int>(peer.index.at(roles[role], rank))};
    case Peer::Kind::each: {
      std::vector<int> ranks;
      const Role& other = roles[peer.role];
      for (int r = 0; r < other.size(); ++r) {
        const bool fits = std::all_of(peer.where.begin(), peer.where.end(), [&](const At& at) {
          return other.meshes[at.mesh].coordinate(r, at.axis) == at.coordinate;
        });
        if (fits) ranks.push_back(r);
      }
      return ranks;
    }
    case Peer::Kind::any:
    case Peer::Kind::sender:
      return {};
  }
  return {};
}

}  // namespace rehearse
