#include "simulator/schedule/partition.hpp"

#include <numeric>
#include <unordered_map>

namespace rehearse {

std::uint64_t mix_hash(std::uint64_t a, std::uint64_t b) {  // applies splitmix64's finaliser to both
  std::uint64_t z = a * 0x9E3779B97F4A7C15ull + (b ^ 0xD1B54A32D192ED03ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

namespace {

// Multisets are hashed by the sum of their members' hashes, which is 128 bits wide: a collision would need
// about 2^64 classes.
struct Signature {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Signature&) const = default;
  void add(std::uint64_t a, std::uint64_t b, std::uint64_t times = 1) {
    const std::uint64_t h = mix_hash(a, b);
    low += times * h;
    high += times * mix_hash(h, 0x2545F4914F6CDD1Dull);
  }
};
struct SignatureHash {
  std::size_t operator()(const Signature& s) const { return static_cast<std::size_t>(s.low ^ (s.high << 1)); }
};

// Replaces each colour by the number of its signature, in order of first appearance; returns how many there
// are.
int renumber(const std::vector<Signature>& signatures, std::vector<int>& colours) {
  std::unordered_map<Signature, int, SignatureHash> numbers;
  numbers.reserve(signatures.size() / 4 + 16);
  for (std::size_t i = 0; i < signatures.size(); ++i)
    colours[i] = numbers.try_emplace(signatures[i], static_cast<int>(numbers.size())).first->second;
  return static_cast<int>(numbers.size());
}

int renumber(const std::vector<std::uint64_t>& given, std::vector<int>& colours) {
  std::unordered_map<std::uint64_t, int> numbers;
  for (std::size_t i = 0; i < given.size(); ++i)
    colours[i] = numbers.try_emplace(given[i], static_cast<int>(numbers.size())).first->second;
  return static_cast<int>(numbers.size());
}

}  // namespace

Partition coarsest_equitable_partition(const Hypergraph& graph) {
  const std::size_t nodes = graph.node_colour.size(), edges = graph.edge_colour.size();
  Partition p;
  p.node_class.resize(nodes);
  p.edge_class.resize(edges);
  p.node_classes = renumber(graph.node_colour, p.node_class);
  p.edge_classes = renumber(graph.edge_colour, p.edge_class);
  std::vector<Signature> node_signature(nodes), edge_signature(edges);
  while (true) {
    for (std::size_t e = 0; e < edges; ++e) {
      Signature s{mix_hash(p.edge_class[e], 1), mix_hash(p.edge_class[e], 2)};
      for (std::int64_t t = graph.first_touch[e]; t < graph.first_touch[e + 1]; ++t)
        s.add(p.node_class[graph.touches[t].node], graph.touches[t].label,
              static_cast<std::uint64_t>(graph.touches[t].times));
      edge_signature[e] = s;
    }
    const int edge_classes = renumber(edge_signature, p.edge_class);
    for (std::size_t n = 0; n < nodes; ++n)
      node_signature[n] = {mix_hash(p.node_class[n], 3), mix_hash(p.node_class[n], 4)};
    for (std::size_t e = 0; e < edges; ++e)
      for (std::int64_t t = graph.first_touch[e]; t < graph.first_touch[e + 1]; ++t)
        node_signature[graph.touches[t].node].add(p.edge_class[e], graph.touches[t].label);
    const int node_classes = renumber(node_signature, p.node_class);
    const bool stable = node_classes == p.node_classes && edge_classes == p.edge_classes;
    p.node_classes = node_classes;
    p.edge_classes = edge_classes;
    if (stable) return p;
  }
}

Partition discrete_partition(const Hypergraph& graph) {
  Partition p;
  p.node_classes = static_cast<int>(graph.node_colour.size());
  p.edge_classes = static_cast<int>(graph.edge_colour.size());
  p.node_class.resize(graph.node_colour.size());
  p.edge_class.resize(graph.edge_colour.size());
  std::iota(p.node_class.begin(), p.node_class.end(), 0);
  std::iota(p.edge_class.begin(), p.edge_class.end(), 0);
  return p;
}

}  // namespace rehearse
