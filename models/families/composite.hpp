// Models with other parts beside a text model, and types whose layers are not modelled.
#pragma once

#include "models/families/family.hpp"

namespace rehearse::families {

// The part of a model that sees images, for its number of parameters. It is not simulated.
struct Tower {
  Keys width = "hidden_size", inner = "intermediate_size", layers = "num_hidden_layers", patch = "patch_size",
       image = "image_size";
  double width_otherwise = 0, inner_otherwise = 0, layers_otherwise = 0, patch_otherwise = 0,
         image_otherwise = 0;
  Keys ratio = {};    // inner / width, instead
  double frames = 1;  // of a patch
  bool gated = false, biases = true, projection_bias = true, qkv_biases = true;
  bool rms = false;  // norms without offsets
  bool patch_bias = true, class_token = false;
  bool positions = true;      // a table of them, one for each patch of an image
  double extra_norms = 0;     // beside two a layer
  Keys extra_positions = {};  // the number of rows of the table, instead
  // Between the tower and the text model.
  enum class Joint : std::uint8_t {
    none,
    merger,
    mlp,
    single,
    llama4,
    mistral,
    deepstack
  } joint = Joint::none;
};

// A model with parts beside its text model.
struct Composite {
  std::string_view type;
  Keys inside = "text_config";  // the text model's config
  std::string_view text = {};   // its model_type, where it has none
  bool flat = false;            // the text model's keys may stand in the outer config
  std::string_view tower_key = "vision_config";
  const Tower* tower = nullptr;  // nullptr: its size is not counted
};

// A type whose layers are not modelled.
struct MissingFamily {
  std::string_view type, layers;  // "Mamba-2 (state space) layers"
};

std::span<const Composite> composite_families();
std::span<const MissingFamily> missing_families();

}  // namespace rehearse::families
