// Describes an architecture of Hugging Face transformers as a row of data: which keys of config.json hold
// what, and what the library takes where a key is missing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace rehearse::families {

// Names of one key, separated by "|": the first that the config has counts. A name with dots is inside nested
// objects ("ffn_config.moe_top_k").
using Keys = std::string_view;

// A boolean of the config. "!name": the key says the opposite. Without keys it is always `otherwise`.
struct Switch {
  bool otherwise = false;
  Keys keys = {};
};

// A number of the config; null counts as missing.
struct Number {
  double otherwise = 0;
  Keys keys = {};
};

// Keys of the sizes. The aliases are those by which the library, or the authors' own code, reads other
// families.
struct SizeKeys {
  Keys hidden = "hidden_size|n_embd|d_model|n_embed|dim";
  Keys layers = "num_hidden_layers|num_layers|n_layer|n_layers";
  Keys heads = "num_attention_heads|num_heads|n_head|n_heads";
  Keys kv_heads = "num_key_value_heads|num_kv_heads|n_kv_heads|n_head_kv";
  Keys head_dim = "head_dim|kv_channels|d_kv";
  Keys inner = "intermediate_size|ffn_dim|n_inner|ffn_hidden_size|hidden_dim";
  Keys vocabulary = "vocab_size|padded_vocab_size|vocabulary_size";
  Keys context =
      "max_position_embeddings|n_positions|max_sequence_length|max_seq_len|seq_length|model_max_length|n_ctx";
};

// The library's sizes where the config has none.
struct FamilySizes {
  double hidden = 0, inner = 0;  // inner 0: 4 x hidden
  double layers = 0, heads = 0, vocabulary = 0, context = 0;
  double kv_heads = 0;  // 0: as heads
  double head_dim = 0;  // 0: hidden / heads
};

enum class PositionKind : std::uint8_t {
  rotary,
  learned,  // a table
  none,     // none, or ALiBi, which has no parameters and moves nothing
};

// Which layers see a window of keys only. A list of names for each layer (layer_types) takes precedence.
struct Window {
  Keys width = {};       // empty: all layers see all keys
  double otherwise = 0;  // where the key is missing; null is no window
  Switch used = {true};
  int full_every = 0;   // each such layer sees all keys (0: none)
  int full_offset = 0;  // 0: the last of each group does; 1: the first
  Keys every = {};      // replaces full_every: a number, or a text such as "LLLG"
  Keys first = {};      // number of first layers that see all keys
  double first_otherwise = 0;
  bool chunks = false;  // the width is that of chunks: see read_family.cpp
};

// Layers without rotary positions.
struct NoRotary {
  int every = 0;                    // the last of each such group (0: none)
  Keys every_keys = {}, list = {};  // list: an array of 1 (rotary) and 0
  bool full_layers = false;         // those that see all keys, where others have a window
};

// A mixture of experts; without `count` keys the family has none.
struct Experts {
  Number count = {}, chosen = {2, "num_experts_per_tok"};
  Number width = {};         // inner width of an expert; 0: that of the feed-forward
  Number dense_width = {};   // of layers without experts; 0: that of the feed-forward
  Number shared_count = {};  // shared experts of the width of the others
  Number shared_width = {};  // or their width altogether
  bool shared_gate = false, router_bias = false;
  // Layers with experts are those from `first` on, to `last` (-1: the last), each `step`th, which is counted
  // from 0, or, if `from_one`, from 1; not those that `dense` lists. `each`: an array of 0 (dense) and 1 for
  // all layers.
  Number first = {}, last = {-1}, step = {1};
  bool from_one = false;
  Keys dense = {}, each = {};
  Keys sparse = {};  // a list of the layers with experts, instead
};

// Multi-head latent attention.
struct Latent {
  Number keys_rank = {}, queries_rank = {1536, "q_lora_rank"};
  Number plain = {128, "qk_nope_head_dim"}, rotary = {64, "qk_rope_head_dim"}, value = {128, "v_head_dim"};
};

// What an encoder is trained with, beside what the class in `architectures` says.
struct Encoder {
  bool is = false;
  bool pooler = false;            // the bare model has one
  bool classifier_pooler = true;  // a classifier of samples has a product before it
  bool token_pooler = false;      // a classifier of tokens has one (ELECTRA's discriminator)
};

struct Family {
  std::string_view type;  // the config's model_type
  SizeKeys keys = {};
  FamilySizes sizes = {};
  Number inner_ratio = {};  // inner / hidden, where the config gives that
  double inner_parts = 1;   // inner_size covers so many matrices (Qwen: 2)
  // Key-value heads: if `grouped` is false there is one with `multi_query`, else as many as heads.
  Switch grouped = {true}, multi_query = {};
  bool gated = true;
  Keys activation = "hidden_act|hidden_activation|activation_function|activation";
  std::string_view activation_otherwise = "silu";
  PositionKind positions = PositionKind::rotary;
  Switch alibi = {};         // instead of `positions`
  double position_rows = 0;  // rows of the table before the first position; negative: that the context counts
  Number token_types = {}, embedding_width = {};
  bool narrow_positions = false;
  Switch tied = {false, "tie_word_embeddings"};
  double untied_hidden =
      0;  // the published model of this width is not tied, though its config does not say so
  // Biases of the feed-forward (`biases`), of queries, keys and values, of attention's last product, of the
  // logits.
  Switch biases = {}, qkv_biases = {}, projection_bias = {}, head_bias = {};
  Switch norm_biases = {}, norm_gains = {true}, final_norm = {true}, embedding_norm = {};
  Switch qk_norm = {};
  std::string_view qk_norm_gains = "head";  // see QkNormGains
  Switch parallel = {}, shared_norm = {};
  Number parallel_norms = {};  // 1: shared_norm
  bool pre_norms = true, post_norms = false;
  bool attention_sinks = false;
  Number score_cap = {}, logit_cap = {};  // soft caps; null or 0: none
  Number embedding_dropout = {}, attention_dropout = {0, "attention_dropout"}, dropout = {};
  Window window = {};
  NoRotary no_rotary = {};
  Experts experts = {};
  Latent latent = {};
  Encoder encoder = {};
  Switch relative = {};  // DeBERTa's relative positions
  Switch relative_weights = {};
  Number image_size = {}, patch_size = {}, image_channels = {3};
  Number predicted_ahead = {0, "num_nextn_predict_layers"};  // layers for multi-token prediction, left out
  std::span<const std::string_view> only = {};  // "key=true": values other than these are refused
};

inline constexpr Switch kAlways = {true}, kTied = {true, "tie_word_embeddings"};

constexpr Family named(Family family, std::string_view type) {
  family.type = type;
  return family;
}

std::span<const Family> decoder_families();  // models that predict the next token, without experts
std::span<const Family> mixture_families();  // with experts
std::span<const Family> encoder_families();  // BERT and others, and those of images

}  // namespace rehearse::families
