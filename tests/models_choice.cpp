// Checks which family a config.json is read as, and what the reader says of it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/families/read_family.hpp"
#include "models/kernels.hpp"
#include "models/text/toml_text.hpp"
#include "tests/catch.hpp"
#include "tests/models_kernels.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Model read_as(const std::string& json, const std::string& family = "") {
  return parse_huggingface(json, "config.json", family);
}

std::string refusal(const std::string& json, const std::string& family = "") {
  try {
    read_as(json, family);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

Transformer form_of(const std::string& json) {
  return std::get<Transformer>(read_as(json).shape);
}

bool notes_say(const Model& model, const std::string& words) {
  return std::any_of(model.notes.begin(), model.notes.end(),
                     [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

double with_left_out(const Model& model) {
  double sum = parameter_count(model);
  for (const LeftOut& part : model.left_out) sum += part.parameters;
  return sum;
}

struct CheckpointFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("rehearse-checkpoint-" + std::to_string(getpid()));
  CheckpointFolder() { std::filesystem::create_directory(path); }
  ~CheckpointFolder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

const std::string kSmallModel = R"("hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 8,
  "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 100, "max_position_embeddings": 128)";

}  // namespace

// The configs are cut down to the keys of the shape from those that users brought; billions of parameters as
// they are published, of Gemma and Llama 4 of the text model alone.
TEST_CASE("configs that people bring open with the published number of parameters") {
  struct Brought {
    const char *name, *json;
    double billion;
  };
  const Brought cases[] = {
      {"bloom-7b1",
       R"({ "model_type": "bloom", "architectures": [ "BloomForCausalLM" ], "n_layer": 30, "n_head": 32,
         "hidden_size": 4096, "vocab_size": 250880, "seq_length": 2048 })",
       7.07},
      {"deepseek-v2",
       R"({ "model_type": "deepseek_v2", "architectures": [ "DeepseekV2ForCausalLM" ], "hidden_size": 5120,
         "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_routed_experts": 160,
         "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "num_hidden_layers":
         60, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank":
         512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400,
         "max_position_embeddings": 163840, "moe_layer_freq": 1 })",
       235.7},
      {"falcon-7b",
       R"({ "model_type": "falcon", "architectures": [ "FalconForCausalLM" ], "hidden_size": 4544,
         "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024, "multi_query": true,
         "parallel_attn": true, "bias": false, "new_decoder_architecture": false, "alibi": false })",
       6.92},
      {"gemma3-12b",
       R"({ "model_type": "gemma3", "architectures": [ "Gemma3ForConditionalGeneration" ], "text_config": {
         "model_type": "gemma3_text", "hidden_size": 3840, "intermediate_size": 15360, "num_hidden_layers":
         48, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 262208,
         "sliding_window": 1024, "max_position_embeddings": 131072 }, "vision_config": { "hidden_size": 1152,
         "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 896,
         "patch_size": 14 } })",
       11.77},
      {"glm4-9b", R"({ "model_type": "glm4", "architectures": [ "Glm4ForCausalLM" ], "hidden_size": 4096,
         "intermediate_size": 13696, "num_hidden_layers": 40, "num_attention_heads": 32,
         "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552, "max_position_embeddings": 32768 })",
       9.4},
      {"gpt-neo-2.7b",
       R"({ "model_type": "gpt_neo", "architectures": [ "GPTNeoForCausalLM" ], "hidden_size": 2560,
         "num_layers": 32, "num_heads": 20, "vocab_size": 50257, "max_position_embeddings": 2048,
         "window_size": 256 })",
       2.65},
      {"hf-llama-attention-bias",
       R"({ "architectures": [ "LlamaForCausalLM" ], "model_type": "llama", "attention_bias": true,
         "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32,
         "vocab_size": 103168, "max_position_embeddings": 2048 })",
       7.32},
      {"hf-llama-first-generation",
       R"({ "architectures": [ "LlamaForCausalLM" ], "model_type": "llama", "hidden_size": 8192,
         "intermediate_size": 22016, "num_attention_heads": 64, "num_hidden_layers": 80, "vocab_size": 32000,
         "max_sequence_length": 2048, "rms_norm_eps": 1e-05 })",
       65.3},
      {"hf-opt-no-affine-norm",
       R"({ "architectures": [ "OPTForCausalLM" ], "model_type": "opt", "activation_function": "gelu",
         "do_layer_norm_before": true, "enable_bias": false, "ffn_dim": 28672, "hidden_size": 7168,
         "layer_norm_elementwise_affine": false, "max_position_embeddings": 2048, "num_attention_heads": 56,
         "num_hidden_layers": 48, "vocab_size": 50000, "word_embed_proj_dim": 7168 })",
       29.97},
      {"kimi-k2",
       R"({ "model_type": "kimi_k2", "architectures": [ "DeepseekV3ForCausalLM" ], "hidden_size": 7168,
         "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 384,
         "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1, "num_hidden_layers":
         61, "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840,
         "max_position_embeddings": 131072, "n_group": 1, "topk_group": 1, "moe_layer_freq": 1 })",
       1026},
      {"llama4-scout",
       R"({ "model_type": "llama4", "architectures": [ "Llama4ForConditionalGeneration" ], "text_config": {
         "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
         "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
         "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048, "num_local_experts": 16,
         "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "max_position_embeddings": 10485760 } })",
       107.8},
      {"olmo2-7b", R"({ "model_type": "olmo2", "architectures": [ "Olmo2ForCausalLM" ], "hidden_size": 4096,
         "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 32, "vocab_size": 100352, "max_position_embeddings": 4096,
         "tie_word_embeddings": false })",
       7.3},
      {"opt-30b",
       R"({ "model_type": "opt", "architectures": [ "OPTForCausalLM" ], "hidden_size": 7168, "ffn_dim": 28672,
         "num_hidden_layers": 48, "num_attention_heads": 56, "vocab_size": 50272, "max_position_embeddings":
         2048, "word_embed_proj_dim": 7168 })",
       29.97},
      {"phi3-mini", R"({ "model_type": "phi3", "architectures": [ "Phi3ForCausalLM" ], "hidden_size": 3072,
         "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 32, "vocab_size": 32064, "max_position_embeddings": 4096 })",
       3.82},
      {"qwen2.5-vl-7b",
       R"({ "model_type": "qwen2_5_vl", "architectures": [ "Qwen2_5_VLForConditionalGeneration" ],
         "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
         "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 128000, "vision_config":
         { "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size":
         3584, "patch_size": 14 } })",
       8.29},
      {"qwen2moe",
       R"({ "model_type": "qwen2_moe", "architectures": [ "Qwen2MoeForCausalLM" ], "hidden_size": 3584,
         "intermediate_size": 18944, "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480,
         "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 28, "num_attention_heads": 28,
         "num_key_value_heads": 4, "vocab_size": 151936, "max_position_embeddings": 32768 })",
       57.4},
      {"starcoder2-15b",
       R"({ "model_type": "starcoder2", "architectures": [ "Starcoder2ForCausalLM" ], "hidden_size": 6144,
         "intermediate_size": 24576, "num_hidden_layers": 40, "num_attention_heads": 48,
         "num_key_value_heads": 4, "vocab_size": 49152, "max_position_embeddings": 16384, "use_bias": true,
         "sliding_window": 4096 })",
       15.96},
      {"vit-large",
       R"({ "model_type": "vit", "architectures": [ "ViTForImageClassification" ], "hidden_size": 1024,
         "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 224,
         "patch_size": 16, "num_channels": 3 })",
       0.304},
  };
  for (const Brought& c : cases) {
    CAPTURE(c.name);
    const Model model = read_as(c.json);
    const bool text_alone = std::string(c.name) == "gemma3-12b";
    CHECK((text_alone ? parameter_count(model) : with_left_out(model)) / 1e9 ==
          Approx(c.billion).epsilon(0.005));
  }
}

TEST_CASE("configs whose layers are not modelled are refused by the name of the layers") {
  struct Brought {
    const char *name, *json, *layers;
  };
  const Brought cases[] = {
      {"hf-nemotron-h-infinity",
       R"({"architectures":["NemotronHForCausalLM"],"model_type":"nemotron_h","hidden_size":4096,"num_hidden_layers":52,"vocab_size":131072,"time_step_limit":[0.0,
         Infinity]})",
       "Mamba-2 (state space) layers"},
      {"mamba2-2.7b",
       R"({ "model_type": "mamba2", "architectures": [ "Mamba2ForCausalLM" ], "hidden_size": 2560,
         "num_hidden_layers": 64, "state_size": 128, "head_dim": 64, "num_heads": 80, "vocab_size": 50288,
         "expand": 2, "n_groups": 1, "conv_kernel": 4 })",
       "Mamba-2 (state space) layers"},
      {"nemotron-h-8b",
       R"({ "model_type": "nemotron_h", "architectures": [ "NemotronHForCausalLM" ], "hidden_size": 4096,
         "intermediate_size": 21504, "num_hidden_layers": 52, "hybrid_override_pattern":
         "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", "num_attention_heads": 32,
         "num_key_value_heads": 8, "head_dim": 128, "mamba_num_heads": 128, "mamba_head_dim": 64,
         "ssm_state_size": 128, "n_groups": 8, "vocab_size": 131072, "max_position_embeddings": 8192 })",
       "Mamba-2 (state space) layers"},
      {"t5-3b",
       R"({ "model_type": "t5", "architectures": [ "T5ForConditionalGeneration" ], "d_model": 1024, "d_ff":
         16384, "d_kv": 128, "num_heads": 32, "num_layers": 24, "num_decoder_layers": 24, "vocab_size": 32128
         })",
       "cross-attention"},
  };
  for (const Brought& c : cases) {
    CAPTURE(c.name);
    const std::string error = refusal(c.json);
    CHECK(error.find(c.layers) != std::string::npos);
    CHECK(error.find("not modelled; allowed: models of attention") != std::string::npos);
  }
  for (const families::MissingFamily& missing : families::missing_families()) {
    CAPTURE(missing.type);
    CHECK(refusal("{\"model_type\": \"" + std::string(missing.type) + "\"}").find(missing.layers) !=
          std::string::npos);
  }
}

TEST_CASE("every family opens with its type alone, as the library does") {
  for (const auto rows :
       {families::decoder_families(), families::mixture_families(), families::encoder_families()})
    for (const families::Family& family : rows) {
      CAPTURE(family.type);
      // The library itself has no number of experts for dots1, and heads of 42.67 for GLM-4.5.
      const std::string experts = family.type == "dots1"      ? R"(, "n_routed_experts": 8)"
                                  : family.type == "glm4_moe" ? R"(, "head_dim": 128)"
                                                              : "";
      const Model model = read_as("{\"model_type\": \"" + std::string(family.type) + "\"" + experts + "}");
      CHECK(parameter_count(model) > 0);
      CHECK(notes_say(model, "The file leaves out"));
      // What is written as keys is read as the same shape.
      const auto& shape = std::get<Transformer>(model.shape);
      TomlValue root;
      root.data = TomlValue::Table{};
      TomlEntry& entry = root.get<TomlValue::Table>()->emplace_back();
      entry.key = "transformer";
      entry.value = transformer_table(shape);
      const Model again = parse_model_file(Document::parse_text(toml_text(root), "m.toml"), "m.toml");
      CHECK(parameter_count(again) == parameter_count(model));
      CHECK(toml_text(transformer_table(std::get<Transformer>(again.shape))) ==
            toml_text(transformer_table(shape)));
      CHECK(flops_per_sample(again, 0) == flops_per_sample(model, 0));
    }
}

TEST_CASE("the README of the models names every type that opens") {
  std::stringstream readme;
  readme << std::ifstream(std::filesystem::path(REHEARSE_TESTS_DIR).parent_path() / "models" / "README.md")
                .rdbuf();
  for (const std::string& type : families::family_names()) {
    CAPTURE(type);
    CHECK(readme.str().find("`" + type + "`") != std::string::npos);
  }
}

TEST_CASE("an unknown type is read as the family whose keys it has") {
  const std::string sizes = kSmallModel + R"(, "rms_norm_eps": 1e-5, "rope_theta": 1e4)";
  const Model own = read_as("{\"model_type\": \"llama\", " + sizes + "}");
  CHECK(own.notes.empty());
  const Model other = read_as("{\"model_type\": \"my_model\", " + sizes + "}");
  CHECK(parameter_count(other) == parameter_count(own));
  CHECK(notes_say(other, "The type \"my_model\" is not known: it is read as \"llama\", whose keys it has."));
  CHECK(notes_say(read_as("{" + sizes + "}"), "The file has no model_type: it is read as \"llama\""));
  const Model by_class = read_as(
      R"({"model_type": "my_model", "architectures": ["Olmo2ForCausalLM"], "slots": 3, )" + sizes + "}");
  CHECK(notes_say(by_class, "by its class Olmo2ForCausalLM it is read as \"olmo2\""));
  const Model by_text = read_as(R"({"model_type": "my_images", "vision_config": {}, "text_config":
    {"model_type": "qwen3", )" + sizes +
                                "}}");
  CHECK(notes_say(by_text, "its text_config is read, as a model of type \"qwen3\""));
  CHECK(std::get<Transformer>(by_text.shape).qk_norm);
  const Model deeper = read_as(R"({"model_type": "my_omni", "thinker_config": {"model_type": "my_thinker",
    "text_config": {"model_type": "qwen2", )" +
                               sizes + "}}}");
  CHECK(notes_say(deeper, "Only the text model (thinker_config.text_config)"));
  CHECK(std::get<Transformer>(deeper.shape).qkv_biases);
  const std::string foreign = "{\"model_type\": \"my_model\", \"memory_slots\": 16, " + sizes + "}";
  CHECK(refusal(foreign) ==
        "config.json: model_type is \"my_model\"; allowed: a known type (the nearest is \"llama\", which "
        "reads no "
        "memory_slots); model.family forces one; [model.transformer] describes any transformer");
  CHECK(parameter_count(read_as(foreign, "llama")) == parameter_count(own));
  CHECK(std::get<Transformer>(read_as(foreign, "gpt_neox").shape).parallel_residual);
  const std::string wrong = refusal(foreign, "lama");
  CHECK(wrong.starts_with("config.json: model.family is \"lama\"; allowed: apertus, arcee, "));
  CHECK(wrong.ends_with("; did you mean \"llama\"?"));
  // A forced family wins over a type that is known, and over one whose layers are missing.
  CHECK(std::get<Transformer>(read_as(R"({"model_type": "mamba", )" + sizes + "}", "llama").shape).heads ==
        4);
}

TEST_CASE("a context limit is not taken for the length of training sequences") {
  const auto of_limit = [](int limit) {
    return form_of(
        R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
      "vocab_size": 100, "max_position_embeddings": )" +
        std::to_string(limit) + "}");
  };
  CHECK(of_limit(4096).sequence_length == 4096);
  CHECK(of_limit(4096).context_limit == 0);
  CHECK(of_limit(8192).sequence_length == 8192);
  CHECK(of_limit(8192).context_limit == 0);
  CHECK(of_limit(131072).sequence_length == 8192);
  CHECK(of_limit(131072).context_limit == 131072);
}

TEST_CASE("windows and rotary positions follow each family's pattern of layers") {
  using Layers = std::vector<int>;
  struct Pattern {
    const char *type, *keys;
    double window;
    Layers full, no_rotary;
  };
  const Pattern cases[] = {
      {"gpt_neo", R"(, "num_layers": 8, "num_heads": 4)", 256, {0, 2, 4, 6}, {}},
      {"gpt_neo", R"(, "attention_types": [[["global"], 1], [["local"], 7]])", 256, {0}, {}},
      {"gpt_neo", R"(, "attention_types": [[["local", "global"], 2]])", 256, {1, 3, 5, 7}, {}},
      {"cohere2", "", 4096, {3, 7}, {3, 7}},
      {"exaone4", R"(, "sliding_window_pattern": "LLG")", 4096, {2, 5}, {2, 5}},
      {"exaone4", R"(, "sliding_window": null)", 0, {}, {}},
      {"smollm3", "", 0, {}, {3, 7}},
      {"smollm3", R"(, "no_rope_layers": [1, 1, 0, 1, 1, 1, 1, 1])", 0, {}, {2}},
      {"llama4_text", "", 8192, {3, 7}, {3, 7}},
      {"olmo3", "", 4096, {3, 7}, {}},
      {"modernbert", "", 128, {0, 3, 6}, {}},
      {"starcoder2", R"(, "sliding_window": 16)", 16, {}, {}},
  };
  for (const Pattern& c : cases) {
    CAPTURE(c.type, c.keys);
    const Transformer t =
        form_of("{\"model_type\": \"" + std::string(c.type) + "\", " + kSmallModel + c.keys + "}");
    CHECK(t.window == c.window);
    CHECK(t.full_attention_layers == c.full);
    CHECK(t.no_rotary_layers == c.no_rotary);
  }
}

TEST_CASE("which layers have experts") {
  using Layers = std::vector<int>;
  struct Pattern {
    const char *type, *keys;
    Layers dense;
  };
  const Pattern cases[] = {
      {"llama4_text", R"(, "interleave_moe_layer_step": 2)", {0, 2, 4, 6}},
      {"llama4_text", R"(, "moe_layers": [7, 1])", {0, 2, 3, 4, 5, 6}},
      {"ernie4_5_moe", R"(, "moe_layer_start_index": 2, "moe_layer_end_index": 6)", {0, 1, 7}},
      {"deepseek_v3", R"(, "moe_layer_freq": [0, 1, 1, 1, 0, 1, 1, 1])", {0, 4}},
      {"glm4_moe",
       R"(, "mlp_layer_types": ["dense", "dense", "sparse", "sparse", "sparse", "sparse", "sparse",
        "sparse"])",
       {0, 1}},
      {"granitemoe", "", {}},
  };
  for (const Pattern& c : cases) {
    CAPTURE(c.type, c.keys);
    CHECK(form_of("{\"model_type\": \"" + std::string(c.type) + "\", " + kSmallModel + c.keys + "}")
              .dense_layers == c.dense);
  }
}

TEST_CASE("groups of experts limit the nodes that a token is sent to") {
  struct Case {
    const char *type, *keys;
    double groups, chosen;
  };
  const Case cases[] = {
      {"deepseek_v3", R"(, "n_routed_experts": 16, "n_group": 8, "topk_group": 4)", 8, 4},
      {"deepseek_v2",
       R"(, "n_routed_experts": 16, "n_group": 8, "topk_group": 3, "topk_method": "group_limited_greedy")", 8,
       3},
      {"deepseek_v2", R"(, "n_routed_experts": 16, "n_group": 8, "topk_group": 3, "topk_method": "greedy")",
       1, 1},
      {"kimi_k2", R"(, "n_routed_experts": 16, "n_group": 1, "topk_group": 1)", 1, 1},
      {"deepseek_v2", R"(, "n_routed_experts": 16, "n_group": null, "topk_group": null)", 1, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.type, c.keys);
    const Transformer t =
        form_of("{\"model_type\": \"" + std::string(c.type) + "\", " + kSmallModel +
                ", \"num_experts_per_tok\": 2, \"first_k_dense_replace\": 0" + c.keys + "}");
    CHECK(t.expert_groups == c.groups);
    CHECK(t.groups_per_token == c.chosen);
  }
}

TEST_CASE("Python's infinities and NaN are read") {
  const std::string llama = R"({"model_type": "llama", "limit": [0.0, Infinity], "low": -Infinity, "no": NaN,
    "text": "Infinity \" NaN", )" +
                            kSmallModel + "}";
  CHECK(form_of(llama).layers == 8);
  CHECK(refusal("{\"a\": NaN,\n \"b\": Infinity, oops}") ==
        "config.json:2:17: not JSON from here on, or just before; allowed: the config.json of a model");
}

TEST_CASE("the index of the checkpoint beside a config is compared") {
  const CheckpointFolder scratch;
  const std::string config = scratch.write(
      "config.json", R"({"model_type": "llama", "torch_dtype": "bfloat16", )" + kSmallModel + "}");
  const double counted = parameter_count(read_huggingface(config));
  const auto notes_with = [&](const std::string& metadata) {
    scratch.write("model.safetensors.index.json", metadata);
    return read_huggingface(config).notes;
  };
  const auto size = [](double bytes) {
    return "{\"metadata\": {\"total_size\": " + std::to_string(static_cast<long>(bytes)) + "}}";
  };
  CHECK(notes_with(size(2 * counted)).empty());
  CHECK(notes_with(size(2 * counted * 1.004)).empty());
  REQUIRE(notes_with(size(2 * counted * 1.25)).size() == 1);
  CHECK(notes_with(size(2 * counted * 1.25))[0].find("20.0 % fewer than model.safetensors.index.json says") !=
        std::string::npos);
  CHECK(notes_with("{\"metadata\": {\"total_parameters\": " + std::to_string(static_cast<long>(counted / 2)) +
                   "}}")[0]
            .find("100.0 % more") != std::string::npos);
  for (const char* broken :
       {"", "[]", "{}", "{\"metadata\": 3}", "{\"metadata\": {\"total_size\": \"x\"}}"}) {
    CAPTURE(broken);
    REQUIRE(notes_with(broken).size() == 1);
    CHECK(notes_with(broken)[0].starts_with("The checkpoint's index cannot be compared: "));
  }
  scratch.write("config.json",
                R"({"model_type": "llama", "torch_dtype": "bfloat16", "quantization_config": {}, )" +
                    kSmallModel + "}");
  CHECK(notes_with(size(counted)).empty());  // bytes of quantized weights say nothing
}

TEST_CASE("a vision transformer by hand") {
  const double h = 64, layers = 2, patch = 4, image = 16, pixels = 3 * patch * patch, tokens = 16 + 1,
               classes = 10;
  const Model model = read_as(R"({"model_type": "vit", "architectures": ["ViTForImageClassification"],
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "image_size": 16, "patch_size": 4, "num_labels": 10})");
  CHECK(model.sample_unit == "images");
  CHECK(tokens_per_sample(model, 0) == tokens);
  CHECK(sample_bytes(model, 0, Precision::bf16) == 2 * 3 * image * image);
  PassShape pass;
  pass.micro_batch = 3;
  const auto costs = layer_costs(model, pass);
  REQUIRE(costs.size() == layers + 2);
  const LayerCost &first = costs.front(), &last = costs.back();
  CHECK(first.parameters == pixels * h + h + h + tokens * h);
  CHECK(flops(first.forward) == 2 * 3 * tokens * pixels * h);
  CHECK(flops(first.backward_weight) == 2 * 3 * tokens * pixels * h);
  CHECK(flops(first.backward_input) == 0);  // images have no gradient
  CHECK(last.parameters == 2 * h + classes * h + classes);
  CHECK(flops(last.forward) == 2 * 3 * classes * h);
  CHECK(last.logits == 0);
}
