// Tests scenarios whose model is a config.json: what the result states, and the scenario's text without that
// file.
#include <nlohmann/json.hpp>

#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;
using nlohmann::json;

namespace {

// Small models of each family, with length limits that nobody trains at.
const std::string kLlama = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
  "max_position_embeddings": 131072})";
const std::string kGemma =
    R"({"model_type": "gemma3", "text_config": {"hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 7, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
  "vocab_size": 100,
  "sliding_window": 512}})";
const std::string kDeepSeek = R"({"model_type": "deepseek_v3", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 4096,
  "kv_lora_rank": 16, "q_lora_rank": null, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
  "first_k_dense_replace": 1, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
  "moe_intermediate_size": 32, "num_nextn_predict_layers": 1})";
const std::string kOpt = R"({"model_type": "opt", "hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 2,
  "num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 128, "word_embed_proj_dim": 32,
  "do_layer_norm_before": false})";

std::string job(const Scratch& scratch, const std::string& config, const std::string& training = "",
                const std::string& strategy = "") {
  scratch.write("config.json", config);
  return scratch.write("job.toml",
                       "[model]\nhuggingface = \"config.json\"\n[training]\nglobal_batch = 4\n" + training +
                           "[cluster]\nnodes = 2\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\n"
                           "nic_gbps = 80\n[cluster.fabric]\nkind = \"switch\"\nlatency_us = 1\n"
                           "[strategy]\n" +
                           strategy);
}

json result_of(const std::string& path) {
  const Outcome outcome = run_rehearse("simulate " + path + " --format json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.status == 0);
  return json::parse(outcome.out);
}

bool says(const json& result, const std::string& words) {
  for (const json& note : result["notes"])
    if (note.get<std::string>().find(words) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("keys that do not fit a config.json are refused with its name") {
  struct Case {
    const char* keys;  // of [model.transformer]
    const char* error;
  };
  const Scratch scratch;
  for (const Case& c : {Case{"heads = 3", "config.json: model.transformer.kv_heads is 2"},
                        Case{"heads = 8\nkv_heads = 3", ":12: model.transformer.kv_heads is 3"},
                        // Layer 5 of the config attends to all keys.
                        Case{"layers = 3", "config.json: model.transformer.full_attention_layers[0] is 5"}}) {
    CAPTURE(c.keys);
    const std::string path = job(scratch, kGemma, "", "[model.transformer]\n" + std::string(c.keys) + "\n");
    const Outcome outcome = run_rehearse("simulate " + path);
    CHECK(outcome.status == 2);
    CAPTURE(outcome.err);
    CHECK(outcome.err.find(c.error) != std::string::npos);
  }
}

TEST_CASE("an assumed sequence length is said, and one that is given is not") {
  const Scratch scratch;
  const std::string said = "Sequences of 8192 tokens are assumed",
                    limit = "131072 tokens is not a training length";
  const json assumed = result_of(job(scratch, kLlama));
  CHECK(says(assumed, said));
  CHECK(says(assumed, limit));
  CHECK(says(assumed, "Set training.sequence_length"));
  const json given = result_of(job(scratch, kLlama, "sequence_length = 8192\n"));
  CHECK(!says(given, "assumed"));
  CHECK(given["step_time_s"] == assumed["step_time_s"]);
  const json other = result_of(job(scratch, kLlama, "sequence_length = 131072\n"));
  CHECK(!says(other, "assumed"));
  CHECK(other["step_time_s"].get<double>() > 16 * assumed["step_time_s"].get<double>());
  const Outcome text = run_rehearse("simulate " + job(scratch, kLlama));
  CHECK(text.out.find("Note: " + said) != std::string::npos);
}

TEST_CASE("windows and what is left out of a config are said") {
  const Scratch scratch;
  const json gemma = result_of(job(scratch, kGemma));
  CHECK(says(gemma, "Only the text model (text_config)"));
  CHECK(says(gemma, "compute and keep 512 scores for each query"));
  CHECK(!says(result_of(job(scratch, kGemma, "sequence_length = 512\n")), "scores for each query"));
  CHECK(says(result_of(job(scratch, kDeepSeek)), "multi-token prediction"));
  CHECK(!says(result_of(job(scratch, kDeepSeek)), "assumed"));
}

TEST_CASE("a scenario's text holds all of its config.json") {
  const Scratch scratch;
  for (const std::string& config : {kLlama, kGemma, kDeepSeek, kOpt}) {
    for (const std::string strategy : {"", "pipeline = 2\n"}) {
      CAPTURE(config, strategy);
      const Scenario scenario = read_scenario_file(job(scratch, config, "", strategy));
      const Scenario again = read_scenario_text(scenario.text, "elsewhere/job.toml");
      CHECK(again.text == scenario.text);
      CHECK(again.model.notes == scenario.model.notes);
      CHECK(parameter_count(again.model) == parameter_count(scenario.model));
      const json result = result_of(job(scratch, config, "", strategy));
      const json same = result_of(scratch.write("again.toml", scenario.text));
      CHECK(same["step_time_s"] == result["step_time_s"]);
      CHECK(same.at("memory_bytes") == result.at("memory_bytes"));
      CHECK(same["notes"] == result["notes"]);
    }
  }
}
