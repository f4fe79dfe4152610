// How exactly a run is simulated.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "simulator/costs/framework.hpp"
#include "simulator/costs/interference.hpp"
#include "simulator/costs/transfer.hpp"

namespace rehearse {

enum class Fidelity { chunk, flow, analytic, automatic };
inline constexpr std::array<std::string_view, 4> kFidelityNames = {"chunk", "flow", "analytic", "auto"};

// A message of a collective at `chunk`, between rank classes.
struct ChunkMessage {
  int from = 0, to = 0;
  double bytes = 0;               // of payload
  double begin_s = 0, end_s = 0;  // on the links
};

struct EngineOptions {
  Fidelity fidelity = Fidelity::automatic;
  Protocol protocol = Protocol::nccl;
  bool fold = true;           // simulate one rank of each kind
  double latency_factor = 1;  // on the startup and latency of every transfer
  Interference interference;
  HostLaunches launches;   // what issuing kernels takes of each GPU's process
  double chunk_bytes = 0;  // largest message at `chunk`; 0: a ring step's whole share
  // `chunk`: rings go by their message tables too, as all other algorithms do, instead of by the order of
  // their steps alone. Slower and never folded; the times are the same.
  bool ring_tables = false;
  std::function<void(const ChunkMessage&)> on_message;  // called as each ends; none: not called
  // Links (LinkId) whose users have to share them: what crosses one is simulated as flows, at `analytic` too.
  std::vector<int> shared_links;
};

}  // namespace rehearse
