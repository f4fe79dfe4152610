// Reads a convolutional network: a list of stages as in the tables of the papers, expanded to single layers.
// Every [[stage]] has a kind and may have a name. Further keys, with what is meant if they are left out:
//   convolution   channels, kernel, stride 1, padding (keeps the map's size), repeat 1, norm false; ReLU
//   follows bottleneck    blocks, width, stride 1, expansion 4; 1x1, 3x3, 1x1, each with norm, and the
//   shortcut basic         blocks, width, stride 1; 3x3, 3x3, each with norm, and the shortcut max-pool
//   kernel, stride, padding (kernel - 1) / 2 average-pool  size 1: of the map it leaves linear        widths,
//   the last of them the classes; ReLU between them
#include <fmt/format.h>

#include <cmath>

#include "models/kernels.hpp"

namespace rehearse {
namespace {

using Kind = Convolution::Kind;
constexpr std::array<std::string_view, 6> kStageKinds = {"convolution", "bottleneck",   "basic",
                                                         "max-pool",    "average-pool", "linear"};
enum class Stage { convolution, bottleneck, basic, max_pool, average_pool, linear };

struct Window {
  double kernel = 1, stride = 1, padding = 0;
};

// Follows the feature map through the network.
class Builder {
public:
  explicit Builder(ConvolutionalNet& net) : net_(net), channels_(net.channels), size_(net.image_size) {}

  void stage(Section stage) {
    const auto kind = static_cast<Stage>(stage.choice("kind", kStageKinds));
    const std::string number = std::to_string(++stages_);
    name_ = stage.text("name", std::string(kStageKinds[static_cast<std::size_t>(kind)]) + number);
    if (flat_ && kind != Stage::linear) {
      stage.refuse("kind", fmt::format("\"{}\" after a linear stage", stage.text("kind")), "\"linear\"");
    }
    switch (kind) {
      case Stage::convolution:
        convolutions(stage);
        break;
      case Stage::bottleneck:
      case Stage::basic:
        residual(stage, kind);
        break;
      case Stage::max_pool:
      case Stage::average_pool:
        pool(stage, kind);
        break;
      case Stage::linear:
        linear(stage);
        break;
    }
    stage.finish();
  }

  bool ends_linear() const { return flat_; }
  double outputs() const { return channels_; }

private:
  static double whole(Section& s, std::string_view key, std::int64_t min, std::int64_t max,
                      std::optional<std::int64_t> fallback = std::nullopt) {
    return static_cast<double>(s.integer(key, min, max, fallback));
  }

  // Kernel, stride and padding; the padding keeps the size of the map unless it is given.
  Window window(Section& s, std::optional<std::int64_t> stride) const {
    Window w;
    w.kernel = whole(s, "kernel", 1, 10000);
    w.stride = whole(s, "stride", 1, 10000, stride);
    w.padding = whole(s, "padding", 0, 10000, static_cast<std::int64_t>((w.kernel - 1) / 2));
    if (w.kernel > size_ + 2 * w.padding) {
      s.refuse("kernel", fmt::format("{}", w.kernel),
               fmt::format("1 to {} (the padded feature map)", size_ + 2 * w.padding));
    }
    return w;
  }

  Convolution layer(Kind kind, std::string name, double channels, Window w = {}) const {
    Convolution c;
    c.kind = kind;
    c.name = std::move(name);
    c.in_channels = channels_;
    c.out_channels = channels;
    c.kernel = w.kernel;
    c.stride = w.stride;
    c.padding = w.padding;
    c.in_size = size_;
    c.out_size = std::floor((size_ + 2 * w.padding - w.kernel) / w.stride) + 1;
    return c;
  }

  void add(Convolution c) {
    channels_ = c.out_channels;
    size_ = c.out_size;
    net_.blocks.back().layers.push_back(std::move(c));
  }

  void begin_block(std::string name) {
    if (joins_next_) {
      joins_next_ = false;
      net_.blocks.back().name = std::move(name);
    } else {
      net_.blocks.push_back({std::move(name), {}});
    }
  }

  std::string numbered(std::int64_t i, std::int64_t of) const {
    return of == 1 ? name_ : name_ + "_" + std::to_string(i + 1);
  }

  void convolutions(Section& s) {
    const double channels = whole(s, "channels", 1, 1'000'000);
    const std::int64_t repeat = s.integer("repeat", 1, 1000, 1);
    const bool norm = s.boolean("norm", false);
    for (std::int64_t i = 0; i < repeat; ++i) {
      const Window w = window(s, 1);
      begin_block(numbered(i, repeat));
      Convolution c = layer(Kind::convolution, "conv", channels, w);
      c.bias = !norm;
      add(std::move(c));
      if (norm) add(layer(Kind::norm, "norm", channels_));
      add(layer(Kind::activation, "relu", channels_));
    }
  }

  void convolution_and_norm(const std::string& name, double channels, Window w) {
    add(layer(Kind::convolution, name, channels, w));
    add(layer(Kind::norm, name + ".norm", channels_));
  }

  // He et al. 2016, figures 2 and 5. The stride is that of the first block's 3x3 convolution.
  void residual(Section& s, Stage kind) {
    const std::int64_t blocks = s.integer("blocks", 1, 1000);
    const double width = whole(s, "width", 1, 1'000'000);
    const double stride = whole(s, "stride", 1, 1000, 1);
    const double out = kind == Stage::bottleneck ? width * whole(s, "expansion", 1, 1000, 4) : width;
    for (std::int64_t i = 0; i < blocks; ++i) {
      begin_block(numbered(i, blocks));
      const double step = i == 0 ? stride : 1;
      const double in = channels_, in_size = size_;
      if (kind == Stage::bottleneck) {
        convolution_and_norm("conv1", width, {1, 1, 0});
        add(layer(Kind::activation, "relu1", channels_));
        convolution_and_norm("conv2", width, {3, step, 1});
        add(layer(Kind::activation, "relu2", channels_));
        convolution_and_norm("conv3", out, {1, 1, 0});
      } else {
        convolution_and_norm("conv1", width, {3, step, 1});
        add(layer(Kind::activation, "relu1", channels_));
        convolution_and_norm("conv2", out, {3, 1, 1});
      }
      const double out_size = size_;
      if (in != out || step != 1) {  // a projection makes the shapes equal
        channels_ = in;
        size_ = in_size;
        convolution_and_norm("shortcut", out, {1, step, 0});
      }
      Convolution sum = layer(Kind::add, "add", out);
      sum.in_channels = in;
      sum.in_size = in_size;
      sum.out_size = out_size;
      add(std::move(sum));
      add(layer(Kind::activation, "relu", out));
    }
  }

  // A max pool belongs to the block before it, whose output it makes smaller; an average pool to the
  // classifier.
  void pool(Section& s, Stage kind) {
    if (kind == Stage::max_pool) {
      const Window w = window(s, std::nullopt);
      if (net_.blocks.empty()) begin_block(name_);
      add(layer(Kind::max_pool, name_, channels_, w));
      return;
    }
    const double size = whole(s, "size", 1, static_cast<std::int64_t>(size_), 1);
    begin_block(name_);
    joins_next_ = true;
    Convolution c = layer(Kind::average_pool, name_, channels_);
    c.out_size = size;
    add(std::move(c));
  }

  void linear(Section& s) {
    const std::vector<std::int64_t> widths = s.integers("widths", 1, 100'000'000);
    if (widths.empty()) s.refuse("widths", "empty", "at least one width, e.g. [1000] classes");
    // A ReLU stands between linear layers, none after the last.
    if (flat_) add(layer(Kind::activation, "relu", channels_));
    for (std::size_t i = 0; i < widths.size(); ++i) {
      begin_block(numbered(static_cast<std::int64_t>(i), static_cast<std::int64_t>(widths.size())));
      Convolution c = layer(Kind::linear, "linear", static_cast<double>(widths[i]));
      c.out_size = 1;
      c.bias = true;
      add(std::move(c));
      if (i + 1 < widths.size()) add(layer(Kind::activation, "relu", channels_));
    }
    flat_ = true;
  }

  ConvolutionalNet& net_;
  double channels_, size_;  // of the feature map so far
  std::string name_;
  int stages_ = 0;
  bool flat_ = false, joins_next_ = false;
};

}  // namespace

ConvolutionalNet read_convolutional(Section section) {
  ConvolutionalNet net;
  net.image_size = static_cast<double>(section.integer("image_size", 1, 1'000'000));
  net.channels = static_cast<double>(section.integer("channels", 1, 1'000'000, 3));
  Builder builder(net);
  std::vector<Section> stages = section.sections("stage");
  if (stages.empty()) section.refuse("stage", "missing", "at least one [[stage]]");
  for (const Section& stage : stages) builder.stage(stage);
  if (!builder.ends_linear()) {
    stages.back().refuse("kind", "the last stage",
                         "a network that ends with kind = \"linear\", its classifier");
  }
  net.classes = builder.outputs();
  section.finish();
  return net;
}

}  // namespace rehearse
