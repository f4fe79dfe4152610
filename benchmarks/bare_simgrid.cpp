#include "benchmarks/bare_simgrid.hpp"

#include <string>
#include <vector>

#include "simulator/engine/simgrid.hpp"

namespace rehearse {

double bare_ring(int ranks, double bytes, double bandwidth, double latency_s) {
  static char name[] = "bare", quiet[] = "--log=root.thres:warning";
  static char* arguments[] = {name, quiet, nullptr};
  int count = 2;
  sg::s4u::Engine engine(&count, arguments);
  sg::configure();
  sg::s4u::NetZone* zone = sg::root_zone(engine);
  std::vector<sg::s4u::Host*> hosts;
  std::vector<const sg::s4u::Link*> out, in;
  std::vector<sg::s4u::Mailbox*> boxes;
  for (int r = 0; r < ranks; ++r) {
    hosts.push_back(sg::add_host(zone, "h" + std::to_string(r)));
    out.push_back(sg::add_link(zone, "o" + std::to_string(r), bandwidth));
    in.push_back(sg::add_link(zone, "i" + std::to_string(r), bandwidth));
    boxes.push_back(sg::s4u::Mailbox::by_name(std::to_string(r)));
  }
  for (int r = 0; r < ranks; ++r) {
    const int next = (r + 1) % ranks;
    sg::add_route(zone, hosts[r], hosts[next], {out[r], in[next]});
  }
  zone->seal();
  static int payload = 0;
  for (int r = 0; r < ranks; ++r)
    sg::start_actor(engine, "rank", hosts[r], [&boxes, r, ranks, bytes, latency_s] {
      for (int step = 0; step < 2 * (ranks - 1); ++step) {
        sg::s4u::this_actor::sleep_for(latency_s);
        const sg::s4u::CommPtr sent =
            boxes[(r + 1) % ranks]->put_async(&payload, static_cast<std::uint64_t>(bytes / ranks));
        boxes[r]->get<int>();
        sent->wait();
      }
    });
  engine.run();
  return sg::s4u::Engine::get_clock();
}

}  // namespace rehearse
