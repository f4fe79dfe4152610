#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "models/segment.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/scenario/reading/readers.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

constexpr auto kIfChanged = InapplicableKeyError::Ignored::if_changed;
constexpr std::array<std::string_view, 5> kAxes = {"tensor", "context", "expert", "data", "pipeline"};

std::string_view name_of(PipelineSchedule schedule) {
  return kPipelineScheduleNames[static_cast<std::size_t>(schedule)];
}

// Returns `"1f1b" or "interleaved"`: the schedules for which `is_so` is true.
std::string schedules_that(bool (*is_so)(const OrderEntry&)) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kPipelineScheduleNames.size(); ++i)
    if (is_so(order_of(static_cast<PipelineSchedule>(i))))
      names.push_back(in_quotes(kPipelineScheduleNames[i]));
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

void read_schedule(StrategyChoice& strategy, Section& section) {
  strategy.schedule = static_cast<PipelineSchedule>(section.choice(
      "schedule", kPipelineScheduleNames, static_cast<std::size_t>(PipelineSchedule::one_f_one_b)));
  const OrderEntry& entry = order_of(strategy.schedule);
  if (entry.mirrored) {
    const int least = 2 * entry.fewest_stages;
    if (section.has("pipeline") && (strategy.pipeline % 2 != 0 || strategy.pipeline < least))
      section.refuse(
          "pipeline", fmt::format("{}", strategy.pipeline),
          fmt::format("an even number from {} on with schedule = \"{}\", whose stages s and p - 1 - s "
                      "hold the same layers",
                      least, name_of(strategy.schedule)));
    strategy.pipeline /= 2;
    strategy.data *= 2;
  }
  const int fewest = entry.fewest_chunks, most = entry.most_chunks;
  const std::string with = fmt::format(" with schedule = \"{}\"", name_of(strategy.schedule));
  strategy.virtual_stages =
      static_cast<int>(section.integer("virtual_stages", 1, kMostChunks, fewest == most ? fewest : 1));
  const int chunks = strategy.virtual_stages;
  if (chunks > most) {
    const std::string allowed =
        fmt::format("{}{}, or with schedule = {}", most, most > 1 ? with : "",
                    schedules_that([](const OrderEntry& e) { return e.most_chunks == kMostChunks; }));
    section.refuse_inapplicable("virtual_stages", fmt::format("{}", chunks), allowed);
  }
  if (chunks >= fewest) return;
  if (section.has("virtual_stages") && fewest == most)
    section.refuse_inapplicable("virtual_stages", fmt::format("{}", chunks),
                                fmt::format("{}{}", fewest, with));
  if (section.has("virtual_stages"))
    section.refuse("virtual_stages", fmt::format("{}", chunks),
                   fmt::format("{}{}{}", fewest, fewest < most ? " or more" : "", with));
  section.require("virtual_stages", "schedule", fmt::format("an integer from {} to {}", fewest, most));
}

// If transfers block the computation, both ends must reach each transfer without waiting for each other.
void read_blocking(StrategyChoice& strategy, Section& section) {
  strategy.blocking_p2p = section.boolean("blocking_p2p", false);
  if (!strategy.blocking_p2p || order_of(strategy.schedule).ahead) return;
  section.refuse_inapplicable(
      "blocking_p2p", fmt::format("true with schedule = \"{}\"", name_of(strategy.schedule)),
      fmt::format("false, or with schedule = {}",
                  schedules_that([](const OrderEntry& e) { return e.ahead != nullptr; })));
}

// Groups larger than the pipeline would block its first stage.
void read_microbatch_group(StrategyChoice& strategy, Section& section) {
  const bool in_groups = order_of(strategy.schedule).in_groups;
  const int stages = strategy.pipeline;
  strategy.microbatch_group =
      static_cast<int>(section.integer("microbatch_group", in_groups ? stages : 1, kMaxMicrobatches, 0));
  if (!section.has("microbatch_group")) strategy.microbatch_group = 0;
  if (strategy.microbatch_group > 0 && !in_groups)
    section.refuse_inapplicable(
        "microbatch_group",
        fmt::format("{} with schedule = \"{}\"", strategy.microbatch_group, name_of(strategy.schedule)),
        fmt::format("only with schedule = {}",
                    schedules_that([](const OrderEntry& e) { return e.in_groups; })));
  if (strategy.microbatch_group > stages && strategy.blocking_p2p)
    section.refuse_inapplicable("microbatch_group",
                                fmt::format("{} with blocking_p2p = true", strategy.microbatch_group),
                                fmt::format("pipeline, {}, or with blocking_p2p = false", stages));
}

// Without a pipeline, only 1F1B has an order of passes that can take turns. Transfers on the compute stream
// would block both passes.
void fit_overlap(const StrategyChoice& strategy, Section& section) {
  if (!strategy.overlap_passes) return;
  if (strategy.pipeline == 1 && strategy.schedule != PipelineSchedule::one_f_one_b)
    section.refuse_inapplicable(
        "overlap_passes",
        fmt::format("true with pipeline = 1 and schedule = \"{}\"", name_of(strategy.schedule)),
        "false, or with schedule = \"1f1b\" or a pipeline of 2 or more stages");
  if (strategy.blocking_p2p)
    section.refuse_inapplicable("overlap_passes", "true with blocking_p2p = true",
                                "false, or with blocking_p2p = false");
}

std::vector<std::string> read_placement(const StrategyChoice& strategy, Section& section) {
  auto names = section.texts("placement");
  if (!section.has("placement")) return {"tensor", "context", "data", "pipeline"};
  std::vector<std::string> needed;
  for (const std::string_view name : kAxes)
    if (in_mesh(*find_axis(name), strategy)) needed.push_back(in_quotes(name));
  const std::string last = needed.back();
  needed.pop_back();
  const std::string allowed = fmt::format("{} and {} in {} order, innermost first", fmt::join(needed, ", "),
                                          last, needed.size() > 1 ? "any" : "either");
  std::vector<std::string> placement;
  for (const auto& name : names) {
    if (std::find(kAxes.begin(), kAxes.end(), name) == kAxes.end()) {
      section.refuse("placement", fmt::format("an array with \"{}\"", name.substr(0, 60)), allowed);
    }
    if (std::count(names.begin(), names.end(), name) > 1) {
      section.refuse("placement", fmt::format("an array with \"{}\" twice", name), allowed);
    }
    // The expert axis covers the ranks of other axes, wherever it is listed.
    if (!find_axis(name)->overlay) placement.push_back(name);
  }
  for (const AxisEntry* axis : axes()) {
    if (!in_mesh(*axis, strategy)) continue;
    if (std::find(placement.begin(), placement.end(), axis->name) == placement.end()) {
      section.refuse("placement", fmt::format("an array without \"{}\"", axis->name), allowed);
    }
  }
  return placement;
}

// Follows PyTorch's DistributedDataParallel (torch/nn/parallel/distributed.py, bucket_bytes_cap_default):
// without bucket_cap_mb, its buckets have 25 MiB and the first one 1 MiB (_DEFAULT_FIRST_BUCKET_BYTES), so
// that communication begins early; a given bucket_cap_mb also limits the first one.
void read_buckets(StrategyChoice& strategy, Section& section) {
  constexpr double kMiB = 1048576, kDefaultMb = 25, kDefaultFirstMb = 1;
  const double bucket_mb = section.number("bucket_mb", {0.01, 1e6}, kDefaultMb);
  const double first_mb =
      section.number("first_bucket_mb", {0.01, 1e6}, section.has("bucket_mb") ? bucket_mb : kDefaultFirstMb);
  if (first_mb > bucket_mb)
    section.refuse("first_bucket_mb", fmt::format("{}", first_mb),
                   fmt::format("at most {}, the limit of every bucket (bucket_mb)", bucket_mb));
  strategy.bucket_bytes = bucket_mb * kMiB;
  strategy.first_bucket_bytes = first_mb * kMiB;
}

// Parses every strategy's own table, so that a file can contain the settings of several to choose from.
void read_gradients(StrategyChoice& strategy, Section& section) {
  std::vector<std::string_view> names;
  for (const GradientStrategyEntry* entry : gradient_strategies()) names.push_back(entry->name);
  strategy.gradients = names[section.choice("gradients", names, 0)];
  for (const GradientStrategyEntry* entry : gradient_strategies()) {
    auto read = entry->read(section, strategy);
    if (entry->name == strategy.gradients) strategy.gradient_strategy = std::move(read);
  }
}

void fit_degrees(StrategyChoice& strategy, Section& section, const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  const auto* profiled = std::get_if<ProfiledModel>(&scenario.model.shape);
  if (profiled && profiled->has_layers) profiled = nullptr;  // the pipeline cuts them as usual
  int devices = cluster.devices();
  std::string counted =
      fmt::format("the number of devices, {} ({} x {})", devices, cluster.nodes(), cluster.node().devices);
  // The axes that split the layers' work come first; data and pipeline share the remaining devices.
  for (const AxisEntry* axis : axes()) {
    const int sharing = axis->degree(strategy);
    if (axis->always_in_mesh || axis->overlay || sharing == 1) continue;
    if (devices % sharing != 0)
      section.refuse(axis->name, fmt::format("{}", sharing), fmt::format("a divisor of {}", counted));
    devices /= sharing;
    counted = fmt::format("{}, {} over {} {}", devices, counted, axis->name, sharing);
  }
  auto other_than = [&](std::string_view key, int degree) {
    if (devices % degree != 0) {
      section.refuse(key, fmt::format("{}", degree), fmt::format("a divisor of {}", counted));
    }
    return devices / degree;
  };
  bool has_data = section.has("data"), has_pipeline = section.has("pipeline");
  if (profiled) {
    int stages = static_cast<int>(profiled->forward_s.size());
    std::string told = "the stages of the profiled model";
    if (int chunks = strategy.virtual_stages; chunks > 1) {
      if (stages % chunks != 0) {
        const std::string parts = fmt::format("{}, {}", stages, told);
        if (!section.has("virtual_stages"))  // the schedule determines the number
          section.refuse("schedule", fmt::format("{} for {}", in_quotes(name_of(strategy.schedule)), parts),
                         fmt::format("it for a multiple of {} stages", chunks));
        section.refuse("virtual_stages", fmt::format("{}", chunks), "a divisor of " + parts);
      }
      told = fmt::format("{}, {}, over virtual_stages, {}", told, stages, chunks);
      stages /= chunks;
    }
    if (has_pipeline && strategy.pipeline != stages) {
      section.refuse("pipeline", fmt::format("{}", strategy.pipeline), fmt::format("{}, {}", stages, told));
    }
    if (!has_pipeline && devices % stages != 0) {
      throw InputError(section.place(),
                       fmt::format("the profiled model makes the pipeline {} deep; allowed: a divisor of {}",
                                   stages, counted));
    }
    strategy.pipeline = stages;
    has_pipeline = true;
  }
  if (has_data && has_pipeline) {
    std::int64_t product = std::int64_t{strategy.data} * strategy.pipeline;
    if (product != devices) {
      throw InputError(section.place("data"),
                       fmt::format("strategy.data x strategy.pipeline is {} x {} = {}; allowed: {}",
                                   strategy.data, strategy.pipeline, product, counted));
    }
  } else if (has_data) {
    strategy.pipeline = other_than("data", strategy.data);
  } else {
    strategy.data = other_than("pipeline", strategy.pipeline);
  }
}

void fit_stages(const StrategyChoice& strategy, Section& section, const Scenario& scenario) {
  auto layers = static_cast<std::int64_t>(model_layers(scenario.model, pass_shape(scenario)).size());
  if (order_of(strategy.schedule).fewest_stages > strategy.pipeline) {
    section.refuse_inapplicable("schedule",
                                in_quotes(name_of(strategy.schedule)) + " with a pipeline of 1 stage",
                                "a pipeline of 2 or more");
  }
  std::int64_t parts = std::int64_t{strategy.pipeline} * strategy.virtual_stages;
  if (strategy.pipeline <= layers && parts > layers) {
    if (!section.has("virtual_stages"))
      section.refuse(
          "schedule",
          fmt::format("{}, which cuts the model into {} parts", in_quotes(name_of(strategy.schedule)), parts),
          fmt::format("at most {} parts, the layers of {}", layers, scenario.model.name));
    section.refuse("virtual_stages",
                   fmt::format("{}, which is {} parts of the model", strategy.virtual_stages, parts),
                   fmt::format("at most {} parts, the layers of {}", layers, scenario.model.name));
  }
  if (strategy.pipeline > layers) {
    std::string allowed = fmt::format("at most {}, the layers of {}", layers, scenario.model.name);
    if (section.has("pipeline")) section.refuse("pipeline", fmt::format("{}", strategy.pipeline), allowed);
    section.refuse("data",
                   fmt::format("{}, which makes the pipeline {} deep", strategy.data, strategy.pipeline),
                   allowed);
  }
  if (!section.has("stage_layers")) return;
  auto stages = static_cast<int>(strategy.stage_layers.size());
  if (stages != parts) {
    section.refuse_inapplicable(
        "stage_layers",
        stages == 1 ? "an array of 1 element" : fmt::format("an array of {} elements", stages),
        strategy.virtual_stages > 1
            ? fmt::format("{}, pipeline x virtual_stages, in the order of the model", parts)
            : fmt::format("{}, one for each pipeline stage", parts),
        kIfChanged);
  }
  std::int64_t sum =
      std::accumulate(strategy.stage_layers.begin(), strategy.stage_layers.end(), std::int64_t{0});
  if (sum != layers) {
    section.refuse_inapplicable("stage_layers", fmt::format("an array that adds up to {}", sum),
                                fmt::format("{}, the layers of {}", layers, scenario.model.name), kIfChanged);
  }
}

void fit_stages_by(const StrategyChoice& strategy, Section& section) {
  if (strategy.stages_by == StagesBy::time) return;
  if (section.has("stage_layers"))
    section.refuse_inapplicable("stages_by", "\"speed\" with stage_layers", "\"time\", or no stage_layers");
  if (strategy.pipeline == 1)
    section.refuse_inapplicable("stages_by", "\"speed\" with a pipeline of 1 stage",
                                "\"time\", or a pipeline of 2 or more");
}

// Only these sums can weight gradients by samples; and what does not grow with the samples of a replica would
// have to be divided otherwise.
void fit_batch_by(const StrategyChoice& strategy, Section& section, const Scenario& scenario) {
  if (strategy.batch_by == BatchBy::equal) {
    if (section.has("moved_samples"))
      section.refuse_inapplicable("moved_samples", fmt::format("{}", strategy.moved_samples),
                                  "only with batch_by = \"speed\"");
    return;
  }
  if (strategy.data == 1)
    section.refuse_inapplicable("batch_by", "\"speed\" with data = 1", "\"equal\", or data of 2 or more");
  const auto refuse = [&](std::string_view with, std::string_view allowed) {
    section.refuse("batch_by", fmt::format("\"speed\" with {}", with),
                   fmt::format("\"equal\", or {}", allowed));
  };
  const bool servers = strategy.gradients == "parameter-server" &&
                       strategy.parameter_server.mode == ParameterServer::Mode::sync;
  if (!servers && strategy.gradients != "all-reduce" && strategy.gradients != "hierarchical-parameter-server")
    refuse(fmt::format("gradients = \"{}\"{}", strategy.gradients,
                       strategy.gradients == "parameter-server" ? " that does not wait for all workers" : ""),
           "gradients = \"all-reduce\", or servers that wait for all workers");
  if (strategy.context > 1) refuse(fmt::format("context = {}", strategy.context), "context = 1");
  if (strategy.expert > 1) refuse(fmt::format("expert = {}", strategy.expert), "expert = 1");
  if (strategy.tensor_overlap == TensorOverlap::chunks)
    refuse("tensor_overlap = \"chunks\"", "another tensor_overlap");
  if (scenario.data.given) refuse("[data], which loads as much for all replicas", "no [data]");
  const auto* profiled = std::get_if<ProfiledModel>(&scenario.model.shape);
  if (profiled && profiled->micro_batch == 0)
    refuse("a profiled model of unknown micro_batch", "model.profiled.micro_batch");
}

}  // namespace

StrategyChoice read_strategy(Section& section) {
  StrategyChoice strategy;
  section.text("preset", "");  // it has already set the keys that the file omits
  strategy.title = section.text("title", "");
  for (const AxisEntry* axis : axes()) axis->read(section, strategy);
  strategy.placement = read_placement(strategy, section);
  read_schedule(strategy, section);
  for (std::int64_t layers : section.integers("stage_layers", 1, 1'000'000)) {
    strategy.stage_layers.push_back(static_cast<int>(layers));
  }
  strategy.stages_by = static_cast<StagesBy>(section.choice("stages_by", kStagesByNames, 0));
  strategy.batch_by = static_cast<BatchBy>(section.choice("batch_by", kBatchByNames, 0));
  strategy.moved_samples = static_cast<int>(section.integer("moved_samples", 0, 1'000'000, 0));
  read_blocking(strategy, section);
  read_microbatch_group(strategy, section);
  strategy.overlap_passes = section.boolean("overlap_passes", false);
  strategy.all_reduce = static_cast<Algorithm>(section.choice("all_reduce", kAlgorithmNames, 0));
  strategy.chunk_bytes = section.number("chunk_kb", {1, 1e9}, 0) * 1024;
  strategy.channels = static_cast<int>(section.integer("channels", 1, 256, 0));
  read_buckets(strategy, section);
  strategy.overlap = section.boolean("overlap", true);
  read_gradients(strategy, section);
  return strategy;
}

void fit_strategy(StrategyChoice& strategy, Section& section, const Scenario& scenario) {
  for (const AxisEntry* axis : axes())
    if (!axis->overlay) axis->fit(section, scenario);
  if (strategy.context > 1 && strategy.gradient_strategy->context_gradients() == ContextGradients::refused)
    section.refuse("context", fmt::format("{} with gradients = \"{}\"", strategy.context, strategy.gradients),
                   "1, or gradients = \"all-reduce\", \"delayed-all-reduce\" or \"local-sgd\"");
  fit_degrees(strategy, section, scenario);
  for (const AxisEntry* axis : axes())
    if (axis->overlay) axis->fit(section, scenario);
  fit_stages(strategy, section, scenario);
  fit_overlap(strategy, section);
  fit_stages_by(strategy, section);
  fit_batch_by(strategy, section, scenario);
  strategy.gradient_strategy->fit(section, scenario);
}

}  // namespace rehearse
