// Checks the model families whose config.json Rehearse reads: published parameters, the underlying shapes,
// and that the keys of [model.transformer] express all of it.
#include "models/families/family.hpp"
#include "models/kernels.hpp"
#include "models/text/toml_text.hpp"
#include "tests/catch.hpp"
#include "tests/models_kernels.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Model parse(const std::string& json) {
  return parse_huggingface(json, "config.json");
}

Transformer shape_of(const std::string& json) {
  return std::get<Transformer>(parse(json).shape);
}

std::string error_of(const std::string& json) {
  try {
    parse(json);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// Sizes such as hidden_size, under the keys that most families use.
struct Sizes {
  int hidden, inner, layers, heads, kv_heads, vocabulary, context;
};
std::string config(const std::string& type, const Sizes& z, const std::string& more = "") {
  return R"({"model_type": ")" + type + R"(", "hidden_size": )" + std::to_string(z.hidden) +
         R"(, "intermediate_size": )" + std::to_string(z.inner) + R"(, "num_hidden_layers": )" +
         std::to_string(z.layers) + R"(, "num_attention_heads": )" + std::to_string(z.heads) +
         R"(, "num_key_value_heads": )" + std::to_string(z.kv_heads) + R"(, "vocab_size": )" +
         std::to_string(z.vocabulary) + R"(, "max_position_embeddings": )" + std::to_string(z.context) +
         more + "}";
}

const std::string kMistral =
    config("mistral", {4096, 14336, 32, 32, 8, 32000, 32768}, R"(, "sliding_window": 4096)");
const std::string kNemo = config("mistral", {5120, 14336, 40, 32, 8, 131072, 131072},
                                 R"(, "head_dim": 128, "sliding_window": null)");
const std::string kQwen3 =
    config("qwen3", {4096, 12288, 36, 32, 8, 151936, 40960},
           R"(, "head_dim": 128, "use_sliding_window": false, "max_window_layers": 36)");
const std::string kQwen3Moe =
    config("qwen3_moe", {2048, 6144, 48, 32, 4, 151936, 40960},
           R"(, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
              "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": false)");
const std::string kGemma2 =
    config("gemma2", {3584, 14336, 42, 16, 8, 256000, 8192},
           R"(, "head_dim": 256, "sliding_window": 4096, "attn_logit_softcapping": 50.0,
                                      "final_logit_softcapping": 30.0)");
const std::string kGemma3 =
    config("gemma3_text", {1152, 6912, 26, 4, 1, 262144, 32768},
           R"(, "head_dim": 256, "sliding_window": 512, "sliding_window_pattern": 6)");
// As published: values that equal the library's defaults are left out.
const std::string kGemma3Images =
    R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
  "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
    "num_hidden_layers": 34, "sliding_window": 1024},
  "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27}})";
const std::string kPhi3 = config("phi3", {3072, 8192, 32, 32, 32, 32064, 4096},
                                 R"(, "sliding_window": 2047, "attention_bias": false)");
const std::string kPhi4Mini = config("phi3", {3072, 8192, 32, 24, 8, 200064, 131072},
                                     R"(, "sliding_window": 262144, "partial_rotary_factor": 0.75,
                                        "tie_word_embeddings": true)");
const std::string kDeepSeekLite =
    config("deepseek_v2", {2048, 10944, 27, 16, 16, 102400, 163840},
           R"(, "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
              "v_head_dim": 128, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_routed_experts": 64,
              "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408)");
const std::string kDeepSeek2 =
    config("deepseek_v2", {5120, 12288, 60, 128, 128, 102400, 163840},
           R"(, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
              "v_head_dim": 128, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_routed_experts": 160,
              "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1536)");
const std::string kDeepSeek3 =
    config("deepseek_v3", {7168, 18432, 61, 128, 128, 129280, 163840},
           R"(, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
              "v_head_dim": 128, "first_k_dense_replace": 3, "moe_layer_freq": 1, "n_routed_experts": 256,
              "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
              "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc", "num_nextn_predict_layers": 1)");
const std::string kOpt =
    R"({"model_type": "opt", "hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32,
  "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048,
  "word_embed_proj_dim": 4096,
  "activation_function": "relu", "attention_dropout": 0.0, "dropout": 0.1, "do_layer_norm_before": true})";
const std::string kOptSmall =
    R"({"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24,
  "num_attention_heads": 16, "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
  "activation_function": "relu", "attention_dropout": 0.0, "dropout": 0.1, "do_layer_norm_before": false})";
const std::string kNeox = R"({"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
  "num_hidden_layers": 44, "num_attention_heads": 64, "vocab_size": 50432, "max_position_embeddings": 2048,
  "rotary_pct": 0.25, "use_parallel_residual": true, "tie_word_embeddings": false})";
std::string gpt_oss(int layers, int experts, const std::string& more = "") {
  return config("gpt_oss", {2880, 2880, layers, 64, 8, 201088, 131072},
                R"(, "head_dim": 64, "sliding_window": 128, "attention_bias": true, "experts_per_token": 4,
                   "tie_word_embeddings": false, "num_local_experts": )" +
                    std::to_string(experts) + more);
}

// Writes the shape as the keys of [model.transformer] and reads it back.
Transformer written_and_read(const Transformer& shape) {
  TomlValue root;
  root.data = TomlValue::Table{};
  TomlEntry& entry = root.get<TomlValue::Table>()->emplace_back();
  entry.key = "transformer";
  entry.value = transformer_table(shape);
  return std::get<Transformer>(
      parse_model_file(Document::parse_text(toml_text(root), "m.toml"), "m.toml").shape);
}

double layer_of(const std::vector<LayerCost>& layers, std::size_t i, std::vector<Kernel> LayerCost::*pass) {
  return flops(layers.at(i + 1).*pass);
}

}  // namespace

TEST_CASE("families have the published parameters, and their keys give the same shape") {
  struct Case {
    const char* model;  // on Hugging Face; sizes are those of its config.json
    std::string json;
    double parameters;  // derived from the layers' shapes; equal to the checkpoint's count
    double active_billion, active_tolerance;  // as its makers state it; 0: not a mixture
    double sequence_length;
    const char* source;
    const char* preset = nullptr;  // a preset with the same shape, if any
  };
  // The active parameters of DeepSeek and GPT-OSS do not include the embedding.
  const Case cases[] = {
      {"mistralai/Mistral-7B-v0.1", kMistral, 7'241'732'096, 0, 0, 8192, "safetensors of the checkpoint"},
      {"mistralai/Mistral-Nemo-Base-2407", kNemo, 12'247'782'400, 0, 0, 8192,
       "safetensors of the checkpoint"},
      {"Qwen/Qwen3-8B", kQwen3, 8'190'735'360, 0, 0, 8192, "safetensors; model card: 8.2B", "qwen3-8b"},
      {"Qwen/Qwen3-30B-A3B", kQwen3Moe, 30'532'122'624, 3.3, 0.06, 8192, "model card: 30.5B, 3.3B activated",
       "qwen3-30b-a3b"},
      {"google/gemma-2-9b", kGemma2, 9'241'705'984, 0, 0, 8192, "safetensors of the checkpoint"},
      {"google/gemma-3-1b-pt", kGemma3, 999'885'952, 0, 0, 8192, "safetensors of the checkpoint"},
      {"google/gemma-3-4b-pt, text", kGemma3Images, 3'880'263'168, 0, 0, 8192,
       "4,300,079,472 of the checkpoint less 419,816,304 of vision tower and projector"},
      {"microsoft/Phi-3-mini-4k-instruct", kPhi3, 3'821'079'552, 0, 0, 4096, "safetensors; model card: 3.8B"},
      {"microsoft/Phi-4-mini-instruct", kPhi4Mini, 3'836'021'760, 0, 0, 8192,
       "safetensors; model card: 3.8B"},
      {"deepseek-ai/DeepSeek-V2-Lite", kDeepSeekLite, 15'706'484'224, 2.4, 0.06, 8192,
       "safetensors; arXiv 2405.04434, appendix B: 15.7B, 2.4B activated"},
      {"deepseek-ai/DeepSeek-V2", kDeepSeek2, 235'741'434'880, 21, 0.2, 8192,
       "safetensors; arXiv 2405.04434: 236B, 21B activated"},
      // The main model has 671,026,419,200 weights, of which 58 x 256 are the routers' balancing bias.
      {"deepseek-ai/DeepSeek-V3", kDeepSeek3, 671'026'404'352, 36.6, 0.05, 8192,
       "README_WEIGHTS.md: 671B, 36.6B activated without the embedding; arXiv 2412.19437: 671B, 37B",
       "deepseek-v3"},
      {"facebook/opt-6.7b", kOpt, 6'658'473'984, 0, 0, 2048, "the checkpoint, tied weights once"},
      {"facebook/opt-350m", kOptSmall, 331'196'416, 0, 0, 2048, "safetensors of the checkpoint: 331M"},
      {"EleutherAI/gpt-neox-20b", kNeox, 20'554'567'680, 0, 0, 2048,
       "arXiv 2204.06745, section 2.1: 20B; the checkpoint, 50,432 rows of vocabulary"},
      {"openai/gpt-oss-20b", gpt_oss(24, 32), 20'914'757'184, 3.61, 0.005, 8192,
       "arXiv 2508.10925, table 1: 20.91B, 3.61B activated", "gpt-oss-20b"},
      {"openai/gpt-oss-120b", gpt_oss(36, 128), 116'829'156'672, 5.13, 0.005, 8192,
       "arXiv 2508.10925, table 1: 116.83B, 5.13B activated", "gpt-oss-120b"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.model, c.source);
    const Model model = parse(c.json);
    const auto& t = std::get<Transformer>(model.shape);
    CHECK(parameter_count(model) == c.parameters);
    CHECK(tokens_per_sample(model, 0) == c.sequence_length);
    if (c.active_billion > 0) {
      const bool with_embedding = std::string(c.model).substr(0, 4) == "Qwen";
      const double active = active_parameter_count(model) - (with_embedding ? 0 : t.vocabulary * t.hidden);
      CHECK(active / 1e9 == Approx(c.active_billion).margin(c.active_tolerance));
    }
    if (c.preset) {
      Transformer preset = std::get<Transformer>(model_preset(c.preset).shape);
      preset.sequence_length = t.sequence_length;
      CHECK(toml_text(transformer_table(preset)) == toml_text(transformer_table(t)));
    }
    Model again;
    again.shape = written_and_read(t);
    CHECK(toml_text(transformer_table(std::get<Transformer>(again.shape))) ==
          toml_text(transformer_table(t)));
    CHECK(active_parameter_count(again) == active_parameter_count(model));
    for (const Recompute recompute : {Recompute::none, Recompute::selective}) {
      PassShape pass;
      pass.recompute = recompute;
      const auto layers = layer_costs(model, pass), same = layer_costs(again, pass);
      REQUIRE(layers.size() == same.size());
      for (std::size_t i = 0; i < layers.size(); ++i) {
        CHECK(layers[i].saved_bytes == same[i].saved_bytes);
        CHECK(flops(layers[i].forward) == flops(same[i].forward));
        CHECK(memory_bytes(layers[i].forward) == memory_bytes(same[i].forward));
        // Each forward product with weights has a backward product of the same FLOPs.
        double with_weights = 0;
        for (const Kernel& kernel : layers[i].forward)
          if (kernel.kind != Kernel::Kind::attention) with_weights += kernel.flops();
        CHECK(flops(layers[i].backward_weight) == Approx(with_weights).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("which layers have a sliding window") {
  using Layers = std::vector<int>;
  const Sizes small{64, 128, 6, 4, 4, 100, 4096};
  const std::string types = R"(, "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
    "sliding_attention", "sliding_attention", "full_attention"])";
  const std::string full = R"(, "layer_types": ["full_attention", "full_attention", "full_attention",
    "full_attention", "full_attention", "full_attention"])";
  struct Case {
    const char *type, *more;
    double window;
    Layers full;
  };
  const Case cases[] = {
      {"llama", "", 0, {}},
      {"mistral", "", 4096, {}},  // the library's default
      {"mistral", R"(, "sliding_window": null)", 0, {}},
      {"mistral", R"(, "sliding_window": 16)", 16, {}},
      {"phi3", "", 0, {}},
      {"phi3", R"(, "sliding_window": 16)", 16, {}},
      {"gemma2", "", 4096, {1, 3, 5}},
      {"gemma3_text", R"(, "sliding_window": 512)", 512, {5}},
      {"gemma3_text", R"(, "sliding_window_pattern": 3)", 4096, {2, 5}},
      {"gemma3_text", types.c_str(), 4096, {0, 5}},
      {"gemma2", full.c_str(), 0, {}},
      {"gpt_oss", R"(, "num_local_experts": 2, "experts_per_token": 1)", 128, {1, 3, 5}},
      {"qwen2", R"(, "sliding_window": 16)", 0, {}},
      {"qwen3",
       R"(, "sliding_window": 16, "use_sliding_window": true, "max_window_layers": 4)",
       16,
       {0, 1, 2, 3}},
      {"qwen2", R"(, "use_sliding_window": true)", 0, {}},  // only from layer 28 on
  };
  for (const Case& c : cases) {
    CAPTURE(c.type, c.more);
    const Transformer t = shape_of(config(c.type, small, c.more));
    CHECK(t.window == c.window);
    CHECK(t.full_attention_layers == c.full);
  }
}

TEST_CASE("a query with a sliding window has as many scores as the window has keys") {
  const double a = 4, d = 16, s = 32, w = 8, b = 2;
  Model model;
  model.shape = shape_of(config("gemma2", {64, 128, 2, 4, 4, 100, 32},
                                R"(, "head_dim": 16, "sliding_window": 8, "attn_logit_softcapping": null)"));
  PassShape pass;
  pass.micro_batch = b;
  const auto layers = layer_costs(model, pass);
  const LayerCost &local = layers[1], &full = layers[2];
  CHECK(flops(full.forward) - flops(local.forward) == 2 * 2 * b * a * s * (s - w) * d);
  CHECK(flops(full.backward_input) - flops(local.backward_input) == 4 * 2 * b * a * s * (s - w) * d);
  CHECK(memory_bytes(full.forward) - memory_bytes(local.forward) == 2 * 2 * b * a * s * (s - w));
  CHECK(full.saved_bytes - local.saved_bytes == 2 * b * a * s * (s - w));
  CHECK(full.parameters == local.parameters);
  for (const Kernel& kernel : local.forward)
    if (kernel.kind == Kernel::Kind::attention) CHECK(kernel.bytes == 2 * b * a * (2 * s * d + s * w));
  pass.sequence_length = w;  // not longer than the window
  const auto inside = layer_costs(model, pass);
  CHECK(flops(inside[1].forward) == flops(inside[2].forward));
  CHECK(inside[1].saved_bytes == inside[2].saved_bytes);
}

TEST_CASE("what each part of newer layers adds to a Llama layer") {
  const double h = 64, a = 4, kv = 2, d = 16, f = 128, s = 32, n = 2 * s, element = 2;
  struct Case {
    const char* variant;
    void (*change)(Transformer&);
    double parameters, products;  // added to a layer: elements; FLOPs per token
    double moved, saved;          // elements per token
  };
  const Case cases[] = {
      // Q and K: the norms read and write them; their inputs are stored.
      {"QK norm", [](Transformer& t) { t.qk_norm = true; }, 2 * d, 0, 2 * (a + kv) * d, (a + kv) * d},
      {"norms after each part", [](Transformer& t) { t.post_norms = true; }, 2 * h, 0, 4 * h, 2 * h},
      {"norms with an offset", [](Transformer& t) { t.norm_biases = true; }, 2 * h, 0, 0, 0},
      {"branches side by side", [](Transformer& t) { t.parallel_residual = true; }, 0, 0, 0, -h},
      {"QK norm with gains of each head",
       [](Transformer& t) {
         t.qk_norm = true;
         t.qk_norm_gains = QkNormGains::heads;
       },
       (a + kv) * d, 0, 2 * (a + kv) * d, (a + kv) * d},
      {"QK norm over all heads",
       [](Transformer& t) {
         t.qk_norm = true;
         t.qk_norm_gains = QkNormGains::all;
       },
       (a + kv) * d, 0, 2 * (a + kv) * d, (a + kv) * d},
      {"QK norm without gains",
       [](Transformer& t) {
         t.qk_norm = true;
         t.qk_norm_gains = QkNormGains::none;
       },
       0, 0, 2 * (a + kv) * d, (a + kv) * d},
      // A norm reads and writes h, and both are stored.
      {"branches behind one norm", [](Transformer& t) { t.parallel_residual = t.shared_norm = true; }, -h, 0,
       -2 * h, -2 * h},
      // The products store their inputs, and the norms theirs.
      {"norms after each part alone",
       [](Transformer& t) {
         t.pre_norms = false;
         t.post_norms = true;
       },
       0, 0, 0, 0},
      {"norms without gains", [](Transformer& t) { t.norm_gains = false; }, -2 * h, 0, 0, 0},
      {"a bias behind attention", [](Transformer& t) { t.projection_bias = true; }, h, 0, 0, 0},
      {"no rotary positions in this layer", [](Transformer& t) { t.no_rotary_layers = {0}; }, 0, 0,
       -2 * (a + kv) * d, 0},
      {"sinks", [](Transformer& t) { t.attention_sinks = true; }, a, 0, 0, a},
      {"soft-capped scores", [](Transformer& t) { t.attention_softcap = true; }, 0, 0, 0, a * s},
      // Products of Q, K, V, output; repeating K and V; rotary embedding; Q, K and V as one tensor after it.
      {"heads twice as wide", [](Transformer& t) { t.head_dim = 32; }, 2 * h * (a + kv) * d,
       2 * 2 * h * (a + kv) * d + 2 * 2 * a * d * s, 2 * (a + kv) * d + 2 * (a + kv) * d + 2 * a * d,
       4 * a * d},
      // V, the repeated V, concatenated heads; stored: V and attention's output.
      {"values twice as wide", [](Transformer& t) { t.value_head_dim = 32; }, h * (a + kv) * d,
       2 * h * (a + kv) * d + 2 * a * d * s, (a + kv) * d + 2 * a * d, 2 * a * d},
  };
  Transformer base;
  base.layers = 1;
  base.hidden = h;
  base.heads = a;
  base.kv_heads = kv;
  base.feed_forward = f;
  base.vocabulary = 100;
  base.sequence_length = s;
  base.gated = base.rotary = true;
  base.biases = base.qkv_biases = base.dropout = base.tied_embeddings = false;
  PassShape pass;
  pass.micro_batch = 2;
  const auto layer = [&](const Transformer& t) {
    Model model;
    model.shape = t;
    return layer_costs(model, pass)[1];
  };
  const LayerCost plain = layer(base);
  for (const Case& c : cases) {
    CAPTURE(c.variant);
    Transformer t = base;
    c.change(t);
    const LayerCost changed = layer(t);
    CHECK(changed.parameters - plain.parameters == c.parameters);
    CHECK(flops(changed.forward) - flops(plain.forward) == n * c.products);
    CHECK(memory_bytes(changed.forward) - memory_bytes(plain.forward) == element * n * c.moved);
    CHECK(changed.saved_bytes - plain.saved_bytes == element * n * c.saved);
  }
  SECTION("a bias of the logits") {
    Transformer t = base;
    t.head_bias = true;
    Model one, other;
    one.shape = base;
    other.shape = t;
    CHECK(parameter_count(other) - parameter_count(one) == 100);
  }
  SECTION("relative positions of DeBERTa") {
    Transformer t = base;
    t.causal = t.rotary = t.gated = false;
    t.kv_heads = a;
    t.masked_lm_head = true;
    const LayerCost without = layer(t);
    const double r = 2 * 8;
    t.relative_positions = r;
    const LayerCost with = layer(t);
    CHECK(with.parameters == without.parameters);
    // Two projections of the table; two products of [s, d] with [r, d] for each head and sample.
    CHECK(flops(with.forward) - flops(without.forward) == 2 * (2 * r * h * h) + 2 * (2 * n * a * r * d));
    CHECK(flops(with.backward_weight) - flops(without.backward_weight) == 2 * (2 * r * h * h));
    CHECK(flops(with.backward_input) - flops(without.backward_input) ==
          2 * (2 * r * h * h) + 2 * 2 * (2 * n * a * r * d));
    t.relative_weights = true;
    CHECK(layer(t).parameters - without.parameters == 2 * h * h + h);
    // No fused kernel adds them.
    PassShape fused = pass;
    fused.attention = AttentionKernels::flash_2;
    Model model;
    model.shape = t;
    CHECK(layer_costs(model, fused)[1].saved_bytes == layer(t).saved_bytes);
  }
  SECTION("ReLU keeps its result alone") {
    Transformer gelu = base, relu = base;
    gelu.gated = relu.gated = false;
    relu.relu = true;
    CHECK(layer(gelu).saved_bytes - layer(relu).saved_bytes == element * n * f);
  }
  SECTION("dropout in one place") {
    Transformer t = base;
    t.attention_dropout = true;
    const double scores = n * a * s;
    CHECK(layer(t).saved_bytes - plain.saved_bytes == (element + 1) * scores);
    CHECK(memory_bytes(layer(t).forward) - memory_bytes(plain.forward) == (2 * element + 1) * scores);
    t.dropout = true;
    t.attention_dropout = false;
    CHECK(layer(t).saved_bytes - plain.saved_bytes == 2 * n * h);
  }
  SECTION("soft-capped logits are kept once more") {
    Transformer t = base;
    t.logit_softcap = true;
    Model one, other;
    one.shape = base;
    other.shape = t;
    const LayerCost head = layer_costs(one, pass).back(), capped = layer_costs(other, pass).back();
    CHECK(capped.saved_bytes - head.saved_bytes == element * n * 100);
    CHECK(memory_bytes(capped.forward) - memory_bytes(head.forward) == 2 * element * n * 100);
    CHECK(memory_bytes(capped.backward_input) - memory_bytes(head.backward_input) == 3 * element * n * 100);
  }
}

TEST_CASE("a layer with latent attention by hand") {
  // The kind of DeepSeek V2: 4 heads of 24 + 8, values of 16, queries from 48, keys and values from 40.
  Transformer t;
  t.layers = 1;
  t.hidden = 64;
  t.heads = t.kv_heads = 4;
  t.head_dim = 32;
  t.rope_head_dim = 8;
  t.value_head_dim = 16;
  t.q_lora_rank = 48;
  t.kv_lora_rank = 40;
  t.feed_forward = 128;
  t.vocabulary = 100;
  t.sequence_length = 32;
  t.gated = t.rotary = true;
  t.biases = t.qkv_biases = t.dropout = t.tied_embeddings = false;
  const double h = 64, a = 4, d = 32, r = 8, v = 16, q = 48, k = 40, f = 128, s = 32, n = 2 * s;
  PassShape pass;
  pass.micro_batch = 2;
  const auto layer = [&](const Transformer& shape) {
    Model model;
    model.shape = shape;
    return layer_costs(model, pass)[1];
  };
  const LayerCost latent = layer(t);
  const double weights = h * q + q * a * d + h * (k + r) + k * a * (d - r + v) + a * v * h;
  CHECK(latent.parameters == weights + q + k + 3 * h * f + 2 * h);
  CHECK(flops(latent.forward) == 2 * n * (weights + 3 * h * f) + 2 * n * s * a * (d + v));
  CHECK(flops(latent.backward_weight) == 2 * n * (weights + 3 * h * f));
  CHECK(flops(latent.backward_input) == 2 * n * (weights + 3 * h * f) + 4 * n * s * a * (d + v));
  // Two norms of the layer and two of compressed vectors; rotary queries in place; keys and values, read
  // expanded and written in attention's layout; softmax; concatenation of heads; two residual sums; SwiGLU.
  CHECK(memory_bytes(latent.forward) ==
        2 * n *
            (4 * h + 2 * (q + k) + 2 * a * r + (a * (d - r + v) + r + a * (d + v)) + 2 * a * s + 2 * a * v +
             6 * h + 3 * f));
  // Inputs of two norms and of the first products, in both parts; compressed vectors before and after their
  // norms; Q, K, V, softmax and the output projection's input; tensors inside SwiGLU.
  CHECK(latent.saved_bytes == 2 * n * (4 * h + 2 * (q + k) + a * (2 * d + 2 * v) + a * s + 3 * f));
  pass.recompute = Recompute::selective;
  CHECK(layer(t).saved_bytes == 2 * n * (4 * h + 2 * (q + k) + a * (2 * d + 2 * v) + 3 * f));
  pass.recompute = Recompute::none;
  t.q_lora_rank = 0;
  CHECK(layer(t).parameters == latent.parameters - (h * q + q * a * d + q) + h * a * d);
  CHECK(latent.saved_bytes - layer(t).saved_bytes == 2 * n * 2 * q);
}

TEST_CASE("mixtures with layers that are none") {
  const Sizes small{64, 96, 6, 4, 4, 100, 32};
  const std::string moe = R"(, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16)";
  const auto dense = [&](const std::string& more) {
    return shape_of(config("qwen3_moe", small, moe + more)).dense_layers;
  };
  CHECK(dense("").empty());
  CHECK(dense(R"(, "decoder_sparse_step": 2)") == std::vector<int>{0, 2, 4});
  CHECK(dense(R"(, "mlp_only_layers": [5, 1])") == std::vector<int>{1, 5});
  const Transformer t = shape_of(config("qwen3_moe", small, moe + R"(, "mlp_only_layers": [0])"));
  CHECK(t.dense_feed_forward == 96);
  CHECK(t.feed_forward == 16);
  Model model;
  model.shape = t;
  const auto layers = layer_costs(model, {});
  CHECK(layers[2].parameters - layers[1].parameters == 3 * 64 * 16 * 8 + 64 * 8 - 3 * 64 * 96);
  CHECK(layer_of(layers, 1, &LayerCost::forward) - layer_of(layers, 0, &LayerCost::forward) ==
        2 * 32 * (3 * 64 * 16 * 2 + 64 * 8 - 3 * 64 * 96));
  CHECK(active_parameter_count(model) == parameter_count(model) - 5 * 6 * 3 * 64 * 16);
  // All layers are dense, so the model is not a mixture.
  const Transformer none = shape_of(config("qwen3_moe", small, moe + R"(, "decoder_sparse_step": 7)"));
  CHECK(none.experts == 0);
  CHECK(none.feed_forward == 96);
  const Transformer shared = shape_of(kDeepSeekLite);
  CHECK(shared.dense_layers == std::vector<int>{0});
  CHECK(shared.shared_expert == 2816);
  CHECK(!shared.shared_expert_gate);
}

TEST_CASE("what is left out of a config is said") {
  CHECK(parse(kGemma3).notes.empty());
  CHECK(parse(kDeepSeekLite).notes.empty());
  REQUIRE(parse(kGemma3Images).notes.size() == 2);
  CHECK(parse(kGemma3Images).notes[0].find("text_config") != std::string::npos);
  CHECK(parse(kGemma3Images).notes[1] ==
        "The file leaves out num_attention_heads (8), vocab_size (262208): they are the library's defaults.");
  REQUIRE(parse(kDeepSeek3).notes.size() == 1);
  CHECK(parse(kDeepSeek3).notes[0].find("multi-token prediction") != std::string::npos);
}

TEST_CASE("configs of the families are refused by their key") {
  const Sizes small{64, 96, 2, 4, 4, 100, 32};
  struct Case {
    std::string json, error;  // after "config.json: "
  };
  std::string mixtures;
  for (const families::Family& family : families::mixture_families())
    mixtures += (mixtures.empty() ? "\"" : ", \"") + std::string(family.type) + "\"";
  const Case cases[] = {
      {R"({"model_type": "gemma3"})", "text_config is missing; allowed: an object, {...}"},
      {R"({"model_type": "gemma3", "text_config": 3})", "text_config is 3; allowed: an object, {...}"},
      {R"({"model_type": "gemma3", "text_config": {"hidden_size": 0}})",
       "text_config.hidden_size is 0; allowed: an integer from 1 to 1000000"},
      {config("gemma2", small, R"(, "layer_types": ["full_attention"])"),
       "layer_types is an array of 1; allowed: an array of 2, one for each layer"},
      {config("gemma2", small, R"(, "layer_types": ["full_attention", "linear_attention"])"),
       "layer_types[1] is a string \"linear_attention\"; allowed: \"full_attention\", \"sliding_attention\", "
       "\"attention\", \"chunked_attention\", \"global\", \"local\", \"full\", \"sliding\""},
      {config("gemma2", small, R"(, "sliding_window": -1)"),
       "sliding_window is -1; allowed: an integer from 1 to 100000000"},
      {config("gemma2", small, R"(, "attn_logit_softcapping": "no")"),
       "attn_logit_softcapping is a string \"no\"; allowed: a number above 0, or null"},
      {config("mistral", {64, 96, 2, 5, 5, 100, 32}),
       "num_attention_heads is 5; allowed: a divisor of hidden_size, 64"},
      {config("gpt_oss", small, R"(, "num_local_experts": 4, "num_experts_per_tok": 5)"),
       "num_experts_per_tok is 5; allowed: an integer from 1 to 4"},
      {config("deepseek_v3", small, R"(, "attention_bias": true)"), "attention_bias is true; allowed: false"},
      {config("deepseek_v3", small, R"(, "kv_lora_rank": 8, "first_k_dense_replace": 1, "n_routed_experts": 4,
        "moe_intermediate_size": 10000000, "n_shared_experts": 2, "num_experts_per_tok": 2)"),
       "n_shared_experts is 2; allowed: an integer from 0 to 1"},
      {config("deepseek_v3", small, R"(, "kv_lora_rank": 8, "first_k_dense_replace": 1, "n_routed_experts": 6,
        "num_experts_per_tok": 2, "n_group": 4, "topk_group": 2)"),
       "n_group is 4, with topk_group 2; allowed: equal groups of 6 experts, so large that topk_group of "
       "them "
       "have at least 2"},
      {config("qwen3_moe", small, R"(, "mlp_only_layers": [2], "num_experts": 4, "num_experts_per_tok": 2)"),
       "mlp_only_layers is an array with 2; allowed: layers from 0 to 1"},
      {config("opt", small, R"(, "_remove_final_layer_norm": true)"),
       "_remove_final_layer_norm is true; allowed: false"},
      {config("gpt_neox", small, R"(, "hidden_act": 3)"), "hidden_act is 3; allowed: a string"},
      {config("phi3", small, R"(, "num_experts": 4)"),
       "num_experts is 4 in a model of type \"phi3\"; allowed: experts in models of type " + mixtures},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    CHECK(error_of(c.json) == "config.json: " + c.error);
  }
}

TEST_CASE("keys of [model.transformer] that do not fit together are refused") {
  const std::string text = "layers = 2\nhidden = 64\nheads = 4\nvocabulary = 100\nsequence_length = 16\n";
  struct Case {
    std::string keys, error;  // after "m.toml:7:..: transformer."
  };
  const Case cases[] = {
      {"full_attention_layers = [1]",
       "full_attention_layers is given without window; allowed: only with window"},
      {"window = 4\nfull_attention_layers = [2]",
       "full_attention_layers[0] is 2; allowed: an integer from 0 to 1"},
      {"window = 4\nfull_attention_layers = [1, 0]",
       "full_attention_layers is an array with 0 after 1; allowed: layers in ascending order, each once"},
      {"rope_head_dim = 4", "rope_head_dim is given without kv_lora_rank; allowed: only with kv_lora_rank"},
      {"kv_lora_rank = 8", "rope_head_dim is missing; allowed: an integer from 1 to 16"},
      {"kv_lora_rank = 8\nrope_head_dim = 17", "rope_head_dim is 17; allowed: an integer from 1 to 16"},
      {"kv_lora_rank = 8\nrope_head_dim = 8\nkv_heads = 2",
       "kv_heads is 2 with kv_lora_rank; allowed: as many as heads, 4"},
      {"kv_lora_rank = 8\nrope_head_dim = 8\nqk_norm = true",
       "qk_norm is true with kv_lora_rank; allowed: false"},
      {"shared_norm = true",
       "shared_norm is true without parallel_residual; allowed: only with parallel_residual = true"},
      {"pre_norms = false", "pre_norms is false without post_norms; allowed: true, or post_norms = true"},
      {"qk_norm_gains = \"all\"",
       "qk_norm_gains is given without qk_norm; allowed: only with qk_norm = true"},
      {"norm_gains = false\nnorm_biases = true",
       "norm_biases is true with norm_gains = false; allowed: false: such norms have no parameters"},
      {"no_rotary_layers = [0]", "no_rotary_layers is given without rotary; allowed: only with rotary"},
      {"image_size = 8", "image_size is given without patch_size; allowed: only with patch_size"},
      {"narrow_positions = true",
       "narrow_positions is true without embedding_width; allowed: false, or an embedding_width"},
      {"gated = true\nrelu = true", "relu is true with gated; allowed: false"},
      {"dense_layers = [0]", "dense_layers is given without experts; allowed: only with experts"},
      {"groups_per_token = 2", "groups_per_token is given without experts; allowed: only with experts"},
      {"experts = 8\nexperts_per_token = 2\nexpert_groups = 3",
       "expert_groups is 3; allowed: a divisor of experts, 8"},
      {"experts = 8\nexperts_per_token = 3\nexpert_groups = 4\ngroups_per_token = 1",
       "groups_per_token is 1, with 2 experts altogether; allowed: enough groups for experts_per_token, 3"},
      {"experts = 8\nexperts_per_token = 2\nexpert_groups = 4\ngroups_per_token = 5",
       "groups_per_token is 5; allowed: an integer from 1 to 4"},
      {"experts = 4\nexperts_per_token = 1\ndense_layers = [0]",
       "dense_feed_forward is missing; allowed: an integer from 1 to 10000000"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.keys);
    std::string found = "no error";
    try {
      parse_model_file(Document::parse_text("[transformer]\n" + text + c.keys, "m.toml"), "m.toml");
    } catch (const InputError& error) {
      found = error.what();
    }
    const std::size_t at = found.find("transformer.");
    REQUIRE(at != std::string::npos);
    CHECK(found.substr(at + 12) == c.error);
  }
}
