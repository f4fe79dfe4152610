#include "models/base/toml_table.hpp"
#include "models/kernels.hpp"

namespace rehearse {

TomlValue transformer_table(const Transformer& t, const Place& place) {
  TomlValue table = toml_table(place);
  const auto whole = [&](const char* key, double number) {
    put(table, key, toml_value(static_cast<std::int64_t>(number), place));
  };
  const auto truth = [&](const char* key, bool is) { put(table, key, toml_value(is, place)); };
  whole("layers", t.layers);
  whole("hidden", t.hidden);
  whole("heads", t.heads);
  if (t.kv_heads > 0 && t.kv_heads != t.heads) whole("kv_heads", t.kv_heads);  // else they follow
  whole("feed_forward", t.feed_forward);
  whole("vocabulary", t.vocabulary);
  whole("sequence_length", t.sequence_length);
  truth("rotary", t.rotary);
  whole("positions", t.positions);
  whole("token_types", t.token_types);
  truth("causal", t.causal);
  truth("tied_embeddings", t.tied_embeddings);
  truth("final_norm", t.final_norm);
  truth("embedding_norm", t.embedding_norm);
  truth("gated", t.gated);
  truth("biases", t.biases);
  truth("qkv_biases", t.qkv_biases);
  truth("dropout", t.dropout);
  truth("pooler", t.pooler);
  truth("masked_lm_head", t.masked_lm_head);
  if (t.experts > 0) {
    whole("experts", t.experts);
    whole("experts_per_token", t.experts_per_token);
    whole("shared_expert", t.shared_expert);
  }
  return table;
}

}  // namespace rehearse
