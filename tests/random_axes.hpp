// Generates scenarios with random degrees of all axes, for properties that hold for all of them.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <random>
#include <string>

#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse::testing {

// A cluster's keys, as used without a preset, and its number of devices per node.
struct RandomFabric {
  const char* name;
  const char* keys;  // keys of [cluster.node] and [cluster.fabric]
  int devices_per_node;
};
inline constexpr RandomFabric kRandomFabrics[] = {
    {"switch",
     "[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 100\n"
     "[cluster.fabric]\nkind = \"switch\"\nlatency_us = 2\n",
     1},
    {"leaf-spine",
     "[cluster.node]\ndevice = \"a100-80\"\ndevices = 4\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 100\n"
     "nic_gbps = 100\n[cluster.fabric]\nkind = \"leaf-spine\"\nnodes_per_leaf = 2\nspines = 2\n"
     "oversubscription = 2\nlatency_us = 2\n",
     4},
    {"rail",
     "[cluster.node]\ndevice = \"a100-80\"\ndevices = 4\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 100\n"
     "nics = 4\nnic_gbps = 50\n[cluster.fabric]\nkind = \"rail\"\nnodes_per_leaf = 4\nlatency_us = 2\n",
     4},
    {"torus",
     "[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\n"
     "[cluster.fabric]\nkind = \"torus\"\nlink_gbps = 100\nlatency_us = 2\n",
     1},
};

class RandomAxes {
public:
  explicit RandomAxes(std::uint64_t seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool maybe() { return below(2) == 0; }

  // Returns a scenario file for `devices` devices (a power of 2) of `fabric`, with a small transformer,
  // degrees whose product is `devices` and random values for other keys of the axes. The reader may refuse
  // it.
  std::string text(const RandomFabric& fabric, int devices, const std::string& slow = "") {
    int left = devices;
    const auto degree = [&](int most) {
      int d = 1;
      while (left > 1 && d < most && maybe()) {
        d *= 2;
        left /= 2;
      }
      return d;
    };
    const bool mixture = maybe();
    const int tensor = degree(4), context = degree(4), pipeline = degree(4);
    const int data = left, microbatches = pipeline * (1 + below(2));
    std::string strategy =
        fmt::format("data = {}\ntensor = {}\npipeline = {}\ncontext = {}\n", data, tensor, pipeline, context);
    if (tensor > 1 && maybe()) strategy += "sequence_parallel = true\n";
    if (tensor > 1 && maybe())
      strategy += maybe() ? "tensor_overlap = \"weight-gradients\"\n" : "tensor_overlap = \"chunks\"\n";
    if (pipeline > 1 && maybe()) strategy += "overlap_passes = true\n";
    if (context > 1) {
      const char* const kinds[] = {"ring", "all-gather", "all-to-all"};
      const int kind = below(3);
      strategy += fmt::format("context_kind = \"{}\"\n", kinds[kind]);
      if (kind == 0 && maybe()) strategy += "zigzag = false\n";
    }
    if (mixture) {
      const int of_tensor = maybe() ? 1 : tensor;
      int expert = 1;
      while (expert < 8 && of_tensor * expert * 2 <= tensor * context * data && maybe()) expert *= 2;
      strategy += fmt::format("expert = {}\nexpert_tensor = {}\n", expert, of_tensor);
      if (expert > 1 && maybe()) strategy += maybe() ? "expert_imbalance = 0.4\n" : "capacity_factor = 1.5\n";
    }
    const char* const placements[] = {"", "placement = [\"tensor\", \"context\", \"pipeline\", \"data\"]\n",
                                      "placement = [\"data\", \"tensor\", \"context\", \"pipeline\"]\n",
                                      "placement = [\"context\", \"tensor\", \"data\", \"pipeline\"]\n"};
    strategy += placements[below(4)];
    if (pipeline > 1) {
      const char* const schedules[] = {"gpipe", "1f1b", "interleaved", "breadth-first", "zb-h1",
                                       "zb-h2", "zb-v", "dualpipe-v",  "dualpipe"};
      const int schedule = below(9);
      strategy += fmt::format("schedule = \"{}\"\n", schedules[schedule]);
      if (schedule == 2 || schedule == 3) strategy += "virtual_stages = 2\n";
    }
    const char* const shards[] = {"",
                                  "",
                                  "zero_stage = 1\n",
                                  "zero_stage = 2\n",
                                  "zero_stage = 3\n",
                                  "fsdp = \"full\"\nreshard_after_forward = false\n",
                                  "fsdp = \"hybrid\"\n"};
    strategy += shards[below(7)];
    if (maybe()) strategy += "bucket_mb = 1\n";
    const char* const recompute[] = {"none", "selective", "operators", "full"};
    const std::string dims =
        fabric.devices_per_node == 1 && std::string(fabric.name) == "torus"
            ? fmt::format("dims = [{}, {}]\n", devices >= 4 ? devices / 4 : 1, devices >= 4 ? 4 : devices)
            : "";
    return fmt::format(
        "[model.transformer]\nlayers = 10\nhidden = 256\nheads = 16\nkv_heads = {}\nvocabulary = 1024\n"
        "sequence_length = 256\n{}[training]\nmicro_batch = {}\nglobal_batch = {}\nrecompute = \"{}\"\n"
        "[cluster]\nnodes = {}\n{}{}{}[simulation]\nseed = {}\n[strategy]\n{}",
        maybe() ? 16 : 4,
        mixture ? "experts = 8\nexperts_per_token = 2\ndense_layers = [0]\ndense_feed_forward = 512\n" : "",
        1, microbatches * data, recompute[below(4)], devices / fabric.devices_per_node, slow, fabric.keys,
        dims, 1 + below(1000), strategy);
  }

  // Like text(), but repeats until the reader accepts the scenario. Throws InputError after 200 failures.
  Scenario scenario(const RandomFabric& fabric, int devices, const std::string& slow = "") {
    for (int tries = 0;; ++tries) {
      const std::string written = text(fabric, devices, slow);
      try {
        return read_scenario_text(written, "random.toml");
      } catch (const InputError&) {
        if (tries == 200) throw;
      }
    }
  }

private:
  std::mt19937_64 random_;
};

}  // namespace rehearse::testing
