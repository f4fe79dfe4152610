// Reads [model] of a scenario, model files and presets, which contain the same TOML tables.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "models/kernels.hpp"
#include "models/text/printable.hpp"
#include "models/text/si_prefixes.hpp"
#include "models/text/toml_table.hpp"
#include "models/text/toml_value.hpp"

namespace rehearse {
namespace {

// In the order of the alternatives of Model::shape.
constexpr std::array<std::string_view, 4> kShapes = {"transformer", "convolutional", "multi_layer_perceptron",
                                                     "profiled"};
constexpr std::array<std::string_view, 3> kWords = {"name", "title", "sources"};  // allowed beside any shape
constexpr std::array<std::string_view, 3> kNamed = {"preset", "file", "huggingface"};
constexpr std::array<std::string_view, 7> kModelKeys = {
    "preset", "file", "huggingface", "transformer", "convolutional", "multi_layer_perceptron", "profiled"};

// Returns the only one of `keys` that the section has.
std::string only_one(const Section& section, std::span<const std::string_view> keys) {
  std::string found;
  for (const std::string_view key : keys) {
    if (!section.has(key)) continue;
    if (!found.empty())
      section.refuse(key, "given with " + found, fmt::format("one of {}", fmt::join(keys, ", ")));
    found = key;
  }
  if (!found.empty()) return found;
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const std::string& key : section.keys()) {
    if (std::find(kWords.begin(), kWords.end(), key) != kWords.end()) continue;
    const std::string near = nearest_name(key, known);
    if (!near.empty())
      throw UnknownKeyError(section.place(key),
                            fmt::format("unknown key {}; did you mean \"{}\"?", in_quotes(key), near));
  }
  throw InputError(section.place(),
                   fmt::format("no model is described; allowed: one of {}", fmt::join(keys, ", ")));
}

MultiLayerPerceptron read_perceptron(Section s) {
  const std::vector<std::int64_t> widths = s.integers("widths", 1, 100'000'000);
  if (widths.size() < 2) {
    s.refuse("widths", s.has("widths") ? fmt::format("{} of them", widths.size()) : "missing",
             "two or more: input, hidden..., output");
  }
  s.finish();
  return {{widths.begin(), widths.end()}};
}

// Reads the number of parts with times, either stages or layers.
std::size_t count_parts(Section& s) {
  if (s.has("stages") && s.has("layers")) s.refuse("layers", "given with stages", "one of stages, layers");
  return static_cast<std::size_t>(s.integer(s.has("layers") ? "layers" : "stages", 1, 10'000));
}

ProfiledModel read_profiled(Section s) {
  s.expect({"stages", "layers", "forward_ms", "backward_input_ms", "backward_weight_ms", "p2p_bytes",
            "parameters", "names", "forward_kernels", "backward_kernels", "micro_batch", "optimizer_ms",
            "optimizer_kernels", "stage_deviation", "forward_wait_ms", "backward_wait_ms", "data_wait_ms",
            "optimizer_wait_ms"});
  ProfiledModel profiled;
  profiled.has_layers = s.has("layers");
  const std::size_t parts = count_parts(s);
  const std::string_view noun = profiled.has_layers ? "layers" : "stages";
  const auto check_length = [&](std::string_view key, std::size_t found, std::string_view or_one) {
    if (found != parts)
      s.refuse(key, fmt::format("an array of {}", found),
               fmt::format("{}an array with one element for each of the {} {}", or_one, parts, noun));
  };
  // A number for all parts, or an array with one number per part.
  const auto per_part = [&](std::string_view key, Range range, double unit) {
    std::vector<double> values =
        s.is_array(key) ? s.numbers(key, range) : std::vector<double>(parts, s.number(key, range));
    check_length(key, values.size(), "a number, or ");
    for (double& value : values) value *= unit;
    return values;
  };
  const auto per_part_if_given = [&](std::string_view key, Range range, double unit = 1) {
    return s.has(key) ? per_part(key, range, unit) : std::vector<double>();
  };
  // A hundred times what a device can hold; transfers of 10^14 bytes and more exceed the engine's arithmetic.
  constexpr Range kFitsDevice{0, 1e13, false}, kKernels{0, 1e9, false};
  // The times of a layer can be 0, but not those of a stage.
  const Range time = profiled.has_layers ? kNotNegative : kPositive;
  profiled.forward_s = per_part("forward_ms", time, kMilli);
  profiled.backward_input_s = per_part("backward_input_ms", time, kMilli);
  profiled.backward_weight_s = per_part("backward_weight_ms", kNotNegative, kMilli);
  profiled.p2p_bytes = per_part("p2p_bytes", kFitsDevice, 1);
  profiled.parameters = per_part_if_given("parameters", kFitsDevice);
  profiled.forward_kernels = per_part_if_given("forward_kernels", kKernels);
  profiled.backward_kernels = per_part_if_given("backward_kernels", kKernels);
  profiled.names = s.texts("names");
  if (s.has("names")) check_length("names", profiled.names.size(), "");
  profiled.micro_batch = static_cast<double>(s.integer("micro_batch", 1, 1'000'000, 0));
  profiled.optimizer_s = s.number("optimizer_ms", kNotNegative, 0) * kMilli;
  profiled.optimizer_kernels = s.number("optimizer_kernels", kKernels, 0);
  profiled.forward_wait_s = per_part_if_given("forward_wait_ms", kNotNegative, kMilli);
  profiled.backward_wait_s = per_part_if_given("backward_wait_ms", kNotNegative, kMilli);
  profiled.data_wait_s = s.number("data_wait_ms", kNotNegative, 0) * kMilli;
  profiled.optimizer_wait_s = s.number("optimizer_wait_ms", kNotNegative, 0) * kMilli;
  if (profiled.optimizer_wait_s > 0 && profiled.optimizer_s <= 0)
    s.require("optimizer_ms", "optimizer_wait_ms", "the time of the update's kernels");
  if (profiled.optimizer_s > 0 && profiled.parameters.empty())
    s.require("parameters", "optimizer_ms", "the elements that are updated");
  // The fastest of 10,000 stages is expected 3.9 standard deviations below the mean and must take a positive
  // time.
  profiled.stage_deviation = s.number("stage_deviation", {0, 0.25}, 0);
  if (profiled.has_layers && s.has("stage_deviation"))
    s.refuse("stage_deviation", "given with layers", "only with stages");
  s.finish();
  return profiled;
}

struct Describe {
  std::string operator()(const Transformer& t) const {
    const std::string experts =
        t.experts > 0 ? fmt::format(", {} {}", t.experts, t.experts == 1 ? "expert" : "experts") : "";
    return fmt::format("Transformer, {} {} of {}{}", t.layers, t.layers == 1 ? "layer" : "layers", t.hidden,
                       experts);
  }
  std::string operator()(const ConvolutionalNet& net) const {
    return fmt::format("Convolutional network, {} blocks", net.blocks.size());
  }
  std::string operator()(const MultiLayerPerceptron& mlp) const {
    return fmt::format("Multi-layer perceptron {}", fmt::join(mlp.widths, "-"));
  }
  std::string operator()(const ProfiledModel& profiled) const {
    return fmt::format("Profiled model, {} {}", profiled.forward_s.size(),
                       profiled.has_layers ? "layers" : "stages");
  }
};

// Reads the TOML table of the shape.
void read_shape(Section& section, const std::string& kind, Model& model) {
  if (kind == "transformer") {
    Transformer transformer = read_transformer(section.section(kind));
    model.sample_unit = transformer.patch_size > 0 ? "images" : "sequences";
    model.shape = std::move(transformer);
  } else if (kind == "convolutional") {
    model.shape = read_convolutional(section.section(kind));
    model.sample_unit = "images";
  } else if (kind == "multi_layer_perceptron") {
    model.shape = read_perceptron(section.section(kind));
    model.sample_unit = "samples";
  } else {
    model.shape = read_profiled(section.section(kind));
    model.sample_unit = "samples";
  }
}

// Reads the TOML table of the shape and the title, sources and notes beside it.
void read_body(Section& section, const std::string& kind, Model& model) {
  read_shape(section, kind, model);
  model.title = section.text("title", std::visit(Describe{}, model.shape));
  model.sources = section.texts("sources");
  model.notes = section.texts("notes");
  section.finish();
}

// A model from a separate file, and the TOML table of its shape.
struct NamedModel {
  Model model;
  TomlValue shape;
};

std::string shape_name(const Model& model) {
  return std::string(kShapes[model.shape.index()]);
}

NamedModel model_file(const std::string& path) {
  const Document document = Document::parse_file(path);
  NamedModel named;
  named.model = parse_model_file(document, path);
  named.shape = find_entry(document.tree(), shape_name(named.model))->value;
  return named;
}

NamedModel huggingface_file(const std::string& path, const std::string& family) {
  NamedModel named;
  named.model = read_huggingface(path, family);  // sets its shape and notes
  const Transformer& transformer = std::get<Transformer>(named.model.shape);
  named.model.name = title_of_file(path);
  named.model.title = Describe{}(transformer);
  named.model.sources = {path};
  named.shape = transformer_table(transformer, {path, 0, 0});
  return named;
}

// Returns e.g. "known, known; did you mean "known"?".
std::string known_presets(const std::string& name, const std::vector<std::string>& known) {
  std::string text = fmt::format("{}", fmt::join(known, ", "));
  const std::string near = nearest_name(name, known);
  if (!near.empty()) text += fmt::format("; did you mean \"{}\"?", near);
  return text;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Model parse_model_file(Document document, const std::string& path) {
  Section root = document.root();
  Model model;
  model.name = title_of_file(path);
  read_body(root, only_one(root, kShapes), model);
  return model;
}

Model model_preset(const std::string& name) {
  const std::vector<std::string> known = preset_names("models");
  if (!contains(known, name)) {
    throw InputError({name}, "no such model preset; allowed: " + known_presets(name, known));
  }
  return model_file(preset_path("models", name)).model;
}

namespace {

NamedModel named_model(Section& section, const std::string& base_folder) {
  const std::string key = only_one(section, kNamed);
  if (key != "huggingface" && section.has("family"))
    section.refuse("family", "given with " + key, "only beside huggingface");
  const std::string name = section.text(key);
  const std::string path = (std::filesystem::path(base_folder) / name).string();
  if (key == "file") return model_file(path);
  if (key == "huggingface") return huggingface_file(path, section.text("family", ""));
  const std::vector<std::string> known = preset_names("models");
  if (!contains(known, name)) section.refuse("preset", in_quotes(name), known_presets(name, known));
  return model_file(preset_path("models", name));
}

// Reads a named model with the changes to keys of its shape that the section gives.
Model read_changed(Section& section, const NamedModel& named) {
  const std::string shape = shape_name(named.model);
  for (const std::string_view other : kShapes)
    if (other != shape && section.has(other))
      section.refuse(other, "given", fmt::format("[model.{}], the shape of {}", shape, named.model.name));
  std::vector<std::string> changed;
  const Section own = section.section(shape);
  if (own.present()) changed = changed_keys(*own.tree(), named.shape);
  TomlValue defaults = toml_table();
  put(defaults, shape, named.shape);
  fill_in(*section.tree(), defaults);
  Model model;
  read_shape(section, shape, model);
  model.name = section.text("name", named.model.name);
  model.title = section.text("title", named.model.title + but_for(changed));
  model.notes = section.texts("notes");
  if (!section.has("notes")) model.notes = named.model.notes;
  model.sources = section.texts("sources");
  if (!section.has("sources")) {
    model.sources = named.model.sources;
    if (!changed.empty()) model.sources.push_back(changed_by_scenario(changed));
  }
  model.left_out = named.model.left_out;
  section.finish();
  return model;
}

}  // namespace

Model read_model(Section& section, const std::string& base_folder) {
  const auto has = [&](std::string_view key) { return section.has(key); };
  if (std::any_of(kNamed.begin(), kNamed.end(), has))
    return read_changed(section, named_model(section, base_folder));
  const std::string key = only_one(section, kModelKeys);
  Model model;
  model.name = section.text("name", key);
  read_body(section, key, model);
  return model;
}

}  // namespace rehearse
