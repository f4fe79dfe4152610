// Provides what all kinds of models use to write their kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/layer_writer.hpp"
#include "models/model.hpp"
#include "models/text/toml_value.hpp"

namespace rehearse {

// A memory-bound kernel that moves `bytes`: reads `reads` arrays of equal size and writes `writes` (a mask is
// a fraction of one).
inline Kernel moves(double bytes, double reads = 1, double writes = 1) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  kernel.bytes = bytes;
  kernel.reads = static_cast<float>(reads);
  kernel.writes = static_cast<float>(writes);
  return kernel;
}

// A kernel that reads and writes arrays of different sizes, in the ratio `read` to `written`.
inline Kernel moves_between(double bytes, double read, double written) {
  const double one = std::min(read, written);
  return one > 0 ? moves(bytes, read / one, written / one) : moves(bytes);
}

// Arrays of `bytes` each, with rows of `width` elements of `element` bytes.
struct RowArrays {
  double bytes = 0, width = 0, element = 0;
};
inline Kernel over_rows(MemoryForm form, int reads, int writes, const RowArrays& of) {
  Kernel kernel = moves((reads + writes) * of.bytes, reads, writes);
  kernel.form = form;
  kernel.width = of.width;
  kernel.element = static_cast<float>(of.element);
  return kernel;
}
inline Kernel norm_forward(const RowArrays& of) {
  return over_rows(MemoryForm::norm_forward, 1, 1, of);
}
inline Kernel norm_backward(const RowArrays& of) {
  return over_rows(MemoryForm::norm_backward, 2, 1, of);
}
inline Kernel norm_parameters(const RowArrays& of) {
  return over_rows(MemoryForm::norm_parameters, 2, 0, of);
}
inline Kernel softmax_forward(const RowArrays& of) {
  return over_rows(MemoryForm::softmax_forward, 1, 1, of);
}
inline Kernel softmax_backward(const RowArrays& of, bool soft_capped = false) {
  return over_rows(MemoryForm::softmax_backward, soft_capped ? 3 : 2, 1, of);
}
inline Kernel column_sums(const RowArrays& of) {
  return over_rows(MemoryForm::column_sums, 1, 0, of);
}
// A kernel of batch norm; its rows are the planes of `channels` channels.
inline Kernel batch_norm(MemoryForm form, double channels, const RowArrays& of) {
  Kernel kernel = over_rows(form, 2, form == MemoryForm::batch_norm_sums ? 0 : 1, of);
  kernel.channels = static_cast<int>(std::lround(channels));
  return kernel;
}
inline Kernel channel_sums(double channels, const RowArrays& of) {
  Kernel kernel = over_rows(MemoryForm::channel_sums, 1, 0, of);
  kernel.channels = static_cast<int>(std::lround(channels));
  return kernel;
}

// `batch` products of [m,k] x [k,n]; reads each operand and writes the result once.
inline Kernel product(Kernel::Kind kind, double m, double n, double k, double element, double batch = 1) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.batch = batch;
  kernel.bytes = element * batch * (m * k + k * n + m * n);
  return kernel;
}

inline void append(std::vector<Kernel>& to, const std::vector<Kernel>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Adds the products of y = x W for `rows` rows of x. The caller adds the bias and its cost.
void add_linear(LayerCost& layer, double rows, double out, double in, double element,
                bool input_gradient = true);

// Share of one of `shards` devices in a dimension of `size`, which is padded to a multiple of `shards`.
double share_of(double size, int shards);

// Bytes that softmax and cross-entropy move per logit, forward and backward together, if they are computed by
// separate kernels.
double unfused_loss_bytes(Precision precision);
// Returns the same of a loss in one kernel that overwrites the logits with their gradients: they are read
// twice and written once (NVIDIA/TransformerEngine, transformer_engine/pytorch/triton/cross_entropy.py).
// Logits in 16 bits take kFusedLossPeakBytes of memory.
double fused_loss_bytes(Precision precision);
inline constexpr double kFusedLossPeakBytes = 2;

// Adds softmax cross-entropy over value `logits`, `rows` rows of `vocabulary` elements on all devices
// together, as the segments maximum, sums and loss. Logits are stored in the width of the precision but
// processed in fp32, and the softmax is saved in fp32 (Korthikanti et al. 2022, section 4.3).
void add_loss(LayerWriter& layer, int logits, const PassShape& pass, double rows, double vocabulary);

// One pass of a convolution as an implicit product: rows are the pixels of all samples, k the inputs of each
// output pixel.
Kernel convolution_kernel(const Convolution& convolution, double samples, double element,
                          ConvolutionShape::Pass pass);
Kernel convolution_kernel(const ConvolutionShape& shape, double element);

// The model's FLOPs in these kernels; only matrix products count.
double product_flops(const std::vector<Kernel>& kernels);

std::vector<Layer> transformer_layers(const Transformer& t, const PassShape& pass);
std::vector<Layer> convolutional_layers(const ConvolutionalNet& net, const PassShape& pass);
std::vector<Layer> perceptron_layers(const MultiLayerPerceptron& shape, const PassShape& pass);
std::vector<Layer> profiled_layers(const ProfiledModel& shape, const PassShape& pass);

// Reads [convolutional]: stages written as in the papers' tables, expanded to single layers.
ConvolutionalNet read_convolutional(Section section);
// read_transformer() reads the keys of [transformer]; transformer_table() writes the TOML table that
// reproduces a shape, with all values at `place`.
Transformer read_transformer(Section section);
TomlValue transformer_table(const Transformer& shape, const Place& place = {});
// Reads the shape from a config.json of Hugging Face transformers, by the rows of families/, with notes on
// what it leaves out. `family`: the type to read it as, instead of its own; empty: its own.
// read_huggingface() also compares the number of parameters with model.safetensors.index.json beside the
// file, if it is there.
Model read_huggingface(const std::string& path, const std::string& family = "");
Model parse_huggingface(const std::string& text, const std::string& path, const std::string& family = "");
// Reads a model file: the TOML table of one shape, and its name, title and sources.
Model parse_model_file(Document document, const std::string& path);

}  // namespace rehearse
