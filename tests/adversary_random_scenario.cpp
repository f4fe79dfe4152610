#include "tests/adversary_random_scenario.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace rehearse::adversary {
namespace {

struct ModelChoice {
  const char* toml;
  int layers;  // maximum number of pipeline stages
  bool profiled = false;
};

const std::vector<ModelChoice> kModels = {
    {"preset = \"mlp\"", 3},
    {"multi_layer_perceptron.widths = [512, 2048, 4096, 2048, 512, 1000]", 5},
    {"preset = \"alexnet\"", 4},
    {"preset = \"vgg16\"", 6},
    {"preset = \"resnet50\"", 8},
    {"preset = \"gpt2\"", 8},
    {"preset = \"bert-base\"", 8},
    {"transformer = {layers = 6, hidden = 512, heads = 8, vocabulary = 8000, sequence_length = 256, "
     "positions = 256}",
     6},
    {"transformer = {layers = 4, hidden = 512, heads = 8, kv_heads = 2, gated = true, rotary = true, biases "
     "= false, "
     "tied_embeddings = false, vocabulary = 8000, sequence_length = 512}",
     4},
    {"transformer = {layers = 4, hidden = 256, heads = 4, vocabulary = 4000, sequence_length = 256, experts "
     "= 4, "
     "experts_per_token = 2}",
     4},
    {"profiled = {stages = 2, forward_ms = [3, 5], backward_input_ms = 4, backward_weight_ms = 2, p2p_bytes "
     "= 4e6, "
     "parameters = 2e7}",
     2, true},
    {"profiled = {stages = 4, forward_ms = 2, backward_input_ms = 2, backward_weight_ms = 2.5, p2p_bytes = "
     "0, "
     "parameters = 1e7}",
     4, true},
};

struct NodeChoice {
  const char* toml;  // keys of [cluster.node], without nics and nic_gbps
  int devices;
  bool nvlink = false;
};

const std::vector<NodeChoice> kNodes = {
    {"device = \"a100-80\"\ndevices = 1", 1},
    {"device = \"p100\"\ndevices = 1\ncpu_cores = 16\ncpu_gb_per_s = 70\npcie_gb_per_s = 13", 1},
    {"device = \"h100\"\ndevices = 4\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 450\ndevice_latency_us "
     "= 0.6\n"
     "pcie_gb_per_s = 63\ncpu_cores = 32\ncpu_gb_per_s = 200",
     4, true},
    {"device = \"v100\"\ndevices = 2\ninterconnect = \"nvlink-mesh\"\nnvlink_gb_per_s = 25\nnvlink = [{a = "
     "0, b = 1, "
     "count = 2}]\npcie_gb_per_s = 15\ncpu_cores = 8",
     2, true},
    {"device = \"k80\"\ndevices = 4\ninterconnect = \"pcie\"\ndevice_latency_us = 1\npcie_gb_per_s = 13\n"
     "pcie_switch = [{devices = 2, gb_per_s = 13}]\ncpu_cores = 16\ncpu_gb_per_s = 70",
     4},
};

struct FabricChoice {
  const char* toml;
  std::vector<int> nodes;
  bool torus = false;
};

const std::vector<FabricChoice> kFabrics = {
    {"kind = \"switch\"\nlatency_us = 5", {1, 2, 3, 4, 8}},
    {"kind = \"leaf-spine\"\nnodes_per_leaf = 2\noversubscription = 2\nlatency_us = 1", {2, 4, 6, 8}},
    {"kind = \"leaf-spine\"\nnodes_per_leaf = 2\nspines = 3\nlink_gbps = 40\nrouting = \"ecmp-hash\"",
     {4, 8}},
    {"kind = \"fat-tree\"\nradix = 4\noversubscription = 1.5\nlatency_us = 0.5", {2, 4, 8}},
    {"kind = \"rail\"\nnodes_per_leaf = 4\noversubscription = 3\nlatency_us = 1", {2, 4, 8}},
    {"kind = \"ring\"\nlatency_us = 2", {2, 3, 4, 6}, true},
    {"kind = \"torus\"\ndims = [2, 2]\nlatency_us = 1", {4}, true},
    {"kind = \"torus\"\ndims = [2, 2, 2]", {8}, true},
    {"kind = \"dragonfly\"\nrouters_per_group = 2\nnodes_per_router = 1\nglobal_gbps = 20\nlatency_us = 1",
     {4, 6, 8}},
};

const std::vector<const char*> kAllReduces = {
    "",
    "all_reduce = \"tree\"",
    "all_reduce = \"halving-doubling\"",
    "all_reduce = \"recursive-doubling\"",
    "all_reduce = \"hierarchical\"",
    "all_reduce = \"auto\"",
    "channels = 1",
    "bucket_unit = \"tensor\"",
    "bucket_copies = \"in-out\"\nbucket_unit = \"tensor\"",
    "bucket_copies = \"in\"",
    "compression = \"fp16\"",
    "compression = \"top-k\"\ntop_k_density = 0.02",
    "compression = \"one-bit\"",
    "compression = \"powersgd\"",
    "fusion_mb = 16\ncycle_ms = 0.5",
    "fusion_mb = 0\ncycle_ms = 2",
    "zero_stage = 1",
    "zero_stage = 2\nprefetch = 0",
    "zero_stage = 3\nprefetch = 2",
    "fsdp = \"hybrid\"\nreshard_after_forward = false",
};

const std::vector<const char*> kServers = {
    "placement = \"dedicated\"", "placement = \"colocated\"", "placement = \"devices\"",
    "placement = \"dedicated\"\nmode = \"async\"",
    "placement = \"colocated\"\nmode = \"stale-synchronous\"\nstaleness = 1"};

template <std::size_t N>
const char* pick(Generator& random, const char* const (&choices)[N]) {
  return choices[random.below(N)];
}

int divisor_up_to(int number, int most, Generator& random) {
  std::vector<int> divisors;
  for (int d = 1; d <= most && d <= number; ++d)
    if (number % d == 0) divisors.push_back(d);
  return random.pick(divisors);
}

std::string gradients(Generator& random, int pipeline, int nodes, bool torus) {
  switch (random.below(7)) {
    case 0:
    case 1: {
      const std::string table = fmt::format("[strategy.parameter_server]\nservers = {}\n{}\n",
                                            1 + random.below(2), random.pick(kServers));
      return "gradients = \"parameter-server\"\n" + table;
    }
    case 2:
      return fmt::format(
          "gradients = \"hierarchical-parameter-server\"\n[strategy.hierarchical_parameter_server]\n"
          "placement = \"{}\"\n",
          random.one_in(2) ? "dedicated" : "colocated");
    case 3:
      return fmt::format("gradients = \"local-sgd\"\n[strategy.local_sgd]\nevery = {}\n",
                         1 + random.below(4));
    case 4:
      if (nodes == 1 && pipeline == 1) return "gradients = \"first-device\"\n";
      [[fallthrough]];
    default:
      if (torus && random.one_in(3)) return "all_reduce = \"torus\"\n";
      if (random.one_in(6)) return "gradients = \"delayed-all-reduce\"\n";
      return std::string(random.pick(kAllReduces)) + "\n";
  }
}

// Workers that do not wait for each other may refuse a loader.
std::string input(Generator& random) {
  return fmt::format(
      "\n[data]\nsamples = 1e5\nsample_kb = {}\ndevice_kb = 20\nloader = {{kind = \"{}\", workers = {}, "
      "prefetch = {}, "
      "device_batches = {}}}\npreparation.core_ms = {}\nstorage = {{{}}}\ncache.gib = {}\n",
      pick(random, {"1", "100", "4000"}), pick(random, {"batches", "samples"}), random.below(4),
      1 + random.below(2), 1 + random.below(2), pick(random, {"0", "0.5", "20"}),
      pick(random, {"kind = \"none\"", "kind = \"local\", read_gb_per_s = 2",
                    "kind = \"shared\", read_gb_per_s = 0.5, client_gb_per_s = 0.3",
                    "kind = \"shared\", read_gb_per_s = 3, reader_gb_per_s = 0.1, latency_us = 500",
                    "kind = \"shared\", read_gb_per_s = 1, servers = 2"}),
      pick(random, {"0", "4"}));
}

// Workers that do not wait for each other refuse checkpoints.
std::string checkpoint(Generator& random) {
  return fmt::format(
      "\n[checkpoint]\nevery = {}\nmode = \"{}\"\nwriters = \"{}\"\nwriter_gb_per_s = {}\n"
      "storage = {{kind = \"shared\", read_gb_per_s = 1, write_gb_per_s = {}, {}}}\n",
      pick(random, {"1", "3", "1000"}), pick(random, {"blocking", "async"}),
      pick(random, {"all", "holders", "first"}), pick(random, {"0", "0.01"}), pick(random, {"0.1", "5"}),
      pick(random, {"servers = 0", "servers = 2", "client_gb_per_s = 0.05"}));
}

std::string split_backward(Generator& random, bool two_parts_a_stage) {
  if (!two_parts_a_stage) return fmt::format("schedule = \"{}\"\n", pick(random, {"zb-h1", "zb-h2"}));
  return fmt::format("schedule = {}\n", pick(random, {"\"zb-h1\"", "\"zb-h2\"", "\"zb-v\"", "\"dualpipe-v\"",
                                                      "\"breadth-first\"\nvirtual_stages = 2"}));
}

// Strategies, loaders and models that cannot divide batches refuse them.
std::string divisions_by_speed(Generator& random, int pipeline, int data) {
  std::string keys;
  if (pipeline > 1 && random.one_in(3)) keys += "stages_by = \"speed\"\n";
  if (data == 1 || !random.one_in(4)) return keys;
  keys += "batch_by = \"speed\"\n";
  if (random.one_in(2)) keys += fmt::format("moved_samples = {}\n", 1 + random.below(3));
  return keys;
}

}  // namespace

std::string random_scenario(Generator& random) {
  const ModelChoice& model = random.pick(kModels);
  const NodeChoice& node = random.pick(kNodes);
  const FabricChoice& fabric = random.pick(kFabrics);
  const int nodes = random.pick(fabric.nodes), devices = nodes * node.devices;
  const int pipeline = model.profiled ? model.layers : divisor_up_to(devices, model.layers, random);
  const int data = devices / pipeline;
  const bool interleaved =
      !model.profiled && pipeline > 1 && 2 * pipeline <= model.layers && random.one_in(2);
  const int microbatches =
      interleaved ? pipeline * static_cast<int>(1 + random.below(2)) : static_cast<int>(1 + random.below(5));
  const int micro_batch = static_cast<int>(1 + random.below(8));

  std::string text = fmt::format("[model]\n{}\n\n[training]\nglobal_batch = {}\nmicro_batch = {}\n",
                                 model.toml, data * microbatches * micro_batch, micro_batch);
  text += fmt::format("precision = \"{}\"\n", pick(random, {"fp32", "fp16", "fp32"}));
  if (random.one_in(2)) text += fmt::format("optimizer = \"{}\"\n", pick(random, {"sgd", "momentum"}));
  if (random.one_in(3)) {
    text += "recompute = \"full\"\n";
    if (random.one_in(2)) text += "recompute_layers = 1\n";
  }
  if (random.one_in(4)) text += "gradient_precision = \"fp32\"\n";

  text += fmt::format("\n[cluster]\nnodes = {}\nserver_nodes = 2\n", nodes);
  std::vector<std::string> slow;
  if (random.one_in(3))
    slow.push_back(
        fmt::format("{{device = {}, factor = 0.6}}", random.below(static_cast<std::size_t>(devices))));
  if (random.one_in(3)) slow.push_back("{link = \"node0.nic0\", factor = 0.4}");
  if (!slow.empty())
    text += fmt::format("slow = [{}{}{}]\n", slow[0], slow.size() > 1 ? ", " : "",
                        slow.size() > 1 ? slow[1] : "");
  const int nics = node.devices >= 4 && random.one_in(2) ? 2 : 1;
  text += fmt::format("[cluster.node]\n{}\nnics = {}\nnic_gbps = {}\n[cluster.fabric]\n{}\n", node.toml, nics,
                      pick(random, {"1", "10", "25", "200"}), fabric.toml);

  text += fmt::format("\n[strategy]\ndata = {}\npipeline = {}\n", data, pipeline);
  const bool blocking = random.one_in(4);
  if (interleaved)
    text += "schedule = \"interleaved\"\nvirtual_stages = 2\n";
  else if (pipeline > 1 && !blocking && random.one_in(2))
    text += split_backward(random, !model.profiled && 2 * pipeline <= model.layers);
  else if (random.one_in(3))
    text += "schedule = \"gpipe\"\n";
  if (random.one_in(3)) text += "placement = [\"pipeline\", \"data\"]\n";
  if (blocking) text += "blocking_p2p = true\n";
  const std::size_t end_of_degrees = text.size();
  const std::string sync = gradients(random, pipeline, nodes, fabric.torus);
  if (sync.find("fusion_mb") == std::string::npos) {
    if (random.one_in(4)) text += "overlap = false\n";
    if (random.one_in(2)) text += fmt::format("bucket_mb = {}\n", pick(random, {"0.5", "4", "1000"}));
  }
  text += sync;

  text += fmt::format("\n[simulation]\nprotocol = \"{}\"\nfidelity = \"{}\"\n",
                      sync.find("bucket_") == 0 ? pick(random, {"gloo", "nccl"})  // these need a ring
                                                : pick(random, {"ideal", "nccl", "tcp"}),
                      pick(random, {"auto", "flow", "analytic", "auto", "flow", "chunk"}));
  if (random.one_in(5)) text += input(random);
  if (random.one_in(5)) text += checkpoint(random);
  return text.insert(end_of_degrees, divisions_by_speed(random, pipeline, data));
}

}  // namespace rehearse::adversary
