// Reads arbitrary bytes as a document with [cluster], and computes routes if they are accepted.
#include <cstdint>
#include <string_view>
#include <vector>

#include "topologies/cluster.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    auto document = Document::parse_text({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    Section section = document.root().section("cluster");
    auto cluster = read_cluster(section, "");
    int devices = cluster->devices();
    std::vector<LinkId> links;
    for (Endpoint other : {0, devices / 2, devices - 1, cluster->processor_of_node(cluster->nodes() - 1)}) {
      links.clear();
      cluster->route(0, other, -1, links);
      for (LinkId link : links) {
        if (link < 0 || link >= cluster->links() || !(cluster->bandwidth(link) > 0)) __builtin_trap();
        if (cluster->find_links(cluster->link_name(link)).empty()) __builtin_trap();
      }
    }
  } catch (const InputError&) {
  }
  return 0;
}
