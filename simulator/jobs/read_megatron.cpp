// Reads Megatron-LM's arguments. What they mean, and their defaults: github.com/NVIDIA/Megatron-LM, tag
// core_v0.19.0, megatron/training/arguments.py (validate_args),
// megatron/core/transformer/transformer_config.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "simulator/jobs/job_readers.hpp"

namespace rehearse {
namespace {

constexpr double kGpt2Vocabulary = 50257;  // Radford et al. 2019
constexpr std::size_t kMostLayers = 100'000;

// Reads a pattern of layers: an integer n (one in n is 1), or Python's "([0]*3+[1]*58)". Returns an empty
// vector if it is neither.
std::vector<int> layer_pattern(std::string_view text, std::size_t layers) {
  std::vector<int> found;
  std::string plain;
  for (const char c : text)
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '[' || c == ']' || c == '*' || c == '+' ||
        c == ',' || c == '(' || c == ')')
      plain += c;
  const auto number = [&](std::size_t& at) {
    int value = 0;
    const auto [stop, error] = std::from_chars(plain.data() + at, plain.data() + plain.size(), value);
    at = static_cast<std::size_t>(stop - plain.data());
    return error == std::errc() ? value : -1;
  };
  if (!plain.empty() && plain.find('[') == std::string::npos) {
    std::size_t at = 0;
    const int every = number(at);
    if (every < 1 || at != plain.size()) return {};
    for (std::size_t i = 0; i < layers; ++i)
      found.push_back(i % static_cast<std::size_t>(every) == 0 ? 1 : 0);
    return found;
  }
  // Only sums of lists, each with a factor; parentheses around a sum with a factor repeat it.
  std::size_t group = 0;
  for (std::size_t at = 0; at < plain.size();) {
    std::size_t from = found.size();
    if (plain[at] == '(') {
      group = found.size();
      ++at;
      continue;
    }
    if (plain[at] == '[') {
      for (++at; at < plain.size() && plain[at] != ']';) {
        if (plain[at] == ',') {
          ++at;
          continue;
        }
        const std::size_t before = at;
        const int value = number(at);
        if (at == before || value < 0) return {};
        found.push_back(value);
      }
      ++at;
    } else if (plain[at] == ')') {
      from = group;
      ++at;
    } else {
      ++at;
      continue;
    }
    if (at < plain.size() && plain[at] == '*') {
      ++at;
      const int times = number(at);
      const std::vector<int> part(found.begin() + static_cast<long>(from), found.end());
      if (times < 0 || part.size() * static_cast<std::size_t>(times) + from > kMostLayers) return {};
      found.resize(from);
      for (int i = 0; i < times; ++i) found.insert(found.end(), part.begin(), part.end());
    }
  }
  return found.size() == layers ? found : std::vector<int>{};
}

// Expands "Et|(tt|)*6ttL" to the layers of each part, the embedding and the head counted as layers.
std::vector<int> layout_layers(std::string_view text) {
  std::string flat, group;
  bool in_group = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(') {
      in_group = true;
      group.clear();
    } else if (c == ')') {
      in_group = false;
    } else if (c == '*') {
      int times = 0;
      const auto [stop, error] = std::from_chars(text.data() + i + 1, text.data() + text.size(), times);
      if (error != std::errc() || times > 10'000 || group.size() > 10'000) return {};
      i = static_cast<std::size_t>(stop - text.data()) - 1;
      // Behind a group "(tt|)", or a single letter "t".
      const std::string& repeated = !group.empty() ? group
                                    : flat.empty() ? flat
                                                   : std::string(1, flat.back());
      const std::string part = repeated;
      if (group.empty() && !flat.empty()) flat.pop_back();
      for (int n = 0; n < times && flat.size() < kMostLayers; ++n) flat += part;
      group.clear();
    } else if (c == '|' || c == 'E' || c == 't' || c == 'L') {
      if (!in_group && !group.empty()) {
        flat += group;
        group.clear();
      }
      (in_group ? group : flat) += c;
    } else if (c != '"' && c != '\'' && c != ' ' && c != ',') {
      return {};
    }
  }
  flat += group;
  std::vector<int> parts = {0};
  for (const char c : flat)
    if (c == '|')
      parts.push_back(0);
    else
      ++parts.back();
  return parts;
}

class MegatronReader {
public:
  MegatronReader(JobFile& job, const JobSettings& settings)
      : job_(job), draft_(job, settings, megatron_names(), "--") {}

  void read(const ShellScript& script) {
    draft_.translate();
    read_launcher(draft_, script);
    for (const ShellWord& document : script.documents)
      if (document.text.find("\"zero_optimization\"") != std::string::npos) deepspeed_document(document);
    model();
    vocabulary();
    attention();
    experts();
    batch();
    precision();
    parallel();
    pipeline();
    sharding();
    memory();
    // Older scripts have neither argument.
    const bool core =
        draft_.on("use-mcore-models") || draft_.text("transformer-impl") == "transformer_engine";
    const char* framework = core ? "megatron-core-2024" : "megatron-2022";
    draft_.set_text("training.framework", framework);
    kernels();
    draft_.set("strategy.scatter_gather", false);
    draft_.note(fmt::format(
        "The framework preset is {}, with the overlap and the attention that the arguments ask for "
        "(--set training.framework=megatron-bridge-2025: without the host's launches).",
        framework));
    draft_.report();
  }

private:
  double layers() const { return draft_.number("num-layers", 0); }
  double hidden() const { return draft_.number("hidden-size", 0); }
  void transformer(std::string_view key, double value, std::string_view from = "") {
    draft_.set("model.transformer." + std::string(key), value, from);
  }
  void transformer(std::string_view key, bool value, std::string_view from = "") {
    draft_.set("model.transformer." + std::string(key), value, from);
  }

  void deepspeed_document(const ShellWord& document) {
    try {
      read_deepspeed_part(draft_, json_settings(document.text, job_.path));
    } catch (const InputError&) {
      draft_.note(
          fmt::format("The DeepSpeed configuration that line {} writes depends on variables that are not "
                      "set, and is left out.",
                      document.line));
    }
  }

  void model() {
    if (layers() == 0 || hidden() == 0) {
      std::erase_if(job_.keys, [](const JobKey& one) { return one.key.rfind("model.", 0) == 0; });
      return;
    }
    const bool gated = draft_.on("swiglu");
    const double usual = gated ? std::floor(4 * hidden() * 2 / 3 / 64) * 64 : 4 * hidden();
    inner_ = draft_.number("ffn-hidden-size", usual, 1);
    transformer("feed_forward", inner_, "ffn-hidden-size");
    transformer("gated", gated, "swiglu");
    if (draft_.on("squared-relu")) transformer("relu", true, "squared-relu");
    transformer("tied_embeddings", !draft_.on("untie-embeddings-and-output-weights"),
                "untie-embeddings-and-output-weights");
    const bool biases = !draft_.on("disable-bias-linear");
    const bool rms = draft_.text("normalization") == "RMSNorm";
    transformer("biases", biases, "disable-bias-linear");
    if (biases == rms) transformer("norm_biases", !rms, "normalization");
    if (draft_.on("add-qkv-bias")) transformer("qkv_biases", true, "add-qkv-bias");
    const bool dropout = draft_.number("hidden-dropout", 0.1) > 0,
               of_scores = draft_.number("attention-dropout", 0.1) > 0;
    transformer("dropout", dropout, "hidden-dropout");
    if (of_scores != dropout) transformer("attention_dropout", of_scores, "attention-dropout");
    const std::string positions = draft_.text("position-embedding-type", "learned_absolute");
    const bool rotary = positions == "rope" || positions == "yarn" || positions == "mrope" ||
                        draft_.on("use-rotary-position-embeddings");
    const bool learned = !rotary && positions == "learned_absolute" && !draft_.on("no-position-embedding");
    transformer("rotary", rotary, "position-embedding-type");
    const double limit = draft_.number("max-position-embeddings", draft_.number("seq-length", 0));
    const double tokens = draft_.number("seq-length", limit, 1);
    transformer("positions", learned ? limit : 0, "max-position-embeddings");
    transformer("sequence_length", tokens, "seq-length");
    if (!learned && limit > tokens) transformer("context_limit", limit, "max-position-embeddings");
  }

  void vocabulary() {
    if (layers() == 0) return;
    const std::string file = draft_.text("vocab-file");
    const bool gpt2 = file.find("gpt2") != std::string::npos ||
                      draft_.text("tokenizer-type") == "GPT2BPETokenizer" ||
                      (draft_.has("vocab-file") && draft_.has("merge-file"));
    const std::string_view from = draft_.has("padded-vocab-size") ? "padded-vocab-size" : "vocab-size";
    const double given = draft_.number(from, gpt2 ? kGpt2Vocabulary : 0);
    if (given == 0)
      return draft_.ask("model.transformer.vocabulary", "the tokenizer's file says it, not the arguments",
                        "--set model.transformer.vocabulary=128256");
    transformer("vocabulary", given,
                draft_.has(from)                   ? from
                : gpt2 && draft_.has("vocab-file") ? "vocab-file"
                                                   : "tokenizer-type");
    const double multiple = draft_.number("make-vocab-size-divisible-by", 128, 1) * std::max(1.0, tensor());
    const double padded = std::ceil(given / multiple) * multiple;
    if (padded != given)
      draft_.note(fmt::format("Megatron-LM pads the vocabulary of {:.0f} to {:.0f}, which is not counted.",
                              given, padded));
  }

  void attention() {
    if (layers() == 0) return;
    if (draft_.on("multi-latent-attention")) {
      const double rope = draft_.number("qk-pos-emb-head-dim", 64),
                   head = draft_.number("qk-head-dim", 128) + rope;
      transformer("kv_lora_rank", draft_.number("kv-lora-rank", 512), "kv-lora-rank");
      transformer("head_dim", head, "qk-head-dim");
      transformer("rope_head_dim", rope, "qk-pos-emb-head-dim");
      const double value = draft_.number("v-head-dim", 128);
      if (value != head) transformer("value_head_dim", value, "v-head-dim");
    } else {
      std::erase_if(job_.keys, [](const JobKey& one) { return one.key == "model.transformer.q_lora_rank"; });
      const double groups = draft_.number("num-query-groups", 0);
      if (groups > 0 && (draft_.on("group-query-attention") || groups > 1) &&
          groups != draft_.number("num-attention-heads", 0))
        transformer("kv_heads", groups, "num-query-groups");
      const double heads = draft_.number("num-attention-heads", 1, 1),
                   channels = draft_.number("kv-channels", 0);
      if (channels > 0 && channels * heads != hidden()) transformer("head_dim", channels, "kv-channels");
      if (draft_.on("qk-layernorm")) transformer("qk_norm", true, "qk-layernorm");
    }
    if (draft_.text("softmax-type") == "learnable") transformer("attention_sinks", true, "softmax-type");
    window();
  }

  void window() {
    const JobSetting* setting = draft_.find("window-size");
    if (!setting) return;
    std::string digits;
    for (const char c : setting->value) {
      if (c == ',' && !digits.empty()) break;
      if (std::isdigit(static_cast<unsigned char>(c))) digits += c;
    }
    if (digits.empty() || digits.size() > 9) return;
    transformer("window", std::stod(digits) + 1, "window-size");
    if (!draft_.has("window-attn-skip-freq")) return;
    const std::vector<int> windows =
        layer_pattern(draft_.text("window-attn-skip-freq"), static_cast<std::size_t>(layers()));
    list_layers("full_attention_layers", windows, 0, "window-attn-skip-freq");
  }

  // Lists the layers that have `value` in the pattern.
  bool list_layers(std::string_view key, const std::vector<int>& pattern, int value, std::string_view from) {
    std::vector<std::size_t> listed;
    for (std::size_t i = 0; i < pattern.size(); ++i)
      if ((pattern[i] != 0) == (value != 0)) listed.push_back(i);
    if (pattern.empty())
      draft_.note(fmt::format("--{} is a pattern that cannot be read, and is left out.", from));
    if (listed.empty()) return false;
    draft_.set_toml("model.transformer." + std::string(key), fmt::format("[{}]", fmt::join(listed, ", ")),
                    from);
    return true;
  }

  void experts() {
    const JobSetting* given = draft_.find("num-experts");
    if (layers() == 0 || !given) {
      std::erase_if(job_.keys, [](const JobKey& one) {
        return one.key == "model.transformer.shared_expert" || one.key == "strategy.capacity_factor";
      });
      return;
    }
    if (given->value.find(' ') != std::string::npos)
      draft_.refuse(*given, "one number of experts, for all layers");
    const double experts = draft_.number("num-experts", 0);
    if (experts <= 1) return;
    transformer("experts", experts, "num-experts");
    transformer("experts_per_token",
                draft_.number("moe-router-topk", draft_.number("topk", draft_.has("topk") ? 1 : 2)),
                draft_.has("topk") ? "topk" : "moe-router-topk");
    if (draft_.has("moe-router-num-groups") && draft_.has("moe-router-group-topk")) {
      transformer("expert_groups", draft_.number("moe-router-num-groups", 1), "moe-router-num-groups");
      transformer("groups_per_token", draft_.number("moe-router-group-topk", 1), "moe-router-group-topk");
    }
    transformer("feed_forward", draft_.number("moe-ffn-hidden-size", inner_),
                draft_.has("moe-ffn-hidden-size") ? "moe-ffn-hidden-size" : "ffn-hidden-size");
    if (!draft_.on("disable-bias-linear")) transformer("router_bias", false);
    if (draft_.has("moe-shared-expert-intermediate-size"))
      transformer("shared_expert_gate", draft_.on("moe-shared-expert-gate"), "moe-shared-expert-gate");
    if (draft_.has("moe-layer-freq") &&
        list_layers("dense_layers",
                    layer_pattern(draft_.text("moe-layer-freq"), static_cast<std::size_t>(layers())), 0,
                    "moe-layer-freq"))
      transformer("dense_feed_forward", inner_, "ffn-hidden-size");
    expert_axis();
  }

  void expert_axis() {
    const double degree =
        draft_.number("expert-model-parallel-size", draft_.number("moe-expert-parallel-size", 1, 1), 1);
    draft_.set(
        "strategy.expert", degree,
        draft_.has("moe-expert-parallel-size") ? "moe-expert-parallel-size" : "expert-model-parallel-size");
    if (draft_.has("expert-tensor-parallel-size"))
      draft_.set("strategy.expert_tensor", draft_.number("expert-tensor-parallel-size", 1, 1),
                 "expert-tensor-parallel-size");
    const std::string dispatcher = draft_.text("moe-token-dispatcher-type", "alltoall");
    if (dispatcher == "flex" || draft_.on("moe-enable-deepep"))
      draft_.set_text("strategy.expert_dispatch", "nodes", "moe-token-dispatcher-type");
    else if (dispatcher == "allgather")
      draft_.note("Experts get their rows by all-to-all, not by --moe-token-dispatcher-type allgather.");
  }

  void batch() {
    const bool sgd = draft_.text("optimizer") == "sgd";
    if (sgd && draft_.number("sgd-momentum", 0.9) > 0)
      draft_.set_text("training.optimizer", "momentum", "sgd-momentum");
    if (!draft_.has("micro-batch-size"))
      draft_.ask("training.micro_batch", "there is no --micro-batch-size", "--set training.micro_batch=1");
    if (!draft_.has("global-batch-size")) job_.accumulation = 1;
    const double samples = draft_.number("train-samples", 0), tokens = draft_.number("train-tokens", 0);
    const double steps = draft_.number("train-iters", 0);
    if (samples > 0)
      draft_.set("training.samples", samples, "train-samples");
    else if (tokens > 0)
      draft_.set("training.tokens", tokens, "train-tokens");
    else
      job_.iterations = steps;
  }

  void precision() {
    const bool bf16 = draft_.on("bf16"), fp16 = draft_.on("fp16");
    const std::string recipe = draft_.text("fp8-recipe", "delayed");
    const std::string_view fp8 = draft_.has("fp8-format")   ? "fp8-format"
                                 : draft_.has("fp8-hybrid") ? "fp8-hybrid"
                                                            : "fp8-e4m3";
    if (draft_.has("fp4-format"))
      draft_.set_text("training.precision", "nvfp4", "fp4-format");
    else if (draft_.on(fp8))
      draft_.set_text("training.precision", recipe == "mxfp8" ? "mxfp8" : "fp8", fp8);
    else
      draft_.set_text("training.precision", bf16 ? "bf16" : fp16 ? "fp16" : "fp32", bf16 ? "bf16" : "fp16");
    if (draft_.on(fp8) && recipe == "blockwise")
      draft_.note("Blocks of --fp8-recipe blockwise are counted as one scale a tensor.");
    // validate_args(): gradients of bf16 are reduced in fp32 unless --grad-reduce-in-bf16.
    const bool wide =
        draft_.on("accumulate-allreduce-grads-in-fp32") || (bf16 && !draft_.on("grad-reduce-in-bf16"));
    if (bf16 || fp16)
      draft_.set_text("training.gradient_precision",
                      wide   ? "fp32"
                      : bf16 ? "bf16"
                             : "fp16",
                      wide ? "accumulate-allreduce-grads-in-fp32" : "grad-reduce-in-bf16");
    gradient_bytes_ = wide || !(bf16 || fp16) ? 4 : 2;
    for (const char* gather : {"fp8-param-gather", "fp4-param-gather"})
      if (draft_.on(gather)) draft_.set("framework.narrow_gathers", true, gather);
  }

  double tensor() const {
    return draft_.number("tensor-model-parallel-size", draft_.number("model-parallel-size", 1, 1), 1);
  }

  void parallel() {
    if (draft_.number("context-parallel-size", 1) > 1 && draft_.has("cp-comm-type")) {
      const std::string_view kind = value_of_word(kMegatronContextKinds, draft_.text("cp-comm-type"));
      if (kind.empty()) draft_.refuse(*draft_.find("cp-comm-type"), "p2p, all_gather or a2a");
      draft_.set_text("strategy.context_kind", kind, "cp-comm-type");
    }
    if (draft_.number("ds-sequence-parallel-size", 1) > 1)
      draft_.set_text("strategy.context_kind", "all-to-all", "ds-sequence-parallel-size");
    if (draft_.on("use-tp-pp-dp-mapping"))
      draft_.set_toml("strategy.placement", "[\"tensor\", \"context\", \"pipeline\", \"data\"]",
                      "use-tp-pp-dp-mapping");
    if (tensor() <= 1) return;
    if (draft_.on("sequence-parallel")) draft_.set("strategy.sequence_parallel", true, "sequence-parallel");
    if (draft_.on("tp-comm-overlap"))
      draft_.set_text("strategy.tensor_overlap", "chunks", "tp-comm-overlap");
    else
      draft_.set_text("strategy.tensor_overlap",
                      draft_.on("no-async-tensor-model-parallel-allreduce") ? "none" : "weight-gradients",
                      "no-async-tensor-model-parallel-allreduce");
  }

  // What Transformer Engine and the fused loss take of memory, which the framework preset does not say.
  void kernels() {
    if (draft_.text("transformer-impl") == "transformer_engine")
      draft_.set("framework.engine_workspaces", draft_.on("moe-grouped-gemm") ? 5.0 : 1.0,
                 "transformer-impl");
    if (draft_.text("transformer-impl") == "local")
      draft_.set("framework.engine_workspaces", 0.0, "transformer-impl");
    // TEGroupedMLP in megatron/core/transformer/moe/experts.py, since 2025.
    if (draft_.on("moe-grouped-gemm")) draft_.set("framework.weighted_activations", true, "moe-grouped-gemm");
    if (draft_.on("deterministic-mode"))
      draft_.set("framework.deterministic_products", true, "deterministic-mode");
    if (!draft_.on("cross-entropy-loss-fusion")) return;
    if (draft_.text("cross-entropy-fusion-impl") == "te")
      draft_.set("training.fused_loss", true, "cross-entropy-fusion-impl");
    else  // its compiled functions hold the logits, a copy in fp32 and the exponentials
      draft_.set_toml("framework.loss_peak_bytes_per_logit",
                      "{value = 10, basis = \"published\", source = \"counted in "
                      "megatron/core/fusions/fused_cross_entropy.py\"}",
                      "cross-entropy-loss-fusion");
  }

  void pipeline() {
    const double stages = draft_.number("pipeline-model-parallel-size", 1, 1);
    if (stages <= 1) return;
    double chunks = draft_.number("num-virtual-stages-per-pipeline-rank", 1, 1);
    std::string_view from = "num-virtual-stages-per-pipeline-rank";
    const double each = draft_.number("num-layers-per-virtual-pipeline-stage", 0);
    if (each > 0 && layers() > 0) {
      chunks = std::round(layers() / stages / each);
      from = "num-layers-per-virtual-pipeline-stage";
    }
    if (draft_.has("pipeline-model-parallel-layout")) {
      const std::vector<int> parts = layout_layers(draft_.text("pipeline-model-parallel-layout"));
      from = "pipeline-model-parallel-layout";
      if (parts.size() > 1) {
        draft_.set_toml("strategy.stage_layers", fmt::format("[{}]", fmt::join(parts, ", ")), from);
        chunks = std::floor(static_cast<double>(parts.size()) / stages);
      } else {
        draft_.note("--pipeline-model-parallel-layout is not one of letters E, t and L, and is left out.");
      }
    } else if (draft_.has("decoder-first-pipeline-num-layers") ||
               draft_.has("decoder-last-pipeline-num-layers")) {
      ends(stages, chunks);
    } else {
      even(stages * chunks);
    }
    if (chunks > 1) {
      draft_.set_text("strategy.schedule", "interleaved", from);
      draft_.set("strategy.virtual_stages", chunks, from);
      constexpr std::string_view kGroup = "microbatch-group-size-per-virtual-pipeline-stage";
      if (const double group = draft_.number(kGroup, stages, 1); group != stages)
        draft_.set("strategy.microbatch_group", group, kGroup);
    }
    draft_.set("strategy.blocking_p2p", chunks <= 1 || draft_.on("no-overlap-p2p-communication"),
               "no-overlap-p2p-communication");
  }

  // Megatron-LM gives all stages the same number of layers. Only the account-for arguments count the
  // embedding and the loss as a layer each (megatron/core/transformer/transformer_block.py,
  // get_num_layers_to_build).
  void even(double parts) {
    const bool embedding = draft_.on("account-for-embedding-in-pipeline-split"),
               head = draft_.on("account-for-loss-in-pipeline-split");
    const double each = (layers() + embedding + head) / parts;
    if (each < 1 || each != std::floor(each) || parts > 10'000) return;  // left to the balance of times
    std::vector<int> sizes(static_cast<std::size_t>(parts), static_cast<int>(each));
    if (!embedding) ++sizes.front();
    if (!head) ++sizes.back();
    draft_.set_toml("strategy.stage_layers", fmt::format("[{}]", fmt::join(sizes, ", ")), "num-layers");
  }

  // The first and the last stage have their own number of layers.
  void ends(double stages, double chunks) {
    const double first = draft_.number("decoder-first-pipeline-num-layers", 0),
                 last = draft_.number("decoder-last-pipeline-num-layers", 0);
    const double inside = stages - (first > 0) - (last > 0);
    const double rest = layers() - first - last;
    if (chunks > 1 || inside < 1 || rest < inside || std::fmod(rest, inside) != 0 || stages > 10'000)
      return draft_.note(
          "--decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers are left out here.");
    std::vector<int> parts(static_cast<std::size_t>(stages), static_cast<int>(rest / inside));
    if (first > 0) parts.front() = static_cast<int>(first);
    if (last > 0) parts.back() = static_cast<int>(last);
    ++parts.front();  // the embedding
    ++parts.back();   // the head
    draft_.set_toml("strategy.stage_layers", fmt::format("[{}]", fmt::join(parts, ", ")),
                    first > 0 ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers");
  }

  void sharding() {
    const bool fsdp = draft_.on("use-megatron-fsdp") || draft_.on("use-custom-fsdp"),
               torch = draft_.on("use-torch-fsdp2");
    const std::string_view chosen =
        value_of_word(kMegatronShardedStages, draft_.text("data-parallel-sharding-strategy", "no_shard"));
    const double deepspeed = draft_.number("zero-stage", 0);
    double stage = draft_.on("use-distributed-optimizer") ? 1 : 0;
    std::string_view from = "use-distributed-optimizer";
    if (deepspeed > 0) stage = deepspeed, from = "zero-stage";
    if (fsdp && !chosen.empty()) stage = chosen[0] - '0', from = "data-parallel-sharding-strategy";
    if (torch) stage = 3, from = "use-torch-fsdp2";
    const double instances = draft_.number("num-distributed-optimizer-instances", 1, 1);
    if (fsdp && instances > 1 && stage == 3) {
      draft_.set_text("strategy.fsdp", "hybrid", "num-distributed-optimizer-instances");
      job_.replicas = instances;
    } else if (stage > 0) {
      draft_.set("strategy.zero_stage", stage, from);
    }
    const bool whole = stage >= 2;
    draft_.set("strategy.overlap", whole || draft_.on("overlap-grad-reduce"), "overlap-grad-reduce");
    if (stage == 1)
      draft_.set("strategy.prefetch", draft_.on("overlap-param-gather") ? 1.0 : 0.0, "overlap-param-gather");
    if (stage <= 1 && draft_.on("overlap-grad-reduce")) {
      // 40 million gradients, or a million for each rank (distributed_data_parallel_config.py, bucket_size).
      const double elements = draft_.number("ddp-bucket-size", 40e6, 1);
      draft_.set("strategy.bucket_mb", elements * gradient_bytes_ / 1048576, "ddp-bucket-size");
    }
    if ((draft_.on("optimizer-cpu-offload") || draft_.on("cpu-optimizer")) && stage > 0)
      draft_.set_text("strategy.offload", "cpu",
                      draft_.on("cpu-optimizer") ? "cpu-optimizer" : "optimizer-cpu-offload");
  }

  void memory() {
    const std::string backend = draft_.text("attention-backend", "auto");
    const bool flash = draft_.on("use-flash-attn") || draft_.on("use-flash-attn-v1") ||
                       draft_.on("use-flash-attn-v2") || draft_.on("use-flash-attn-triton");
    const bool unfused = backend == "unfused" || backend == "local" ||
                         (!draft_.has("attention-backend") && !flash && old_release());
    job_.fuses_attention = !unfused;
    const std::string granularity =
        draft_.text("recompute-granularity", draft_.text("activations-checkpoint-granularity"));
    const bool old = draft_.on("checkpoint-activations") || draft_.has("activations-checkpoint-method");
    if (granularity == "full" || old) {
      draft_.set_text("training.recompute", "full",
                      granularity == "full"                 ? "recompute-granularity"
                      : draft_.on("checkpoint-activations") ? "checkpoint-activations"
                                                            : "activations-checkpoint-method");
      const double layers =
          draft_.number("recompute-num-layers", draft_.number("activations-checkpoint-num-layers", 0));
      const bool block =
          draft_.text("recompute-method", draft_.text("activations-checkpoint-method")) == "block";
      if (block && layers > 0)
        draft_.set("training.recompute_layers", layers,
                   draft_.has("recompute-num-layers") ? "recompute-num-layers"
                                                      : "activations-checkpoint-num-layers");
    } else if (granularity == "selective" || draft_.on("recompute-activations")) {
      draft_.set_text("training.recompute", "selective",
                      granularity.empty() ? "recompute-activations" : "recompute-granularity");
      const std::string modules = draft_.text("recompute-modules", "core_attn");
      if (modules != "core_attn")
        draft_.note(fmt::format("Of --recompute-modules {}, only unfused attention is recomputed.", modules));
    }
    const std::string graphs = draft_.text("cuda-graph-impl", "none");
    if (graphs != "none" || draft_.on("enable-cuda-graph") || draft_.on("external-cuda-graph"))
      draft_.set("training.cuda_graphs", true,
                 graphs != "none"                 ? "cuda-graph-impl"
                 : draft_.on("enable-cuda-graph") ? "enable-cuda-graph"
                                                  : "external-cuda-graph");
  }

  // Scripts from before Megatron Core (2023), and Megatron-DeepSpeed's, compute attention unfused by default.
  bool old_release() const {
    return draft_.on("checkpoint-activations") || draft_.has("activations-checkpoint-method") ||
           draft_.on("deepspeed") || draft_.on("deepspeed-activation-checkpointing");
  }

  JobFile& job_;
  JobDraft draft_;
  double inner_ = 0, gradient_bytes_ = 2;
};

}  // namespace

void read_megatron(JobFile& job, const JobSettings& settings, const ShellScript& script) {
  MegatronReader(job, settings).read(script);
}

}  // namespace rehearse
