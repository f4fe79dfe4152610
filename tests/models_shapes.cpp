// Compares presets and shapes with published parameters, FLOPs and activation memory.
#include <algorithm>
#include <tuple>

#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models_kernels.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Model transformer(Transformer shape) {
  Model model;
  model.shape = shape;
  return model;
}

Transformer gpt(int layers, double hidden, double heads, double vocabulary = 51200, double sequence = 2048) {
  Transformer t;
  t.layers = layers;
  t.hidden = hidden;
  t.heads = heads;
  t.vocabulary = vocabulary;
  t.sequence_length = t.positions = sequence;
  return t;
}

}  // namespace

TEST_CASE("presets have the published number of parameters") {
  struct Case {
    const char* preset;
    double parameters;
    double tolerance;
    const char* source;
  };
  const Case cases[] = {
      {"resnet50", 25'557'032, 0, "torchvision documentation, ResNet50_Weights: num_params"},
      {"vgg16", 138'357'544, 0, "torchvision documentation, VGG16_Weights: num_params"},
      {"alexnet", 61'100'840, 0, "torchvision documentation, AlexNet_Weights: num_params"},
      {"inception-v3", 23'834'568, 0,
       "torchvision, inception_v3 without its auxiliary classifier; 27,161,264 with it"},
      {"vgg19", 143'667'240, 0, "torchvision documentation, VGG19_Weights: num_params"},
      {"resnet101", 44'549'160, 0, "torchvision documentation, ResNet101_Weights: num_params"},
      {"resnet152", 60'192'808, 0, "torchvision documentation, ResNet152_Weights: num_params"},
      {"gpt2", 124'439'808, 0, "Hugging Face transformers, GPT2LMHeadModel of gpt2, tied weights once"},
      {"gpt2-medium", 354'823'168, 0, "the same of gpt2-medium"},
      {"gpt2-large", 774'030'080, 0, "the same of gpt2-large"},
      {"gpt2-xl", 1'557'611'200, 0, "the same of gpt2-xl"},
      {"bert-large", 336'226'108, 0, "Hugging Face transformers, BertForPreTraining of bert-large-uncased"},
      {"bert-base", 110'106'428, 0, "Hugging Face transformers, BertForPreTraining of bert-base-uncased"},
      {"llama2-7b", 6'738'415'616, 0,
       "Hugging Face, meta-llama/Llama-2-7b-hf: parameters of its safetensors"},
      {"llama2-13b", 13'015'864'320, 0, "the same of meta-llama/Llama-2-13b-hf"},
      {"llama2-70b", 68'976'648'192, 0, "the same of meta-llama/Llama-2-70b-hf"},
      {"llama3-8b", 8'030'261'248, 0, "the same of meta-llama/Meta-Llama-3-8B"},
      {"llama3-70b", 70'553'706'496, 0, "the same of meta-llama/Meta-Llama-3-70B"},
      {"llama3-405b", 405'853'388'800, 0, "the same of meta-llama/Llama-3.1-405B"},
      {"llama3.1-8b", 8'030'261'248, 0, "the same of meta-llama/Llama-3.1-8B"},
      {"llama3.1-70b", 70'553'706'496, 0, "the same of meta-llama/Llama-3.1-70B"},
      {"qwen2.5-7b", 7'615'616'512, 0, "the same of Qwen/Qwen2.5-7B; model card: 7.61B"},
      {"qwen2.5-14b", 14'770'033'664, 0, "the same of Qwen/Qwen2.5-14B; model card: 14.7B"},
      {"qwen2.5-32b", 32'763'876'352, 0, "the same of Qwen/Qwen2.5-32B; model card: 32.5B"},
      {"qwen2.5-72b", 72'706'203'648, 0, "the same of Qwen/Qwen2.5-72B; model card: 72.7B"},
      {"qwen3-8b", 8'190'735'360, 0, "the same of Qwen/Qwen3-8B; model card: 8.2B"},
      {"qwen3-14b", 14'768'307'200, 0, "the same of Qwen/Qwen3-14B; model card: 14.8B"},
      {"qwen3-32b", 32'762'123'264, 0, "the same of Qwen/Qwen3-32B; model card: 32.8B"},
      {"nemotron4-15b", 3.2e9 + 12.5e9, 0.005, "arXiv 2402.16819, section 2: in embeddings and in others"},
      {"nemotron4-340b", 9.4e9 + 331.6e9, 0.0005, "arXiv 2406.11704, section 2: in embeddings and in others"},
      {"bloom-176b", 176'247'271'424, 0, "bigscience/bloom on Hugging Face, model card: parameters"},
      {"mpt-7b", 6.7e9, 0.01, "mosaicml/mpt-7b on Hugging Face, model card: 6.7 B"},
      {"mpt-30b", 29.95e9, 0.001, "mosaicml/mpt-30b on Hugging Face, model card: 29.95 B"},
      {"gpt3-175b", 174'600e6, 0.0005, "Brown et al. 2020, table D.1: 174,600 M parameters"},
      {"gpt3-175b", 175.0e9, 0.005, "Brown et al. 2020, table 2.1: 175.0 B"},
      {"mlp", 266'610, 0, "784*300+300 + 300*100+100 + 100*10+10; Han et al. 2015, table 1: 267 K"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.preset, c.source);
    CHECK(parameter_count(model_preset(c.preset)) == Approx(c.parameters).epsilon(c.tolerance).margin(0.5));
  }
}

TEST_CASE("BERT has the published parameters with each of its heads") {
  // Source: Hugging Face transformers, num_parameters() of bert-*-uncased loaded as the given class.
  struct Case {
    const char* preset;
    const char* hugging_face_class;
    bool pooler, masked_lm_head;
    double parameters;
  };
  const Case cases[] = {
      {"bert-base", "BertModel", true, false, 109'482'240},
      {"bert-base", "BertForMaskedLM", false, true, 109'514'298},
      {"bert-base", "BertForPreTraining", true, true, 110'106'428},
      {"bert-large", "BertModel", true, false, 335'141'888},
      {"bert-large", "BertForMaskedLM", false, true, 335'174'458},
      {"bert-large", "BertForPreTraining", true, true, 336'226'108},
  };
  for (const Case& c : cases) {
    CAPTURE(c.preset, c.hugging_face_class);
    Transformer t = std::get<Transformer>(model_preset(c.preset).shape);
    t.pooler = c.pooler;
    t.masked_lm_head = c.masked_lm_head;
    CHECK(parameter_count(transformer(t)) == c.parameters);
  }
}

TEST_CASE("GPT sizes of Narayanan et al. SC'21 table 1 have the parameters printed there") {
  struct Case {
    const char* preset;
    int layers;
    double hidden, heads, billions;
  };
  const Case cases[] = {
      {"megatron-1.7b", 24, 2304, 24, 1.7},        {"megatron-3.6b", 30, 3072, 32, 3.6},
      {"megatron-7.5b", 36, 4096, 32, 7.5},        {"megatron-18.4b", 40, 6144, 48, 18.4},
      {"megatron-39.1b", 48, 8192, 64, 39.1},      {"megatron-76.1b", 60, 10240, 80, 76.1},
      {"megatron-145.6b", 80, 12288, 96, 145.6},   {"megatron-310.1b", 96, 16384, 128, 310.1},
      {"megatron-529.6b", 105, 20480, 128, 529.6}, {"megatron-1t", 128, 25600, 160, 1008.0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.preset);
    const Model model = model_preset(c.preset);
    CHECK(std::get<Transformer>(model.shape).heads == c.heads);
    const double found = parameter_count(model);
    CHECK(found == parameter_count(transformer(gpt(c.layers, c.hidden, c.heads))));
    CHECK(found / 1e9 == Approx(c.billions).margin(0.051));  // published with one decimal
    // Equation 2: P = 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)); it leaves out the last norm, 2 h.
    const double l = c.layers, h = c.hidden;
    const double equation2 = 12 * l * h * h * (1 + 13 / (12 * h) + (51200 + 2048) / (12 * l * h));
    CHECK(found == Approx(equation2 + 2 * h).epsilon(1e-12));
  }
}

TEST_CASE("the output layer has parameters of its own only if it is not tied") {
  Transformer t = gpt(2, 64, 4, 1000, 128);
  const double tied = parameter_count(transformer(t));
  t.tied_embeddings = false;
  CHECK(parameter_count(transformer(t)) == tied + 1000 * 64);
  CHECK(layer_costs(transformer(t), {}).back().parameters == 1000 * 64 + 2 * 64);
}

TEST_CASE("FLOPs of transformers equal equation 3 of Narayanan et al. SC'21 without recomputation") {
  for (const char* preset : {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt3-175b", "bert-base",
                             "bert-large", "megatron-1.7b", "megatron-1t", "mpt-7b", "bloom-176b"}) {
    for (const double s : {128.0, 512.0, 2048.0}) {
      CAPTURE(preset, s);
      const Model model = model_preset(preset);
      const auto& t = std::get<Transformer>(model.shape);
      const double l = t.layers, h = t.hidden, v = t.vocabulary;
      // 96 B s l h^2 (...) includes a recomputed forward pass; it is 72 without.
      double expected = 72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
      // The formula is GPT's. BERT's heads add one h x h product per token, one per sample, and 2 classes per
      // sample.
      if (t.masked_lm_head) expected += 3 * (2 * s * h * h + 2 * h * h + 2 * 2 * h);
      CHECK(flops_per_sample(model, s) == Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("FLOPs of the presets are near the published ones") {
  struct Case {
    const char* preset;
    double forward_gmac, tolerance;
    const char* source;
  };
  const Case cases[] = {
      {"resnet50", 4.089, 0.005, "torchvision documentation, ResNet50_Weights: 4.09 GFLOPS (multiply-adds)"},
      {"alexnet", 0.714, 0.005, "torchvision documentation, AlexNet_Weights: 0.71 GFLOPS (multiply-adds)"},
      {"resnet101", 7.801, 0.005, "the same, ResNet101_Weights: 7.80 GFLOPS"},
      {"resnet152", 11.514, 0.005, "the same, ResNet152_Weights: 11.51 GFLOPS"},
      {"inception-v3", 5.713, 0.005, "the same, Inception_V3_Weights: 5.71 GFLOPS"},
      {"vgg19", 19.63, 0.005, "the same, VGG19_Weights: 19.63 GFLOPS"},
      {"vgg16", 15.47, 0.005, "torchvision documentation, VGG16_Weights: 15.47 GFLOPS (multiply-adds)"},
      {"mlp", 266'200e-9, 1e-12, "784*300 + 300*100 + 100*10"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.preset, c.source);
    CHECK(flops_per_sample(model_preset(c.preset), 0) / 6e9 == Approx(c.forward_gmac).epsilon(c.tolerance));
  }
  SECTION("GPT-3's training") {
    // Brown et al. 2020, table D.1: 3.14e23 FLOPs for 300 B tokens; it leaves out attention, about 3%.
    const Model gpt3 = model_preset("gpt3-175b");
    CHECK(flops_per_sample(gpt3, 0) / tokens_per_sample(gpt3, 0) * 300e9 == Approx(3.14e23).epsilon(0.03));
  }
}

TEST_CASE("ResNet-50's convolutions have the published number of outputs") {
  // MMEngine's documentation, "Model analysis": 11.115 M activations of torchvision's resnet50, which are the
  // outputs of its convolutions and of its classifier.
  const Model model = model_preset("resnet50");
  const auto& net = std::get<ConvolutionalNet>(model.shape);
  double outputs = 0;
  int convolutions = 0;
  for (const auto& block : net.blocks) {
    for (const Convolution& c : block.layers) {
      if (c.kind != Convolution::Kind::convolution) continue;
      outputs += c.out_channels * c.out_size * c.out_size;
      ++convolutions;
    }
  }
  CHECK((outputs + 1000) / 1e6 == Approx(11.115).margin(0.0006));
  CHECK(convolutions == 53);  // He et al. 2016, table 1: 49, and 4 shortcuts with a projection
  CHECK(net.blocks.size() == 18);
  CHECK(net.blocks.back().layers.front().in_size == 7);
}

TEST_CASE("layers keep the activations of Korthikanti et al. 2022") {
  struct Case {
    int layers;
    double hidden, heads, micro_batch;
  };
  // Table 3: 22B, 175B, 530B, 1T.
  const Case cases[] = {{48, 6144, 64, 4}, {96, 12288, 96, 1}, {105, 20480, 128, 1}, {128, 25600, 160, 1}};
  for (const Case& c : cases) {
    CAPTURE(c.hidden);
    const Model model = transformer(gpt(c.layers, c.hidden, c.heads));
    const double s = 2048, b = c.micro_batch, h = c.hidden, a = c.heads, v = 51200;
    PassShape pass;
    pass.micro_batch = b;
    const auto layers = layer_costs(model, pass);
    REQUIRE(layers.size() == static_cast<std::size_t>(c.layers) + 2);
    CHECK(layers[1].saved_bytes == Approx(s * b * h * (34 + 5 * a * s / h)));  // equation 1
    CHECK(layers[1].recompute.empty());
    CHECK(layers.front().saved_bytes == Approx(s * b * h));  // section 4.3: dropout of the embedding
    CHECK(layers.back().saved_bytes == Approx(4 * s * b * h * (1 + v / h)));  // section 4.3: head

    pass.recompute = Recompute::selective;
    const auto selective = layer_costs(model, pass);
    CHECK(selective[1].saved_bytes == Approx(34 * s * b * h));          // section 5
    CHECK(flops(selective[1].recompute) == Approx(4 * b * s * s * h));  // Q K^T and the product with V
    CHECK(selective.back().recompute.empty());

    pass.recompute = Recompute::full;
    const auto full = layer_costs(model, pass);
    CHECK(full[1].saved_bytes == Approx(2 * s * b * h));
    CHECK(flops(full[1].recompute) == Approx(flops(full[1].forward)));
    CHECK(memory_bytes(full[1].recompute) == memory_bytes(full[1].forward));
  }
  SECTION("selective recomputation saves what section 5 says: 70% of GPT-3's, 65% of MT-NLG's activations") {
    for (const auto& [hidden, heads, saving] :
         {std::tuple{12288.0, 96.0, 0.70}, std::tuple{20480.0, 128.0, 0.65}}) {
      const Model model = transformer(gpt(1, hidden, heads));
      PassShape pass;
      const double all = layer_costs(model, pass)[1].saved_bytes;
      pass.recompute = Recompute::selective;
      CHECK(1 - layer_costs(model, pass)[1].saved_bytes / all == Approx(saving).margin(0.005));
    }
  }
}

TEST_CASE("a GPT layer's kernels") {
  const double s = 2048, b = 2, h = 4096, a = 32;
  PassShape pass;
  pass.micro_batch = b;
  const LayerCost layer = layer_costs(transformer(gpt(1, h, a)), pass)[1];

  SECTION("backward has twice the FLOPs of forward; weights and inputs are equal but for attention") {
    const double attention = 4 * b * s * s * h, linear = 24 * b * s * h * h;
    CHECK(flops(layer.forward) == Approx(linear + attention));
    CHECK(flops(layer.backward_weight) == Approx(linear));
    CHECK(flops(layer.backward_input) == Approx(linear + 2 * attention));
  }
  SECTION("attention is one batched product for all heads") {
    const auto first = std::find_if(layer.forward.begin(), layer.forward.end(), [](const Kernel& kernel) {
      return kernel.kind == Kernel::Kind::attention;
    });
    REQUIRE(first != layer.forward.end());
    CHECK(first->batch == b * a);
    CHECK(first->m == s);
    CHECK(first->n == s);
    CHECK(first->k == h / a);
    CHECK(first->bytes == Approx(2 * b * a * (2 * s * h / a + s * s)));
  }
  SECTION("element-wise traffic of the forward pass, in tensors of 2 s b h bytes") {
    // Norms 2 x 2, QKV bias 6, concatenation of heads 2, two dropouts with residual 2 x (3 + mask 0.5), GELU
    // 2 x 4; bytes for each score: softmax reads and writes 2 + 2, dropout 2 + 2 and the mask 1.
    const double tensors = 4 + 6 + 2 + 7 + 8;
    CHECK(memory_bytes(layer.forward) == Approx(tensors * 2 * s * b * h + 9 * b * a * s * s));
  }
  SECTION("fp32 moves twice the bytes, but for the masks, with the same FLOPs") {
    pass.precision = Precision::fp32;
    const LayerCost wide = layer_costs(transformer(gpt(1, h, a)), pass)[1];
    CHECK(flops(wide.forward) == flops(layer.forward));
    const double masks = 2 * b * s * h + b * a * s * s;
    CHECK(memory_bytes(wide.forward) == Approx(2 * memory_bytes(layer.forward) - masks));
    CHECK(wide.output_bytes == 4 * b * s * h);
  }
  CHECK(layer.output_bytes == 2 * b * s * h);
}

TEST_CASE("the loss costs 115 bytes a logit, and only models with logits have it") {
  const double s = 128, v = 1000, h = 64;
  Transformer t = gpt(1, h, 4, v, s);
  t.final_norm = false;
  t.embedding_norm = true;
  const LayerCost head = layer_costs(transformer(t), {}).back();
  CHECK(memory_bytes(head.forward) + memory_bytes(head.backward_input) == Approx(115 * s * v));
  CHECK(flops(head.forward) == 2 * s * v * h);
  t.causal = false;
  CHECK(layer_costs(transformer(t), {}).back().forward.empty());
}

TEST_CASE("a perceptron by hand") {
  Model model;
  model.shape = MultiLayerPerceptron{{8, 4, 2}};
  PassShape pass;
  pass.micro_batch = 16;
  pass.precision = Precision::fp32;
  const auto layers = layer_costs(model, pass);
  REQUIRE(layers.size() == 2);
  CHECK(layers[0].parameters == 8 * 4 + 4);
  CHECK(layers[1].parameters == 4 * 2 + 2);
  CHECK(flops(layers[0].forward) == 2 * 16 * 8 * 4);
  CHECK(flops(layers[0].backward_input) == 0);  // no layer needs the gradient of the samples
  CHECK(flops(layers[0].backward_weight) == 2 * 16 * 8 * 4);
  CHECK(flops(layers[1].backward_input) == 2 * 16 * 4 * 2);
  CHECK(layers[0].forward.front().bytes == 4 * (16 * 8 + 8 * 4 + 16 * 4));
  CHECK(layers[0].output_bytes == 4 * 16 * 4);
  CHECK(layers[0].saved_bytes == 4 * 16 * 8);
  CHECK(layers[1].output_bytes == 0);
  CHECK(layers[1].saved_bytes == 4 * 16 * 4 + 4 * 16 * 2);
  CHECK(flops_per_sample(model, 0) == 3 * 2 * (8 * 4 + 4 * 2));
  CHECK(tokens_per_sample(model, 0) == 0);
}

TEST_CASE("every layer of every preset is complete") {
  for (const std::string& name : preset_names("models")) {
    CAPTURE(name);
    const Model model = model_preset(name);
    CHECK(model.name == name);
    CHECK(!model.title.empty());
    CHECK(!model.sources.empty());
    PassShape one, four;
    four.micro_batch = 4;
    const auto layers = layer_costs(model, one), more = layer_costs(model, four);
    REQUIRE(layers.size() == more.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      CAPTURE(layers[i].name);
      CHECK(layers[i].parameters > 0);
      CHECK(layers[i].parameters == more[i].parameters);
      CHECK(!layers[i].forward.empty());
      CHECK(flops(more[i].forward) == Approx(4 * flops(layers[i].forward)));
      // Each forward product with weights has one of the same FLOPs here; attention has no weights.
      double with_weights = 0;
      for (const Kernel& kernel : layers[i].forward) {
        if (kernel.kind != Kernel::Kind::attention) with_weights += kernel.flops();
      }
      CHECK(flops(layers[i].backward_weight) == Approx(with_weights));
      CHECK(more[i].saved_bytes == Approx(4 * layers[i].saved_bytes));
      CHECK((layers[i].output_bytes > 0) == (i + 1 < layers.size()));
    }
  }
}
