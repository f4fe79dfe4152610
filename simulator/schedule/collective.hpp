// Defines collectives: their kinds and algorithms, and the parameters of one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simulator/schedule/mesh.hpp"

namespace rehearse {

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce };
inline constexpr std::array<std::string_view, 6> kCollectiveNames = {
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce"};
// The paths of a collective's bytes: around the ring of its members, along that ring from or to its first
// member (the root), or directly between each pair of members.
enum class Course { ring, from_root, to_root, pairs };
constexpr Course course_of(CollectiveKind kind) {
  if (kind == CollectiveKind::broadcast) return Course::from_root;
  if (kind == CollectiveKind::reduce) return Course::to_root;
  return kind == CollectiveKind::all_to_all ? Course::pairs : Course::ring;
}
// The algorithm of an all-reduce (simulator/collectives/algorithms/). Other kinds use a ring or direct
// messages between pairs. `automatic` is for scenarios: the ops of a schedule name the algorithm that was
// chosen.
enum class Algorithm {
#define ALGORITHM(algorithm, name, adder, entry) algorithm,
#include "simulator/schedule/algorithms.inc"
#undef ALGORITHM
  automatic
};
inline constexpr auto kAlgorithmNames = std::to_array<std::string_view>({
#define ALGORITHM(algorithm, name, adder, entry) name,
#include "simulator/schedule/algorithms.inc"
#undef ALGORITHM
    "auto"});

// Who computes the sums of an all-reduce: its members, or switches of NVLink (NVLS) or of the network
// (CollNet), to which members send instead of to each other.
enum class Adder { members, nvlink_switches, network_switches };
constexpr Adder adder_of(Algorithm algorithm) {
  constexpr Adder kAdders[] = {
#define ALGORITHM(algorithm, name, adder, entry) Adder::adder,
#include "simulator/schedule/algorithms.inc"
#undef ALGORITHM
      Adder::members};
  return kAdders[static_cast<std::size_t>(algorithm)];
}
constexpr bool is_switched(Algorithm algorithm) {
  return adder_of(algorithm) != Adder::members;
}

struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  Group group;
  // all-reduce, broadcast, reduce: bytes of the buffer; reduce-scatter, all-gather: of the concatenated
  // buffer; all-to-all: bytes each member sends to each other member.
  Quantity bytes;
  int channels = 0;           // 0: as many as the node has NICs
  bool copy_engines = false;  // copy engines move its bytes, not thread blocks
  // How a reduction combines the members' numbers.
  enum class Reduction : std::uint8_t { sum, mean, maximum } reduction = Reduction::sum;

  Algorithm used_algorithm() const {
    return kind == CollectiveKind::all_reduce ? algorithm : Algorithm::ring;
  }
};

}  // namespace rehearse
