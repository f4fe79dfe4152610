// Checks [model] huggingface: config.json files of the supported families, and what is refused.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "models/model.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

struct ConfigFile {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rehearse-huggingface-" + std::to_string(getpid()));
  ConfigFile() { std::filesystem::create_directory(folder); }
  ~ConfigFile() { std::filesystem::remove_all(folder); }

  Model read(const std::string& json, const std::string& more = "") const {
    std::ofstream(folder / "config.json") << json;
    Document document = Document::parse_text("[model]\nhuggingface = \"config.json\"\n" + more, "job.toml");
    Section section = document.root().section("model");
    return read_model(section, folder.string());
  }

  // Returns the error message without the leading "FOLDER/".
  std::string error_of(const std::string& json) const {
    try {
      read(json);
    } catch (const InputError& error) {
      const std::string what = error.what(), prefix = folder.string() + "/";
      return what.substr(0, prefix.size()) == prefix ? what.substr(prefix.size()) : what;
    }
    return "no error";
  }
};

const std::string kGpt2 = R"({
  "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
  "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257,
  "resid_pdrop": 0.1, "attn_pdrop": 0.1, "embd_pdrop": 0.1
})";

const std::string kQwen2 = R"({
  "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584,
  "intermediate_size": 18944, "max_position_embeddings": 131072, "max_window_layers": 28,
  "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "attention_dropout": 0.0,
  "sliding_window": 131072, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 152064
})";

std::string llama_config(const std::string& more = "") {
  return R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "max_position_embeddings": 8192, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "rope_theta": 500000.0, "torch_dtype": "bfloat16", "vocab_size": 128256)" +
         more + "}";
}

std::string mixtral(const std::string& experts) {
  return R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 4096,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "output_router_logits": false, "sliding_window": null,
    "tie_word_embeddings": false, "vocab_size": 32000, )" +
         experts + "}";
}

std::string qwen2_moe(const std::string& more = "") {
  return R"({"architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "hidden_size": 2048,
    "intermediate_size": 5632, "max_position_embeddings": 8192, "moe_intermediate_size": 1408,
    "num_attention_heads": 16, "num_experts": 60, "num_experts_per_tok": 4, "num_hidden_layers": 24,
    "num_key_value_heads": 16, "shared_expert_intermediate_size": 5632, "tie_word_embeddings": false,
    "use_sliding_window": false, "vocab_size": 151936)" +
         more + "}";
}

std::string bert(const std::string& heads) {
  return R"({"architectures": [")" + heads + R"("], "model_type": "bert", "hidden_size": 768,
    "intermediate_size": 3072, "max_position_embeddings": 512, "num_attention_heads": 12,
    "num_hidden_layers": 12, "type_vocab_size": 2, "vocab_size": 30522, "hidden_dropout_prob": 0.1})";
}

}  // namespace

TEST_CASE("a config.json opens as the model it describes") {
  const ConfigFile file;
  struct Case {
    const char* model;  // on Hugging Face; parameters are its checkpoint's, with shared ones counted once
    std::string json;
    double parameters, sequence_length;
    const char* preset;  // a preset with the same shape; "" if there is none
  };
  const Case cases[] = {
      {"openai-community/gpt2", kGpt2, 124'439'808, 1024, "gpt2"},
      {"meta-llama/Meta-Llama-3-8B", llama_config(), 8'030'261'248, 8192, "llama3-8b"},
      {"google-bert/bert-base-uncased", bert("BertForPreTraining"), 110'106'428, 512, "bert-base"},
      {"the same as BertModel", bert("BertModel"), 109'482'240, 512, ""},
      {"the same as BertForMaskedLM", bert("BertForMaskedLM"), 109'514'298, 512, ""},
      {"Qwen/Qwen2-7B", kQwen2, 7'615'616'512, 8192, "qwen2.5-7b"},
      {"mistralai/Mixtral-8x7B-v0.1", mixtral(R"("num_local_experts": 8, "num_experts_per_tok": 2)"),
       46'702'792'704, 8192, "mixtral-8x7b"},
      {"the same with the library's number of experts", mixtral(R"("rope_theta": 1e6)"), 46'702'792'704, 8192,
       "mixtral-8x7b"},
      {"Qwen/Qwen1.5-MoE-A2.7B", qwen2_moe(R"(, "decoder_sparse_step": 1, "mlp_only_layers": [])"),
       14'315'784'192, 8192, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.model);
    const Model model = file.read(c.json);
    CHECK(parameter_count(model) == c.parameters);
    CHECK(tokens_per_sample(model, 0) == c.sequence_length);
    CHECK(model.sample_unit == "sequences");
    if (*c.preset) {
      const Model preset = model_preset(c.preset);
      PassShape pass;
      pass.sequence_length = c.sequence_length;  // the preset's own length can differ
      CHECK(flops_per_sample(model, 0) == flops_per_sample(preset, c.sequence_length));
      const auto layers = layer_costs(model, pass), expected = layer_costs(preset, pass);
      REQUIRE(layers.size() == expected.size());
      for (std::size_t i = 0; i < layers.size(); ++i) {
        CHECK(layers[i].saved_bytes == expected[i].saved_bytes);
        CHECK(layers[i].forward.size() == expected[i].forward.size());
      }
    }
  }
}

TEST_CASE("what a config.json leaves out is as the library has it") {
  const ConfigFile file;
  const auto shape = [&](const std::string& json) { return std::get<Transformer>(file.read(json).shape); };
  CHECK(shape(kGpt2).feed_forward == 4 * 768);
  CHECK(shape(kGpt2).tied_embeddings);
  CHECK(shape(kGpt2).dropout);
  const std::string old = R"({"model_type": "llama", "hidden_size": 8, "intermediate_size": 16,
    "max_position_embeddings": 4, "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": 9,
    "head_dim": null})";
  CHECK(shape(old).kv_heads == 4);
  CHECK(!shape(old).tied_embeddings);
  CHECK(!shape(old).dropout);
  CHECK(shape(llama_config(R"(, "tie_word_embeddings": true)")).tied_embeddings);
  CHECK(shape(llama_config(R"(, "attention_dropout": 0.1)")).attention_dropout == true);
  CHECK(!shape(llama_config(R"(, "attention_dropout": 0.1)")).dropout);
  CHECK(file.read(llama_config()).title == "Transformer, 32 layers of 4096");
  CHECK(file.read(llama_config(), "title = \"Llama\"").title == "Llama");
}

TEST_CASE("bad config.json files are refused by file and key") {
  const ConfigFile file;
  const auto gpt2 = [](const std::string& from, const std::string& to) {
    std::string text = kGpt2;
    return text.replace(text.find(from), from.size(), to);
  };
  struct Case {
    std::string json;
    std::string error;
  };
  const Case cases[] = {
      {"", "config.json:1:1: the file ends too early; allowed: the config.json of a model"},
      {"{\n  \"n_embd\": 768,\n  oops\n}",
       "config.json:3:3: not JSON from here on, or just before; allowed: the config.json of a model"},
      {"{\n  \"n_embd\": 768\n",
       "config.json:3:1: the file ends too early; allowed: the config.json of a model"},
      {"{\"\xff\": 1}",
       "config.json:1:3: not JSON from here on, or just before; allowed: the config.json of a model"},
      {"{\"n_embd\": 1e999}", "config.json: has a number out of range; allowed: the config.json of a model"},
      {"[1, 2]", "config.json: is an array of 2; allowed: an object, {...}"},
      {"{}",
       "config.json: model_type is missing; allowed: a known type; model.family forces one; "
       "[model.transformer] describes any transformer"},
      {"{\"model_type\": 3}", "config.json: model_type is 3; allowed: a string"},
      {"{\"model_type\": \"gema2\"}",
       "config.json: model_type is \"gema2\"; allowed: a known type (the nearest is \"gemma2\"); "
       "model.family "
       "forces one; [model.transformer] describes any transformer"},
      {mixtral(R"("num_local_experts": 8, "num_experts_per_tok": 9)"),
       "config.json: num_experts_per_tok is 9; allowed: an integer from 1 to 8"},
      {mixtral(R"("num_local_experts": 0)"),
       "config.json: num_local_experts is 0; allowed: an integer from 1 to 10000"},
      {qwen2_moe(R"(, "decoder_sparse_step": 0)"),
       "config.json: decoder_sparse_step is 0; allowed: an integer from 1 to 10000"},
      {qwen2_moe(R"(, "mlp_only_layers": [24])"),
       "config.json: mlp_only_layers is an array with 24; allowed: layers from 0 to 23"},
      {gpt2("768", "-768"), "config.json: n_embd is -768; allowed: an integer from 1 to 1000000"},
      {gpt2("768", "18446744073709551615"),
       "config.json: n_embd is 18446744073709551615; allowed: an integer from 1 to 1000000"},
      {gpt2("768", "1e30"), "config.json: n_embd is 1e+30; allowed: an integer from 1 to 1000000"},
      {gpt2("768", "\"768\""),
       "config.json: n_embd is a string \"768\"; allowed: an integer from 1 to 1000000"},
      {gpt2("768", "[768]"), "config.json: n_embd is an array of 1; allowed: an integer from 1 to 1000000"},
      {gpt2("768", "768.5"), "config.json: n_embd is 768.5; allowed: an integer from 1 to 1000000"},
      {gpt2("\"n_head\": 12", "\"n_head\": 7"),
       "config.json: n_head is 7; allowed: a divisor of n_embd, 768"},
      {gpt2("\"n_layer\": 12", "\"n_layer\": 10001"),
       "config.json: n_layer is 10001; allowed: an integer from 1 to 10000"},
      {gpt2("\"resid_pdrop\": 0.1", "\"resid_pdrop\": 1"),
       "config.json: resid_pdrop is 1; allowed: a number from 0 to below 1"},
      {gpt2("\"n_ctx\"", "\"add_cross_attention\": true, \"n_ctx\""),
       "config.json: add_cross_attention is true; allowed: false"},
      {llama_config(R"(, "tie_word_embeddings": "no")"),
       "config.json: tie_word_embeddings is a string \"no\"; allowed: true or false"},
      {llama_config(R"(, "attention_bias": 1)"), "config.json: attention_bias is 1; allowed: true or false"},
      {llama_config(R"(, "num_key_value_heads": 5)"),
       "config.json: num_key_value_heads is 5; allowed: a divisor of num_attention_heads, 32"},
      {llama_config(R"(, "head_dim": 0)"),
       "config.json: head_dim is 0; allowed: an integer from 1 to 1000000"},
      {bert("BertLMHeadModel"),
       "config.json: architectures is \"BertLMHeadModel\"; allowed: a class ...Model, ...ForMaskedLM, "
       "...ForPreTraining, ...ForSequenceClassification, ...ForMultipleChoice, ...ForTokenClassification, "
       "...ForQuestionAnswering"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    CHECK(file.error_of(c.json) == c.error);
  }
  SECTION("deep nesting does no harm") {
    CHECK(file.error_of(std::string(1'000'000, '[')) ==
          "config.json:1:1000001: the file ends too early; allowed: the config.json of a model");
  }
  SECTION("a file that is none") {
    std::filesystem::create_directory(file.folder / "folder.json");
    Document document = Document::parse_text("[model]\nhuggingface = \"folder.json\"", "job.toml");
    Section section = document.root().section("model");
    CHECK_THROWS_AS(read_model(section, file.folder.string()), InputError);
  }
}
