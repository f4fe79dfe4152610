// Describes the shape of a transformer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rehearse {

// What the RMS norms of queries and keys have: one gain for each element of a head, shared by all heads; a
// gain of its own for each head; a gain for each element of all heads together, over which they normalize too
// (OLMo 2); no gain (Llama 4).
enum class QkNormGains : std::uint8_t { head, heads, all, none };
inline constexpr std::array<std::string_view, 4> kQkNormGainsNames = {"head", "heads", "all", "none"};

// Each field is a key of [model.transformer] (models/transformer_keys.cpp). The .cpp files give the sources
// of formulas.
struct Transformer {
  int layers = 0;
  double hidden = 0, heads = 0, feed_forward = 0;  // feed_forward: inner width; default 4 x hidden
  double vocabulary = 0, sequence_length = 0;
  // The longest sequence that the model accepts, if sequence_length is a shorter choice; 0: not known.
  double context_limit = 0;
  double positions = 0;        // learned position embeddings; 0: none
  double position_offset = 0;  // OPT: rows of the position table before the first position
  double token_types = 0;      // BERT's segment embeddings; 0: none
  double embedding_width = 0;  // of the token embedding, projected to and from hidden (OPT 350M); 0: hidden
  bool causal = true;          // predicts the next token; otherwise it has logits only with masked_lm_head
  // The output layer shares the input embedding, which counts in the first layer.
  bool tied_embeddings = true;
  bool final_norm = true;  // GPT: a final layer norm
  // BERT (instead of the final norm) and BLOOM: a layer norm after the embedding.
  bool embedding_norm = false;
  bool pooler = false, masked_lm_head = false;  // BERT; both together include the next-sentence classifier
  bool head_bias = false;                       // of the product to the logits (GPT-J, Phi)
  // A classifier of `classes` outputs (0: none), of each sample's first token or of all tokens; with
  // `pooler`, the pooler's product comes before it.
  double classes = 0;
  bool classes_of_tokens = false;
  // The token embedding's norm and positions have embedding_width, before the projection to hidden (ELECTRA).
  bool narrow_positions = false;
  // Images: square patches of patch_size pixels (0: tokens of a vocabulary), projected to hidden; before them
  // a class token.
  double patch_size = 0, image_size = 0, image_channels = 3;
  bool class_token = true;

  // Attention. head_dim: width of one head's queries and keys (0: hidden / heads); value_head_dim: of its
  // values (0: the same).
  double head_dim = 0, value_head_dim = 0;
  double kv_heads = 0;     // grouped-query attention: number of key and value heads; 0: same as heads
  bool rotary = false;     // rotary position embeddings of queries and keys
  bool qkv_biases = true;  // of the product to queries, keys and values
  bool qk_norm = false;    // an RMS norm of each head's queries and keys
  QkNormGains qk_norm_gains = QkNormGains::head;
  std::vector<int> no_rotary_layers;  // with rotary: layers that rotate nothing, counted from 0
  // DeBERTa: rows of a table of relative positions, whose products with queries and keys are added to the
  // scores (0: none), and whether its keys and queries have weights of their own.
  double relative_positions = 0;
  bool relative_weights = false;
  bool attention_sinks = false;  // GPT-OSS: one learned logit per head, in the denominator of its softmax
  bool attention_softcap = false, logit_softcap = false;  // Gemma 2: c tanh(x / c) of scores; of logits
  // Sliding window: number of keys that a query attends to, except in `full_attention_layers` (counted from
  // 0); 0: all keys in all layers.
  double window = 0;
  std::vector<int> full_attention_layers;
  // Multi-head latent attention: keys and values are products of a compressed vector of width kv_lora_rank
  // (0: not latent attention), queries of one of width q_lora_rank (0: of the layer's input). Of head_dim,
  // rope_head_dim is rotary; all heads share that part of the keys.
  double kv_lora_rank = 0, q_lora_rank = 0, rope_head_dim = 0;

  bool gated = false;               // SwiGLU, GeGLU: a third matrix of the feed-forward gates its inner width
  bool relu = false;                // instead of GELU, if not gated
  bool parallel_residual = false;   // GPT-NeoX: attention and feed-forward read the same input
  bool shared_norm = false;         // with parallel_residual: one norm for both, as in GPT-J and Falcon 7B
  bool post_norms = false;          // Gemma 2 and 3: norms also after attention and feed-forward
  bool pre_norms = true;            // false: norms only after attention and feed-forward, as in OLMo 2
  bool biases = true;               // of linear layers and norms
  std::optional<bool> norm_biases;  // if norms differ from `biases`: an RMS norm has only a gain
  bool norm_gains = true;           // false: norms have no parameters (OLMo)
  std::optional<bool> projection_bias;  // if the product from attention to hidden differs from `biases`
  bool dropout = true;                  // after the embedding, in attention and before each residual sum
  std::optional<bool> embedding_dropout, attention_dropout;  // if they differ from `dropout`

  // Mixture of experts: parallel feed-forwards of inner width `feed_forward`, of which a router chooses a few
  // per token; 0: a single feed-forward for all tokens.
  double experts = 0, experts_per_token = 0;
  // Node-limited routing (DeepSeek-V2 and V3): experts form `expert_groups` equal groups of neighbours, and a
  // token's experts come from at most `groups_per_token` of them. 1: from all experts.
  double expert_groups = 1, groups_per_token = 1;
  bool router_bias = false;
  double shared_expert = 0;        // inner width of one more expert that processes all tokens; 0: none
  bool shared_expert_gate = true;  // a gate weights its result; otherwise it is added unchanged
  // Layers without experts, counted from 0, and the inner width of their feed-forward.
  std::vector<int> dense_layers;
  double dense_feed_forward = 0;

  double table_width() const { return embedding_width > 0 ? embedding_width : hidden; }
  double patches() const {
    return patch_size > 0 ? (image_size / patch_size) * (image_size / patch_size) : 0;
  }
  double position_rows() const { return positions > 0 ? positions + position_offset : 0; }
};

}  // namespace rehearse
