// Counts the parameters of vision towers, which are not simulated, from the shapes of their layers in the
// library.
#include <algorithm>

#include "models/families/read_family.hpp"
#include "models/transformer_limits.hpp"

namespace rehearse::families {
namespace {

using Config = HuggingFaceConfig;

double linear(double in, double out, bool bias) {
  return in * out + (bias ? out : 0);
}

struct TowerSizes {
  double width, inner, layers, patch, image;
};

TowerSizes sizes_of(const Tower& t, const Config& c) {
  TowerSizes z{};
  z.width = c.whole(t.width, kMaxWidth, t.width_otherwise);
  z.inner = t.ratio.empty() ? c.whole(t.inner, kMaxInner, t.inner_otherwise)
                            : c.number(t.ratio, 0.001, 1000, 4) * z.width;
  z.layers = c.whole(t.layers, kMaxLayers, t.layers_otherwise);
  z.patch = c.whole(t.patch, kMaxImage, t.patch_otherwise);
  z.image = t.image_otherwise > 0 ? c.whole(t.image, kMaxImage, t.image_otherwise) : 0;
  return z;
}

// Qwen's: the elements of `merged` patches, with a norm of one or of all of them, go through two products.
double merger(double width, double merged, double out, double norm) {
  return norm + linear(merged * width, merged * width, true) + linear(merged * width, out, true);
}

double joint_parameters(const Tower& t, const TowerSizes& z, const Config& vision, const Config& outer,
                        double hidden) {
  const double norms = t.rms ? 1 : 2, w = z.width;
  const auto squared = [](double n) { return n * n; };
  switch (t.joint) {
    case Tower::Joint::none:
      return 0;
    case Tower::Joint::single:  // Gemma 3: a norm and a product
      return w + w * hidden;
    case Tower::Joint::mlp:
      return linear(w, hidden, true) + linear(hidden, hidden, true);
    case Tower::Joint::merger:
      return merger(w, squared(vision.whole("spatial_merge_size", 64, 2)), hidden, norms * w);
    case Tower::Joint::deepstack: {  // Qwen3-VL: one more for each of some layers
      const double merged = squared(vision.whole("spatial_merge_size", 64, 2));
      const auto* indexes = vision.find("deepstack_visual_indexes");
      const double more = indexes && indexes->is_array() ? static_cast<double>(indexes->size()) : 3;
      return merger(w, merged, hidden, norms * w) + more * merger(w, merged, hidden, norms * merged * w);
    }
    case Tower::Joint::llama4: {  // shuffled pixels go through two products, then to the text model
      const double in = vision.whole("projector_input_dim", kMaxWidth, 4096),
                   out = vision.whole("projector_output_dim", kMaxWidth, 4096),
                   ratio = vision.number("pixel_shuffle_ratio", 0.01, 1, 0.5);
      return w / squared(ratio) * in + in * out + vision.whole("vision_output_dim", kMaxWidth, 4096) * hidden;
    }
    case Tower::Joint::mistral: {  // a norm, merged patches, two products
      const double merged = squared(outer.whole("spatial_merge_size", 64, 2));
      const bool bias = outer.boolean("multimodal_projector_bias", false);
      return w + merged * w * w + linear(w, hidden, bias) + linear(hidden, hidden, bias);
    }
  }
  return 0;
}

}  // namespace

double tower_parameters(const HuggingFaceConfig& outer, const Composite& composite, double hidden) {
  if (!composite.tower || !outer.find(composite.tower_key)) return 0;
  const Tower& t = *composite.tower;
  const Config c = outer.object(composite.tower_key);
  const TowerSizes z = sizes_of(t, c);
  const double w = z.width, norm = (t.rms ? 1 : 2) * w;
  const double attention = linear(w, 3 * w, t.qkv_biases) + linear(w, w, t.projection_bias);
  const double feed_forward = (t.gated ? 2 : 1) * linear(w, z.inner, t.biases) + linear(z.inner, w, t.biases);
  const double patches = z.image > 0 ? (z.image / z.patch) * (z.image / z.patch) : 0;
  double rows = t.positions ? patches + (t.class_token ? 1 : 0) : 0;
  if (!t.extra_positions.empty()) rows = c.whole(t.extra_positions, kMaxTokens, 2304);
  return z.layers * (attention + feed_forward + 2 * norm) +
         linear(c.whole("num_channels|in_channels|in_chans", kMaxWidth, 3) * t.frames * z.patch * z.patch, w,
                t.patch_bias) +
         (rows + (t.class_token ? 1 : 0)) * w + t.extra_norms * norm +
         joint_parameters(t, z, c, outer, hidden);
}

}  // namespace rehearse::families
