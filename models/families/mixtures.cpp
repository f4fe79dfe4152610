// Mixtures of experts. Defaults as in decoders.cpp.
#include "models/families/family.hpp"

namespace rehearse::families {
namespace {

constexpr Switch kAlways = {true}, kTied = {true, "tie_word_embeddings"};
constexpr Switch kAttentionBias = {false, "attention_bias"};

constexpr std::string_view kNoBiases[] = {"attention_bias=false", "mlp_bias=false"};

// DeepSeek's mixtures: routed experts beside shared ones, from a first layer on.
constexpr Experts deepseek_experts(double count, double chosen, double width, double shared, double first) {
  return {.count = {count, "n_routed_experts|num_experts|num_local_experts"},
          .chosen = {chosen, "num_experts_per_tok"},
          .width = {width, "moe_intermediate_size"},
          .shared_count = {shared, "n_shared_experts|num_shared_experts"},
          .first = {first, "first_k_dense_replace"},
          .step = {1, "moe_layer_freq"},
          .each = "moe_layer_freq"};
}

constexpr Family kDeepSeek3 = {.type = "deepseek_v3",
                               .sizes = {7168, 18'432, 61, 128, 129'280, 4096},
                               .experts = deepseek_experts(256, 8, 2048, 1, 3),
                               .latent = {.keys_rank = {512, "kv_lora_rank"}},
                               .only = kNoBiases};
constexpr Family named(Family family, std::string_view type) {
  family.type = type;
  return family;
}

constexpr Experts kQwenExperts = {.count = {128, "num_experts|num_local_experts"},
                                  .chosen = {8, "num_experts_per_tok"},
                                  .width = {768, "moe_intermediate_size"},
                                  .step = {1, "decoder_sparse_step"},
                                  .from_one = true,
                                  .dense = "mlp_only_layers"};
constexpr Window kQwenWindow = {.width = "sliding_window",
                                .otherwise = 4096,
                                .used = {false, "use_sliding_window"},
                                .first = "max_window_layers",
                                .first_otherwise = 28};

constexpr Family kGranite = {.type = "granitemoe",
                             .sizes = {4096, 11'008, 32, 32, 32'000, 2048},
                             .qkv_biases = kAttentionBias,
                             .projection_bias = kAttentionBias,
                             .experts = {.count = {8, "num_local_experts"}}};
constexpr Family with_shared(Family family, std::string_view type, Number width) {
  family.type = type;
  family.experts.shared_width = width;
  return family;
}

constexpr Family kFamilies[] = {
    {.type = "dbrx",
     .keys = {.kv_heads = "attn_config.kv_n_heads", .inner = "ffn_config.ffn_hidden_size"},
     .sizes = {2048, 3584, 24, 16, 32'000, 2048, 1},
     .attention_dropout = {0, "attn_config.attn_pdrop"},
     .dropout = {0, "resid_pdrop"},
     .experts = {.count = {4, "ffn_config.moe_num_experts"}, .chosen = {1, "ffn_config.moe_top_k"}}},
    {.type = "deepseek_v2",
     .sizes = {4096, 11'008, 32, 32, 102'400, 2048},
     .experts = deepseek_experts(64, 6, 1407, 0, 0),
     .latent = {.keys_rank = {512, "kv_lora_rank"}},
     .only = kNoBiases},
    kDeepSeek3,
    {.type = "dots1",
     .sizes = {4608, 10'944, 62, 32, 152'064, 2048},
     .qkv_biases = kAttentionBias,
     .projection_bias = kAttentionBias,
     .qk_norm = kAlways,
     .experts = deepseek_experts(0, 6, 1408, 0, 0)},
    {.type = "ernie4_5_moe",
     .sizes = {2560, 12'288, 28, 20, 103'424, 131'072, 4},
     .tied = kTied,
     .biases = {false, "use_bias"},
     .qkv_biases = {false, "use_bias"},
     .projection_bias = {false, "use_bias"},
     .experts = {.count = {64, "moe_num_experts"},
                 .chosen = {6, "moe_k"},
                 .width = {1536, "moe_intermediate_size"},
                 .shared_count = {2, "moe_num_shared_experts"},
                 .first = {1, "moe_layer_start_index"},
                 .last = {-1, "moe_layer_end_index"},
                 .step = {1, "moe_layer_interval"},
                 .from_one = true}},
    {.type = "glm4_moe",
     .sizes = {4096, 10'944, 46, 96, 151'552, 131'072, 8},
     .qkv_biases = kAttentionBias,
     .qk_norm = {false, "use_qk_norm"},
     .experts = deepseek_experts(128, 8, 1408, 1, 1)},
    {.type = "glm4_moe_lite",
     .sizes = {2048, 10'240, 47, 20, 154'880, 202'752},
     .experts = deepseek_experts(64, 4, 1536, 1, 1),
     .latent = {.keys_rank = {512, "kv_lora_rank"},
                .queries_rank = {768, "q_lora_rank"},
                .plain = {192, "qk_nope_head_dim"},
                .rotary = {64, "qk_rope_head_dim"},
                .value = {256, "v_head_dim"}}},
    {.type = "gpt_oss",
     .sizes = {2880, 2880, 36, 64, 201'088, 131'072, 8, 64},
     .biases = kAlways,
     .qkv_biases = {true, "attention_bias"},
     .projection_bias = {true, "attention_bias"},
     .attention_sinks = true,
     .window = {.width = "sliding_window", .otherwise = 128, .full_every = 2},
     .experts = {.count = {128, "num_local_experts"},
                 .chosen = {4, "num_experts_per_tok|experts_per_token"},
                 .router_bias = true}},
    kGranite,
    with_shared(kGranite, "granitemoeshared", {1024, "shared_intermediate_size"}),
    {.type = "hunyuan_v1_moe",
     .sizes = {4096, 11'008, 32, 32, 290'943, 2048},
     .qkv_biases = kAttentionBias,
     .projection_bias = kAttentionBias,
     .qk_norm = {true, "use_qk_norm"},
     .experts = {.count = {1, "num_experts"},
                 .chosen = {1, "moe_topk"},
                 .width = {0, "moe_intermediate_size"},
                 .shared_count = {1, "num_shared_expert"},
                 .first = {0, "moe_layer_num_skipped"}}},
    named(kDeepSeek3, "kimi_k2"),
    {.type = "llama4_text",
     .sizes = {5120, 8192, 48, 40, 202'048, 131'072, 8, 128},
     .qkv_biases = kAttentionBias,
     .projection_bias = kAttentionBias,
     .qk_norm = {true, "use_qk_norm"},
     .qk_norm_gains = "none",
     .window = {.width = "attention_chunk_size", .otherwise = 8192, .full_every = 4, .chunks = true},
     .no_rotary = {.every = 4, .every_keys = "no_rope_layer_interval", .list = "no_rope_layers"},
     .experts = {.count = {16, "num_local_experts"},
                 .chosen = {1, "num_experts_per_tok"},
                 .dense_width = {16'384, "intermediate_size_mlp"},
                 .shared_count = {1},
                 .step = {1, "interleave_moe_layer_step"},
                 .from_one = true,
                 .sparse = "moe_layers"}},
    {.type = "minimax_m2",
     .sizes = {3072, 1536, 62, 48, 200'064, 196'608, 8, 128},
     .qk_norm = {true, "use_qk_norm"},
     .qk_norm_gains = "all",
     .experts = {.count = {256, "num_local_experts"}, .chosen = {8, "num_experts_per_tok"}},
     .predicted_ahead = {0, "num_mtp_modules"}},
    {.type = "mixtral",
     .sizes = {4096, 14'336, 32, 32, 32'000, 131'072, 8},
     .window = {.width = "sliding_window"},
     .experts = {.count = {8, "num_local_experts"}}},
    {.type = "olmoe",
     .sizes = {2048, 2048, 16, 16, 50'304, 4096},
     .qkv_biases = kAttentionBias,
     .projection_bias = kAttentionBias,
     .qk_norm = kAlways,
     .qk_norm_gains = "all",
     .experts = {.count = {64, "num_experts"}, .chosen = {8, "num_experts_per_tok"}}},
    {.type = "phimoe",
     .sizes = {4096, 6400, 32, 32, 32'064, 131'072, 8},
     .qkv_biases = kAttentionBias,
     .projection_bias = kAttentionBias,
     .head_bias = {false, "lm_head_bias"},
     .norm_biases = kAlways,
     .window = {.width = "sliding_window"},
     .experts = {.count = {16, "num_local_experts"}}},
    {.type = "qwen2_moe",
     .sizes = {2048, 5632, 24, 16, 151'936, 32'768, 16},
     .qkv_biases = {true, "qkv_bias"},
     .window = kQwenWindow,
     .experts = {.count = {60, "num_experts"},
                 .chosen = {4, "num_experts_per_tok"},
                 .width = {1408, "moe_intermediate_size"},
                 .shared_width = {5632, "shared_expert_intermediate_size"},
                 .shared_gate = true,
                 .step = {1, "decoder_sparse_step"},
                 .from_one = true,
                 .dense = "mlp_only_layers"}},
    {.type = "qwen3_moe",
     .sizes = {2048, 6144, 24, 32, 151'936, 32'768, 4},
     .qkv_biases = kAttentionBias,
     .projection_bias = kAttentionBias,
     .qk_norm = kAlways,
     .window = kQwenWindow,
     .experts = kQwenExperts},
    {.type = "qwen3_vl_moe_text",
     .sizes = {2048, 5632, 24, 16, 151'936, 128'000, 16},
     .qkv_biases = kAttentionBias,
     .projection_bias = kAttentionBias,
     .qk_norm = kAlways,
     .experts = {.count = {60, "num_experts"},
                 .chosen = {4, "num_experts_per_tok"},
                 .width = {1408, "moe_intermediate_size"},
                 .step = {1, "decoder_sparse_step"},
                 .from_one = true,
                 .dense = "mlp_only_layers"}},
};

}  // namespace

std::span<const Family> mixture_families() {
  return kFamilies;
}

}  // namespace rehearse::families
