// Defines the options that decide how exactly a run is simulated.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "simulator/costs/framework.hpp"
#include "simulator/costs/interference.hpp"
#include "simulator/costs/jitter.hpp"
#include "simulator/costs/transfer.hpp"

namespace rehearse {

enum class Fidelity { chunk, flow, analytic, automatic };
inline constexpr std::array<std::string_view, 4> kFidelityNames = {"chunk", "flow", "analytic", "auto"};

// A message of a collective at fidelity `chunk`, between two rank classes.
struct ChunkMessage {
  int from = 0, to = 0;
  double bytes = 0;               // payload
  double begin_s = 0, end_s = 0;  // times on the links
};

struct EngineOptions {
  Fidelity fidelity = Fidelity::automatic;
  Protocol protocol = Protocol::nccl;
  bool fold = true;           // simulate one rank of each class of equivalent ranks
  double latency_factor = 1;  // factor on the startup and latency of every transfer
  double input_speed = 1;     // factor on the rates at which loader workers read and prepare
  Jitter jitter;  // of computations of workers, none of which are folded then
  Interference interference;
  HostLaunches launches;   // time that each GPU's process needs to issue kernels
  double chunk_bytes = 0;  // largest message at `chunk`; 0: a ring step's entire share
  // `chunk`: simulates rings by their message tables, like all other algorithms, instead of by the order of
  // their steps alone. This is slower and never folded; the times are the same.
  bool ring_tables = false;
  std::function<void(const ChunkMessage&)> on_message;  // called when a message ends; may be empty
  // Links (LinkId) whose users have to share them: transfers across them are simulated as flows, even at
  // `analytic`.
  std::vector<int> shared_links;
};

}  // namespace rehearse
