#include "simulator/scenario/reading/read_scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "models/text/printable.hpp"
#include "models/text/toml_table.hpp"
#include "simulator/scenario/reading/choose_framework.hpp"
#include "simulator/scenario/reading/open_scenario.hpp"
#include "simulator/scenario/reading/readers.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"

namespace rehearse {
namespace {

// Parses simulation.protocol and the keys that belong to one of its values.
Protocol read_protocol(Section& section, const Cluster& cluster, const std::string& base_folder) {
  Protocol protocol = static_cast<Protocol::Kind>(
      section.choice("protocol", kProtocolNames, static_cast<std::size_t>(Protocol::nccl)));
  const auto only_with = [&](std::string_view key, bool fits, const char* allowed) {
    if (section.has(key) && !fits)
      section.refuse_inapplicable(key, "given", fmt::format("only with protocol = {}", allowed));
  };
  only_with("frame_overhead_bytes", protocol.over_tcp(), "\"tcp\" or \"gloo\"");
  only_with("link_profile", protocol.kind == Protocol::measured, "\"measured\"");
  protocol.frame_overhead_bytes =
      section.number("frame_overhead_bytes", {0, 1000}, protocol.frame_overhead_bytes);
  const bool inline_profile = section.is_table("link_profile");  // a link profile's keys, inline
  const std::string file = inline_profile ? "link_profile" : section.text("link_profile", "");
  if (protocol.kind != Protocol::measured) return protocol;
  section.require("link_profile", "protocol", "a file with measured links");
  const std::filesystem::path path(file);
  Section table = inline_profile ? section.section("link_profile") : section;
  protocol.links = std::make_shared<LinkProfile>(
      inline_profile ? read_link_profile(table)
                     : read_link_profile_file(path.is_absolute() || base_folder.empty()
                                                  ? file
                                                  : (std::filesystem::path(base_folder) / path).string()));
  const auto needs = [&](Reach reach, bool needed, const char* what) {
    if (needed && !protocol.links->messages(reach))
      section.refuse("link_profile", fmt::format("\"{}\", without messages {}", file, what),
                     fmt::format("a file with [[message]] where = \"{}\" for cluster {}",
                                 kReachNames[static_cast<std::size_t>(reach)], cluster.name));
  };
  needs(Reach::in_node, cluster.node().devices > 1, "inside a node");
  needs(Reach::between_nodes, cluster.nodes() + cluster.server_nodes() > 1, "between nodes");
  return protocol;
}

// Parses [simulation.jitter]; the table alone means normal jitter.
Jitter read_jitter(Section& section, std::uint64_t seed) {
  Jitter jitter;
  jitter.kind =
      static_cast<Jitter::Kind>(section.choice("kind", kJitterKindNames, section.present() ? 1 : 0));
  jitter.deviation = section.number("deviation", {0, 10}, 0);
  jitter.per = static_cast<Jitter::Per>(section.choice("per", kJitterPerNames, 0));
  jitter.steps = static_cast<int>(section.integer("steps", 2, 10'000, 0));
  jitter.seed = seed;
  if (jitter.kind == Jitter::Kind::exponential && jitter.deviation > 1)
    section.refuse("deviation", fmt::format("{} with kind = \"exponential\"", jitter.deviation),
                   "at most 1, with which all of the time is random");
  section.finish();
  return jitter;
}

// Parses [simulation] into the options of the engine; `chunk_bytes` is in [strategy].
void read_simulation(Section& section, Scenario& scenario, const std::string& base_folder) {
  EngineOptions& engine = scenario.engine;
  section.expect({"fidelity", "fold", "steps", "seed", "frame_overhead_bytes", "interference", "jitter"});
  engine.fidelity = static_cast<Fidelity>(
      section.choice("fidelity", kFidelityNames, static_cast<std::size_t>(Fidelity::automatic)));
  engine.protocol = read_protocol(section, *scenario.cluster, base_folder);
  engine.fold = section.boolean("fold", true);
  const bool nccl = engine.protocol.kind == Protocol::nccl;
  engine.interference.on = section.boolean("interference", nccl);
  if (engine.interference.on && !nccl)
    section.refuse_inapplicable(
        "interference", fmt::format("true with protocol = \"{}\"", kProtocolNames[engine.protocol.kind]),
        "false, or protocol = \"nccl\"");
  scenario.steps = static_cast<int>(section.integer("steps", 1, 1000, 1));
  scenario.seed =
      static_cast<std::uint64_t>(section.integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  Section jitter = section.section("jitter");
  engine.jitter = read_jitter(jitter, scenario.seed);
  if (engine.jitter.any()) engine.fold = false;  // ranks differ
}

// Parses [run], which is for real execution. Simulations only check it, so that one file serves both.
RealRun read_run(Section& section, const std::string& base_folder) {
  RealRun run;
  run.steps = static_cast<int>(section.integer("steps", 1, 1'000'000'000, 1));
  run.warmup = static_cast<int>(section.integer("warmup", 0, 1'000'000'000, 0));
  run.seed =
      static_cast<std::uint64_t>(section.integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  run.learning_rate = section.number("learning_rate", kNotNegative, 0);
  run.compute = static_cast<RealRun::Compute>(section.choice("compute", kRunComputeNames, 0));
  run.collectives = static_cast<RealRun::Collectives>(section.choice("collectives", kRunCollectivesNames, 0));
  run.cuda_graphs = section.boolean("cuda_graphs", false);
  run.bind = static_cast<RealRun::Bind>(section.choice("bind", kRunBindNames, 0));
  if (const std::filesystem::path data = section.text("data", ""); !data.empty())
    run.data = data.is_absolute() || base_folder.empty()
                   ? data.string()
                   : (std::filesystem::path(base_folder) / data).string();
  return run;
}

// While a launch waits for its kernel, the host cannot issue anything else.
void refuse_overlap_of_blocking_launches(Section& training, const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  if (!scenario.training.blocking_launches) return;
  const char* overlapping = strategy.overlap                                 ? "strategy.overlap = true"
                            : strategy.tensor_overlap != TensorOverlap::none ? "strategy.tensor_overlap"
                            : strategy.pipeline > 1 && !strategy.blocking_p2p
                                ? "strategy.blocking_p2p = false"
                                : nullptr;
  if (overlapping)
    training.refuse("blocking_launches", fmt::format("true with {}", overlapping),
                    "false, or a strategy that overlaps nothing: overlap = false, tensor_overlap = \"none\", "
                    "blocking_p2p = true");
}

// Takes [limits] out of a preset, which is none of the scenario's tables, and returns its `lacks`.
std::vector<std::string> take_limits(Section& preset) {
  Section limits = preset.section("limits");
  std::vector<std::string> lacks = limits.texts("lacks");
  limits.finish();
  erase_key(*preset.tree(), "limits");
  return lacks;
}

struct NamedStrategy {
  std::string changes;             // keys in which the scenario differs from it: ", but for bucket_mb"
  std::vector<std::string> lacks;  // StrategyChoice::lacks
};

// A named strategy sets those keys of [strategy] and [training] that the scenario omits.
NamedStrategy apply_strategy_preset(Document& document) {
  Section strategy = document.root().section("strategy");
  if (!strategy.has("preset")) return {};
  Document preset = named_preset(strategy, "preset", strategy.text("preset"), "simulator/strategies");
  Section root = preset.root();
  root.section("strategy");
  root.section("training");
  NamedStrategy named{"", take_limits(root)};
  root.finish();
  std::vector<std::string> kept = document.fill_in(preset);
  for (std::string& key : kept) key.erase(0, key.find('.') + 1);
  named.changes = but_for(kept);
  return named;
}

// A named framework sets those keys of [framework] and [strategy] that the scenario and its named strategy
// omit. Returns its name, empty without one, and adds what it lacks.
std::string apply_framework(Document& document, std::vector<std::string>& lacks) {
  Section training = document.root().section("training");
  const std::string name = training.text("framework", "none");
  if (name == "none") return "";
  Document preset = named_preset(training, "framework", name, "simulator/frameworks");
  Section root = preset.root();
  root.section("framework");
  root.section("strategy");
  root.section("fits");
  for (std::string& lacking : take_limits(root)) lacks.push_back(std::move(lacking));
  root.finish();
  erase_key(*root.tree(), "fits");
  document.fill_in(preset);
  return name;
}

// Reads a scenario without those of its keys that do not apply. Throws InapplicableKeyError at another one.
Scenario read_without(OpenedScenario opened, const std::string& path, const Overrides& overrides,
                      const std::vector<InapplicableKeyError>& ignored) {
  const std::string base_folder = std::filesystem::path(path).parent_path().string();
  complete_scenario(opened, path, overrides);
  Document& document = opened.document;
  NamedStrategy named = apply_strategy_preset(document);
  const auto erase_ignored = [&] {
    for (const InapplicableKeyError& error : ignored) erase_path(*document.root().tree(), error.key_path());
  };
  erase_ignored();
  // A framework that is taken by default is not among the settings: the scenario does not name it.
  const std::string chosen = default_framework(document.tree(), base_folder);
  std::vector<std::pair<std::string, std::string>> settings = document.values();
  if (!chosen.empty()) document.set("training.framework=" + chosen);
  const std::string framework = apply_framework(document, named.lacks);
  erase_ignored();
  if (chosen.empty()) settings = document.values();
  Section root = document.root();
  Section model = root.section("model"), training = root.section("training"),
          cluster = root.section("cluster");
  Section strategy = root.section("strategy"), simulation = root.section("simulation"),
          run = root.section("run"), costs = root.section("framework"), cost = root.section("cost");
  root.section("data");
  root.section("checkpoint");
  root.finish();  // first: otherwise a misspelt section would be reported as missing

  Scenario scenario;
  scenario.name = title_of_file(path);
  scenario.settings = std::move(settings);
  TomlValue given = document.tree();
  scenario.model = read_model(model, base_folder);
  if (opened.job) scenario.notes = job_notes(*opened.job);

  scenario.strategy = read_strategy(strategy);
  strategy.finish();
  if (!scenario.strategy.title.empty()) scenario.strategy.title += named.changes;
  scenario.strategy.lacks = named.lacks;
  if (cluster.present() && !cluster.has("server_nodes")) {
    const auto nodes = scenario.strategy.gradient_strategy->server_nodes(strategy, scenario.strategy);
    if (nodes) document.set(fmt::format("cluster.server_nodes={}", nodes->count), &nodes->asked_at);
  }
  scenario.data = read_data(document, scenario.model, training.number("sequence_length", kNotNegative, 0));
  std::vector<Storage> storages;
  scenario.checkpoint = read_checkpoint(document, scenario.data, storages);
  scenario.cluster = read_cluster(cluster, base_folder, storages);
  refuse_unknown_bandwidth(scenario.data, scenario.checkpoint, *scenario.cluster, document);

  scenario.cost = read_cost(cost, *scenario.cluster, base_folder);
  cost.finish();
  scenario.framework = read_framework(costs, framework);
  scenario.training =
      read_training(training, scenario.model, scenario.cluster->node().device, scenario.framework);
  refuse_overlap_of_blocking_launches(training, scenario);
  training.finish();
  scenario.engine.launches =
      host_launches(scenario.framework, scenario.training.cuda_graphs, scenario.training.blocking_launches);
  read_simulation(simulation, scenario, base_folder);
  simulation.finish();
  if (scenario.engine.protocol.kind == Protocol::gloo && scenario.strategy.all_reduce != Algorithm::ring)
    strategy.refuse_inapplicable(
        "all_reduce",
        fmt::format("\"{}\" with simulation.protocol = \"gloo\"",
                    kAlgorithmNames[static_cast<std::size_t>(scenario.strategy.all_reduce)]),
        "\"ring\", which Gloo uses");
  scenario.run = read_run(run, base_folder);
  run.finish();

  fit_strategy(scenario.strategy, strategy, scenario);
  scenario.microbatches = count_microbatches(scenario.training, scenario.strategy, training);
  fit_recompute_layers(training, scenario);
  scenario.engine.chunk_bytes = scenario.strategy.chunk_bytes;
  scenario.text = scenario_text(std::move(given), document.tree(), base_folder, scenario);
  return scenario;
}

// Ignores keys that do not apply at this point (sequence_parallel with tensor = 1), so that the keys that
// decide about them can be varied. Those of "--set" are refused: they were asked for.
Scenario read_scenario(const OpenedScenario& opened, const std::string& path, const Overrides& overrides) {
  std::vector<InapplicableKeyError> ignored;
  while (true) {
    try {
      Scenario scenario = read_without({opened.document.copy(), opened.job}, path, overrides, ignored);
      for (const InapplicableKeyError& error : ignored) {
        scenario.ignored.push_back(error.key_path());
        scenario.notes.push_back(fmt::format("Ignored, because it does not apply: {}.", error.what()));
      }
      return scenario;
    } catch (const InapplicableKeyError& error) {
      const bool again = std::any_of(ignored.begin(), ignored.end(), [&](const auto& earlier) {
        return earlier.key_path() == error.key_path();
      });
      const bool changed = !overrides.set.empty() || !overrides.varied.empty();
      const bool wrong = error.ignored() == InapplicableKeyError::Ignored::if_changed && !changed;
      if (again || wrong || error.place().file.starts_with("--set ")) throw;
      ignored.push_back(error);
    }
  }
}

}  // namespace

Document named_preset(const Section& section, std::string_view key, const std::string& name,
                      std::string_view folder) {
  const std::string path = preset_path(folder, name);
  if (path.empty()) {
    const std::vector<std::string> known = preset_names(folder);
    const std::string near = nearest_name(name, known);
    section.refuse(key, fmt::format("\"{}\"", name.substr(0, 60)),
                   fmt::format("{}{}", allowed_presets(folder),
                               near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
  }
  return Document::parse_file(path);
}

Scenario read_scenario_file(const std::string& path, const Overrides& overrides) {
  return read_scenario_text(read_text_file(path, "TOML file"), path, overrides);
}

Scenario read_scenario_document(Document document, const std::string& path) {
  return read_scenario({std::move(document), std::nullopt}, path, {});
}

Scenario read_scenario_text(std::string_view text, const std::string& file_name, const Overrides& overrides) {
  return read_scenario(open_scenario(text, file_name), file_name, overrides);
}

}  // namespace rehearse
