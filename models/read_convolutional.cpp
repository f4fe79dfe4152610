// Reads a convolutional network: a list of stages as in the tables of the papers, expanded to single layers.
// Every [[stage]] has a kind and can have a name. Further keys, with their defaults:
//   convolution   channels, kernel, stride 1, padding (preserves the map's size), repeat 1, norm false;
//                 followed by ReLU
//   bottleneck    blocks, width, stride 1, expansion 4; 1x1, 3x3, 1x1, each with norm, and the shortcut
//   basic         blocks, width, stride 1; 3x3, 3x3, each with norm, and the shortcut
//   branches      branches, repeat 1; each branch reads the block's input; their outputs are concatenated.
//                 A branch is a string of steps: "1x7:192" (height, width, channels; followed by norm and
//                 ReLU), "avg3", "max3"; "/2" after a step is its stride, without padding; "1x3:8|3x1:8" are
//                 two convolutions with the same input, whose outputs are concatenated
//   max-pool      kernel, stride, padding (kernel - 1) / 2
//   average-pool  size 1 (of its output map)
//   linear        widths, of which the last is the number of classes; ReLU between them
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "models/kernels.hpp"
#include "models/text/number_in.hpp"

namespace rehearse {
namespace {

using OpKind = Convolution::Kind;
constexpr std::array<std::string_view, 7> kStageKinds = {"convolution",  "bottleneck", "basic",   "max-pool",
                                                         "average-pool", "linear",     "branches"};
enum class Stage { convolution, bottleneck, basic, max_pool, average_pool, linear, branches };

struct Window {
  double kernel = 1, stride = 1, padding = 0;
};

// A step of a branch: HEIGHTxWIDTH:CHANNELS, avgKERNEL or maxKERNEL, with or without a /STRIDE behind it.
struct BranchStep {
  OpKind kind = OpKind::convolution;
  double height = 0, width = 0, channels = 0;
  double stride = 0;  // 0: not given
};

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Removes a positive number of at most `most_digits` digits from the text's beginning; returns 0 without one.
double take_whole(std::string_view& text, std::size_t most_digits) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > most_digits || text.front() == '0') return 0;
  const int number = number_in<int>(text.substr(0, digits)).value_or(0);
  text.remove_prefix(digits);
  return number;
}

// Without std::regex, which takes seconds to compile.
std::optional<BranchStep> branch_step(std::string_view text) {
  BranchStep step;
  const bool average = take_word(text, "avg");
  if (average || take_word(text, "max")) {
    step.kind = average ? OpKind::average_pool : OpKind::max_pool;
    step.height = step.width = take_whole(text, 3);
  } else {
    step.height = take_whole(text, 3);
    if (!take_word(text, "x")) return std::nullopt;
    step.width = take_whole(text, 3);
    if (!take_word(text, ":")) return std::nullopt;
    step.channels = take_whole(text, 6);
    if (step.channels == 0) return std::nullopt;
  }
  if (take_word(text, "/")) {
    step.stride = take_whole(text, 1);
    if (step.stride == 0) return std::nullopt;
  }
  if (step.height == 0 || step.width == 0 || !text.empty()) return std::nullopt;
  return step;
}

// Tracks the size of the feature map through the network.
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
      case Stage::branches:
        branches(stage);
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

  // Reads kernel, stride and padding. By default the padding preserves the size of the map.
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

  Convolution layer(OpKind kind, std::string name, double channels, Window w = {}) const {
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
      Convolution c = layer(OpKind::convolution, "conv", channels, w);
      c.bias = !norm;
      add(std::move(c));
      if (norm) add(layer(OpKind::norm, "norm", channels_));
      add(layer(OpKind::activation, "relu", channels_));
    }
  }

  void convolution_and_norm(const std::string& name, double channels, Window w) {
    add(layer(OpKind::convolution, name, channels, w));
    add(layer(OpKind::norm, name + ".norm", channels_));
  }

  // He et al. 2016, figures 2 and 5. The stride applies to the first block's 3x3 convolution.
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
        add(layer(OpKind::activation, "relu1", channels_));
        convolution_and_norm("conv2", width, {3, step, 1});
        add(layer(OpKind::activation, "relu2", channels_));
        convolution_and_norm("conv3", out, {1, 1, 0});
      } else {
        convolution_and_norm("conv1", width, {3, step, 1});
        add(layer(OpKind::activation, "relu1", channels_));
        convolution_and_norm("conv2", out, {3, 1, 1});
      }
      const double out_size = size_;
      if (in != out || step != 1) {  // a projection makes the shapes equal
        channels_ = in;
        size_ = in_size;
        Convolution projection = layer(OpKind::convolution, "shortcut", out, {1, step, 0});
        projection.input_kept = true;
        add(std::move(projection));
        add(layer(OpKind::norm, "shortcut.norm", channels_));
      }
      Convolution sum = layer(OpKind::add, "add", out);
      sum.in_channels = in;
      sum.in_size = in_size;
      sum.out_size = out_size;
      add(std::move(sum));
      add(layer(OpKind::activation, "relu", out));
    }
  }

  // Adds one step of a branch. `|` separates convolutions with the same input, whose outputs are
  // concatenated.
  void step(const Section& s, const std::string& text, const std::string& name, bool input_kept) {
    const auto refuse = [&] {
      s.refuse("branches", fmt::format("\"{}\" in a branch", text.substr(0, 40)),
               "steps such as \"3x3:64\", \"1x7:64\", \"3x3:64/2\", \"avg3\" or \"max3/2\", "
               "whose kernels are odd without a stride and fit the map");
    };
    // Without a stride the map keeps its size; with one there is no padding.
    const auto window = [&](const BranchStep& one) {
      Window w{one.height, 1, 0};
      if (one.stride == 0) {
        if (std::fmod(one.height, 2) == 0 || std::fmod(one.width, 2) == 0) refuse();
        w.padding = (one.height - 1) / 2;
      } else {
        w.stride = one.stride;
        if (one.height != one.width || one.height > size_) refuse();
      }
      return w;
    };
    const double in = channels_, in_size = size_;
    double channels = 0;
    int parts = 0;
    std::istringstream alternatives(text);
    for (std::string part; std::getline(alternatives, part, '|'); ++parts) {
      const std::optional<BranchStep> one = branch_step(part);
      if (!one) refuse();
      const double out_size = size_;
      channels_ = in;
      size_ = in_size;
      if (one->kind == OpKind::convolution) {
        Convolution c = layer(one->kind, name, one->channels, window(*one));
        c.kernel_width = one->width;
        c.input_kept = input_kept || parts > 0;
        add(std::move(c));
        add(layer(OpKind::norm, name + ".norm", channels_));
        add(layer(OpKind::activation, name + ".relu", channels_));
      } else {
        Convolution c = layer(one->kind, name, channels_, window(*one));
        c.input_kept = input_kept || parts > 0;
        add(std::move(c));
      }
      if (parts > 0 && size_ != out_size) refuse();
      channels += channels_;
    }
    if (parts == 0) refuse();
    if (parts > 1) concatenate(in, in_size, channels, parts);
    channels_ = channels;
  }

  void concatenate(double in, double in_size, double channels, int branches) {
    Convolution c = layer(OpKind::concatenate, "concatenate", channels);
    c.in_channels = in;
    c.in_size = in_size;
    c.branches = branches;
    add(std::move(c));
  }

  // Szegedy et al. 2016, figures 4 to 10.
  void branches(Section& s) {
    const std::vector<std::string> texts = s.texts("branches");
    const std::int64_t repeat = s.integer("repeat", 1, 100, 1);
    constexpr std::size_t kMaxBranches = 32, kMaxBytes = 1000;
    if (texts.empty() || texts.size() > kMaxBranches) {
      s.refuse("branches", fmt::format("{} of them", texts.size()),
               fmt::format("1 to {} branches, e.g. [\"1x1:64\"]", kMaxBranches));
    }
    for (const std::string& text : texts) {
      if (text.size() <= kMaxBytes) continue;
      s.refuse("branches", fmt::format("a branch of {} bytes", text.size()),
               fmt::format("at most {} bytes", kMaxBytes));
    }
    if (net_.blocks.empty()) s.refuse("kind", "the first stage", "a convolution before it");
    for (std::int64_t i = 0; i < repeat; ++i) {
      begin_block(numbered(i, repeat));
      const double in = channels_, in_size = size_;
      double channels = 0;
      bool kept = false;
      for (std::size_t branch = 0; branch < texts.size(); ++branch) {
        const double out_size = size_;
        channels_ = in;
        size_ = in_size;
        std::istringstream steps(texts[branch]);
        int count = 0;
        for (std::string text; steps >> text; ++count) {
          step(s, text, fmt::format("branch{}_{}", branch + 1, count + 1), count == 0 && kept);
          if (count == 0 && text.compare(0, 3, "avg") != 0) kept = true;
        }
        if (count == 0) s.refuse("branches", "an empty branch", "at least one step in each");
        if (branch > 0 && size_ != out_size) {
          s.refuse("branches", fmt::format("of sizes {} and {}", out_size, size_), "maps of one size");
        }
        channels += channels_;
      }
      concatenate(in, in_size, channels, static_cast<int>(texts.size()));
    }
  }

  // Adds a max pool to the block before it, whose output it reduces, or an average pool to the block of the
  // classifier.
  void pool(Section& s, Stage kind) {
    if (kind == Stage::max_pool) {
      const Window w = window(s, std::nullopt);
      if (net_.blocks.empty()) begin_block(name_);
      add(layer(OpKind::max_pool, name_, channels_, w));
      return;
    }
    const double size = whole(s, "size", 1, static_cast<std::int64_t>(size_), 1);
    begin_block(name_);
    joins_next_ = true;
    Convolution c = layer(OpKind::average_pool, name_, channels_);
    c.out_size = size;
    add(std::move(c));
  }

  void linear(Section& s) {
    const std::vector<std::int64_t> widths = s.integers("widths", 1, 100'000'000);
    if (widths.empty()) s.refuse("widths", "empty", "at least one width, e.g. [1000] classes");
    // ReLU between linear layers, but not after the last one.
    if (flat_) add(layer(OpKind::activation, "relu", channels_));
    for (std::size_t i = 0; i < widths.size(); ++i) {
      begin_block(numbered(static_cast<std::int64_t>(i), static_cast<std::int64_t>(widths.size())));
      Convolution c = layer(OpKind::linear, "linear", static_cast<double>(widths[i]));
      c.out_size = 1;
      c.bias = true;
      add(std::move(c));
      if (i + 1 < widths.size()) add(layer(OpKind::activation, "relu", channels_));
    }
    flat_ = true;
  }

  ConvolutionalNet& net_;
  double channels_, size_;  // of the current feature map
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
