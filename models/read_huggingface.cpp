// Reads a config.json of Hugging Face transformers by the rows of families/.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "models/families/read_family.hpp"
#include "models/kernels.hpp"
#include "models/text/read_text.hpp"
#include "models/text/toml_value.hpp"

namespace rehearse {
namespace {

using families::Choice;
using Config = HuggingFaceConfig;

constexpr double kToldDifference = 0.005;
// The names of the number of experts in configs of mixtures of experts.
constexpr std::string_view kExpertKeys = "num_local_experts|num_experts|n_routed_experts|moe_num_experts";

void refuse_experts(const Config& c, const families::Family& family) {
  if (!family.experts.count.keys.empty()) return;
  const auto* found = c.find(kExpertKeys);
  if (!found || (found->is_number() && found->get<double>() <= 1)) return;
  std::vector<std::string_view> mixtures;
  for (const families::Family& one : families::mixture_families()) mixtures.push_back(one.type);
  c.refuse(kExpertKeys, fmt::format("{} in a model of type \"{}\"", describe(*found), family.type),
           fmt::format("experts in models of type \"{}\"", fmt::join(mixtures, "\", \"")));
}

// Bytes of an element of the checkpoint, 0 if it is not stored in one type.
double element_bytes_of(const Config& c) {
  if (c.find("quantization_config")) return 0;
  const std::string type = c.text("torch_dtype|dtype", "");
  struct Type {
    std::string_view name;
    double bytes;
  };
  for (const Type& one : {Type{"float32", 4}, {"bfloat16", 2}, {"float16", 2}, {"half", 2}})
    if (type == one.name) return one.bytes;
  return 0;
}

std::string in_billions_exactly(double n) {
  return n >= 1e9 ? fmt::format("{:.3f} billion", n / 1e9) : fmt::format("{:.3f} million", n / 1e6);
}

double everything(const Model& model) {
  double sum = parameter_count(model);
  for (const LeftOut& part : model.left_out) sum += part.parameters;
  return sum;
}

// Compares with the index of the checkpoint beside the file, which states its size. A file that is none is
// not an error of the model: the note says so.
void compare_with_index(const Config& c, const std::string& path, Model& model) {
  constexpr const char* kIndex = "model.safetensors.index.json";
  const std::filesystem::path index = std::filesystem::path(path).parent_path() / kIndex;
  std::error_code failed;
  if (!std::filesystem::is_regular_file(index, failed)) return;
  double published = 0;
  try {
    const Config file(index.string(), read_text_file(index.string(), kIndex));
    const Config metadata = file.object("metadata");
    constexpr double kMost = 1e18;
    published = metadata.number("total_parameters", 1, kMost, 0);
    const double bytes = element_bytes_of(c), total = metadata.number("total_size", 1, kMost, 0);
    if (published == 0 && bytes > 0) published = total / bytes;
  } catch (const InputError& error) {
    model.notes.push_back(fmt::format("The checkpoint's index cannot be compared: {}.", error.what()));
    return;
  }
  if (published <= 0) return;
  const double counted = everything(model), difference = counted / published - 1;
  if (std::abs(difference) <= kToldDifference) return;
  model.notes.push_back(
      fmt::format("{} parameters are counted, {:.1f} % {} than {} says ({}): a part of the model may be "
                  "missing here, or the "
                  "checkpoint stores one twice.",
                  in_billions_exactly(counted), std::abs(difference) * 100, difference > 0 ? "more" : "fewer",
                  kIndex, in_billions_exactly(published)));
}

void leave_out_tower(const Config& file, const Choice& choice, Model& model) {
  const families::Composite& composite = *choice.composite;
  if (!file.find(composite.tower_key)) return;
  model.left_out.push_back(
      {fmt::format("the vision encoder ({})", composite.tower_key),
       families::tower_parameters(file, composite, std::get<Transformer>(model.shape).hidden)});
}

}  // namespace

Model read_huggingface(const std::string& path, const std::string& family) {
  const std::string text = read_text_file(path, "config.json");
  Model model = parse_huggingface(text, path, family);
  compare_with_index(Config(path, text), path, model);
  return model;
}

Model parse_huggingface(const std::string& text, const std::string& path, const std::string& family) {
  const Config file(path, text);
  const Choice choice = families::choose_family(file, family);
  Model model;
  model.sample_unit = "sequences";
  if (!choice.note.empty()) model.notes.push_back(choice.note);
  if (choice.composite && choice.inside.empty() && file.find(choice.composite->tower_key))
    model.notes.push_back(
        fmt::format("Only the text model of this multi-modal model is simulated, without {}.",
                    choice.composite->tower_key));
  if (!choice.inside.empty())
    model.notes.push_back(
        fmt::format("Only the text model ({}) of this multi-modal model is simulated.", choice.inside));
  const Config c = choice.inside.empty() ? file : file.object(choice.inside);
  refuse_experts(c, *choice.family);
  Transformer shape = families::read_family(c, *choice.family, model);
  model.shape = std::move(shape);
  if (choice.composite) leave_out_tower(file, choice, model);
  return model;
}

}  // namespace rehearse
