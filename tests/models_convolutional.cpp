// Checks convolutional networks: how stages expand, and the kernels of a block calculated by hand.
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models_kernels.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Model read(const std::string& text) {
  Document document = Document::parse_text("[model.convolutional]\n" + text, "net.toml");
  Section section = document.root().section("model");
  return read_model(section, ".");
}

const std::vector<ConvolutionalNet::Block>& blocks(const Model& model) {
  return std::get<ConvolutionalNet>(model.shape).blocks;
}

double bytes(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == Kernel::Kind::memory) sum += kernel.bytes * kernel.count;
  }
  return sum;
}

}  // namespace

TEST_CASE("ResNets of other depths have the published parameters") {
  // Source: torchvision documentation, num_params of the IMAGENET1K_V1 weights.
  struct Case {
    const char* name;
    const char* kind;
    int blocks[4];
    double parameters, gmac;
  };
  const Case cases[] = {
      {"resnet18", "basic", {2, 2, 2, 2}, 11'689'512, 1.814},
      {"resnet34", "basic", {3, 4, 6, 3}, 21'797'672, 3.664},
      {"resnet101", "bottleneck", {3, 4, 23, 3}, 44'549'160, 7.801},
      {"resnet152", "bottleneck", {3, 8, 36, 3}, 60'192'808, 11.514},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    std::string text = R"(
      image_size = 224
      [[model.convolutional.stage]]
      kind = "convolution"
      channels = 64
      kernel = 7
      stride = 2
      norm = true
      [[model.convolutional.stage]]
      kind = "max-pool"
      kernel = 3
      stride = 2
    )";
    for (int i = 0; i < 4; ++i) {
      text += "[[model.convolutional.stage]]\nkind = \"" + std::string(c.kind) +
              "\"\nblocks = " + std::to_string(c.blocks[i]) + "\nwidth = " + std::to_string(64 << i) +
              "\nstride = " + (i == 0 ? "1" : "2") + "\n";
    }
    text += R"(
      [[model.convolutional.stage]]
      kind = "average-pool"
      [[model.convolutional.stage]]
      kind = "linear"
      widths = [1000]
    )";
    const Model model = read(text);
    CHECK(parameter_count(model) == c.parameters);
    CHECK(flops_per_sample(model, 0) / 6e9 == Approx(c.gmac).epsilon(0.005));
    CHECK(blocks(model).size() == 2u + c.blocks[0] + c.blocks[1] + c.blocks[2] + c.blocks[3]);
  }
}

TEST_CASE("VGG-16 is cut after every convolution, its pools stay with them") {
  const auto layers = layer_costs(model_preset("vgg16"), {});
  REQUIRE(layers.size() == 16);  // Simonyan and Zisserman: 16 weight layers
  CHECK(layers[1].name == "conv1_2");
  CHECK(layers[1].output_bytes == 2.0 * 64 * 112 * 112);
  CHECK(layers[12].output_bytes == 2.0 * 512 * 7 * 7);
  CHECK(layers[13].parameters == 512.0 * 49 * 4096 + 4096);
  CHECK(layers[15].name == "fc_3");
}

TEST_CASE("a small network by hand") {
  // 1 channel 8 x 8 -> 3x3 to 2 channels, stride 1 -> max pool to 4 x 4 -> linear 32 -> 5.
  const Model model = read(R"(
    image_size = 8
    channels = 1
    [[model.convolutional.stage]]
    name = "first"
    kind = "convolution"
    channels = 2
    kernel = 3
    norm = true
    [[model.convolutional.stage]]
    kind = "max-pool"
    kernel = 2
    stride = 2
    [[model.convolutional.stage]]
    name = "classifier"
    kind = "linear"
    widths = [5]
  )");
  PassShape pass;
  pass.micro_batch = 10;
  const auto layers = layer_costs(model, pass);
  REQUIRE(layers.size() == 2);
  const LayerCost& first = layers[0];
  CHECK(first.name == "first");
  CHECK(first.parameters == 3 * 3 * 2 + 2 * 2);  // no bias beside a norm; gain and offset
  const Kernel& convolution = first.forward.front();
  CHECK(convolution.kind == Kernel::Kind::convolution);
  CHECK(convolution.m == 10 * 64);
  CHECK(convolution.n == 2);
  CHECK(convolution.k == 9);
  CHECK(convolution.bytes == 2 * (10 * 64 + 10 * 64 * 2 + 18));
  CHECK(flops(first.backward_weight) == flops(first.forward));
  CHECK(flops(first.backward_input) == 0);  // the image needs no gradient
  // Elements: map 1280, pooled 320. Arrays read or written: norm 3, ReLU 2; pool: map, pooled, and an 8-byte
  // index for each pooled element.
  CHECK(bytes(first.forward) == 2 * (5 * 1280 + 1280 + 320) + 8 * 320);
  CHECK(bytes(first.backward_input) == 2 * (5 * 1280 + 3 * 1280 + 1280 + 320) + 8 * 320);
  // Stored: the images, the norm's input, the pool's input and its indices.
  CHECK(first.saved_bytes == 2 * (640 + 1280 + 1280) + 8 * 320);
  CHECK(first.output_bytes == 2 * 320);
  CHECK(layers[1].name == "classifier");
  CHECK(layers[1].parameters == 32 * 5 + 5);
  CHECK(flops(layers[1].forward) == 2 * 10 * 32 * 5);
  CHECK(flops(layers[1].backward_input) == 2 * 10 * 32 * 5);
  CHECK(tokens_per_sample(model, 0) == 0);
  CHECK(layers[1].logits == 10 * 5);
  CHECK(sample_bytes(model, 0, Precision::bf16) == 2 * 64);  // one image of 8 x 8 pixels
}

TEST_CASE("a residual block by hand") {
  // conv2_2 of ResNet-50: 56 x 56, 256 -> 64 -> 64 -> 256 channels, no projection. conv3_1 has a projection
  // and halves the map.
  const Model model = model_preset("resnet50");
  const auto layers = layer_costs(model, {});
  CHECK(layers[2].name == "conv2_2");
  const double map = 56 * 56, weights = 256 * 64 + 9 * 64 * 64 + 64 * 256;
  CHECK(layers[2].parameters == weights + 2 * (64 + 64 + 256));
  CHECK(flops(layers[2].forward) == 2 * map * weights);
  CHECK(flops(layers[2].backward_input) == Approx(2 * map * weights));
  CHECK(flops(layers[2].backward_weight) == 2 * map * weights);
  // Norms and ReLUs of 64, 64 and 256 channels: 3 + 2 arrays each; the residual sum reads two and writes one.
  CHECK(bytes(layers[2].forward) == 2 * map * (5 * (64 + 64 + 256) + 3 * 256));
  CHECK(bytes(layers[2].backward_input) == 2 * map * (8 * (64 + 64 + 256) + 3 * 256));
  // Inputs of the convolutions 256 + 64 + 64, of the norms 64 + 64 + 256.
  CHECK(layers[2].saved_bytes == 2 * map * (256 + 64 + 64 + 64 + 64 + 256));

  CHECK(layers[4].name == "conv3_1");
  const double half = 28 * 28;
  // Stored: the block's input, once for both convolutions that read it; conv2 reads 128 x 56 x 56.
  CHECK(layers[4].saved_bytes ==
        2 * (map * 256 + map * 128 + half * 128 + map * 128 + half * (128 + 512 + 512)));
  CHECK(layers[4].output_bytes == 2 * half * 512);

  SECTION("recomputed in full, a block keeps only its input; the classifier is not recomputed") {
    PassShape pass;
    pass.recompute = Recompute::full;
    const auto full = layer_costs(model, pass);
    CHECK(full[2].saved_bytes == 2 * map * 256);
    CHECK(flops(full[2].recompute) == flops(full[2].forward));
    CHECK(full.back().recompute.empty());
    CHECK(full.back().saved_bytes == layers.back().saved_bytes);
  }
}

TEST_CASE("a block of branches by hand") {
  // mixed7b of Inception-v3: 8 x 8, 1280 channels in, 320 + 2 x 384 + 2 x 384 + 192 out.
  const Model model = model_preset("inception-v3");
  const auto layers = layer_costs(model, {});
  std::size_t i = 0;
  while (i < layers.size() && layers[i].name != "mixed7b_1") ++i;
  REQUIRE(i < layers.size());
  const double map = 64, in = 1280, out = 2048;
  const double weights = in * (320 + 384 + 448 + 192) + 2 * 3 * 384 * 384 + 9 * 448 * 384 + 2 * 3 * 384 * 384;
  const double normed = 320 + 384 + 2 * 384 + 448 + 384 + 2 * 384 + 192;  // the convolutions' outputs
  CHECK(layers[i].parameters == weights + 2 * normed);
  CHECK(flops(layers[i].forward) == 2 * map * weights);
  CHECK(flops(layers[i].backward_input) == Approx(2 * map * weights));
  // Norms and ReLUs move 5 arrays; the pool reads and writes the input; two concatenations have 768 channels,
  // one has all.
  CHECK(bytes(layers[i].forward) == 2 * map * (5 * normed + 2 * in + 2 * (768 + 768 + out)));
  // The gradients of two readers of 384 channels are added twice, those of four branches three times.
  CHECK(bytes(layers[i].backward_input) ==
        2 * map * (8 * normed + 2 * in + 2 * (768 + 768 + out) + 3 * (2 * 384 + 3 * in)));
  // Stored: the block's input (once), the pool's result, inputs of the later convolutions (once for each
  // pair), inputs of the norms.
  CHECK(layers[i].saved_bytes == 2 * map * (in + in + 384 + 448 + 384 + normed));
  CHECK(layers[i].output_bytes == 2 * map * out);

  int convolutions = 0;
  for (const auto& block : blocks(model)) {
    for (const Convolution& c : block.layers) convolutions += c.kind == Convolution::Kind::convolution;
  }
  CHECK(convolutions == 94);  // torchvision, models/inception.py: BasicConv2d without the auxiliary head's
}

TEST_CASE("Winograd's products and traffic, counted by hand") {
  const auto middle = [](double kernel, double width, double stride) {
    Convolution c;
    c.in_channels = 8;
    c.out_channels = 16;
    c.kernel = kernel;
    c.kernel_width = width;
    c.stride = stride;
    c.padding = (kernel - 1) / 2;
    c.in_size = c.out_size = 10;
    Model model;
    ConvolutionalNet net;
    net.blocks = {{"first", {Convolution{}}}, {"middle", {c}}, {"last", {Convolution{}}}};
    model.shape = net;
    return layer_costs(model, {2, 0, Precision::fp32, Recompute::none})[1];
  };
  const LayerCost layer = middle(3, 0, 1);
  // A map of 10 x 10 has 3 x 3 tiles of 4 x 4, so 2 samples have 18. An input tile of 6 x 6 needs 36
  // products.
  const double maps = 2 * 100 * (8 + 16), filters = 8 * 16 * 9;
  const double traffic = 4 * (maps * (1 + 2 * 36.0 / 16) + filters * (1 + 2 * 36.0 / 9));
  struct Case {
    const Kernel* kernel;
    double m, n, k;
  };
  for (const Case& c : {Case{&layer.forward[0], 18, 16, 8}, Case{&layer.backward_input[0], 18, 8, 16},
                        Case{&layer.backward_weight[0], 16, 8, 18}}) {
    CAPTURE(c.m, c.n, c.k);
    const Kernel::Winograd& w = c.kernel->winograd;
    CHECK(w.m == c.m);
    CHECK(w.n == c.n);
    CHECK(w.k == c.k);
    CHECK(w.batch == 36);
    CHECK(w.bytes == Approx(traffic));
  }
  CHECK(middle(5, 5, 1).forward[0].winograd.batch == 64);  // input tiles of 8 x 8
  CHECK(middle(3, 0, 2).forward[0].winograd.batch == 0);
  CHECK(middle(1, 7, 1).forward[0].winograd.batch == 0);
  CHECK(middle(1, 1, 1).forward[0].winograd.batch == 0);
}
