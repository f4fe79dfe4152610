// How exactly a run is simulated.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "simulator/costs/transfer.hpp"

namespace rehearse {

enum class Fidelity { chunk, flow, analytic, automatic };
inline constexpr std::array<std::string_view, 4> kFidelityNames = {"chunk", "flow", "analytic", "auto"};

struct EngineOptions {
  Fidelity fidelity = Fidelity::automatic;
  Protocol protocol = Protocol::nccl;
  bool fold = true;           // simulate one rank of each kind
  double latency_factor = 1;  // on the startup and latency of every transfer
  double chunk_bytes = 0;     // largest message at `chunk`; 0: a ring step's whole share
  // Links (LinkId) whose users have to share them: what crosses one is simulated as flows, at `analytic` too.
  std::vector<int> shared_links;
};

}  // namespace rehearse
