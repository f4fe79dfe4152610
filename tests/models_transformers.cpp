// Checks grouped-query attention, gated feed-forward networks, rotary positions, and models without biases or
// dropout.
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models_kernels.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Model model_of(Transformer shape) {
  Model model;
  model.shape = shape;
  return model;
}

Transformer small() {
  Transformer t;
  t.layers = 3;
  t.hidden = 64;
  t.heads = 8;
  t.feed_forward = 160;
  t.vocabulary = 1000;
  t.sequence_length = t.positions = 32;
  return t;
}

// Returns a small model with Llama's shape.
Transformer small_llama() {
  Transformer t = small();
  t.positions = 0;
  t.kv_heads = 2;
  t.gated = t.rotary = true;
  t.biases = t.qkv_biases = t.dropout = t.tied_embeddings = false;
  return t;
}

}  // namespace

TEST_CASE("each variant has its parameters in a layer") {
  const double h = 64, f = 160, kv = 64 * 2 / 8;
  struct Case {
    const char* variant;
    void (*change)(Transformer&);
    double layer, others;  // parameters of one layer; of embedding and head
  };
  const double tables = 1000 * h + 32 * h, last_norm = 2 * h;
  const double qkv = 3 * h * h + 3 * h, projection = h * h + h, inner = 2 * h * f + f + h, norms = 4 * h;
  const double plain = qkv + projection + inner + norms;
  const Case cases[] = {
      {"GPT", [](Transformer&) {}, plain, tables + last_norm},
      {"heads share keys and values", [](Transformer& t) { t.kv_heads = 2; },
       plain - qkv + (h + 2 * kv) * (h + 1), tables + last_norm},
      {"as many key heads as heads", [](Transformer& t) { t.kv_heads = 8; }, plain, tables + last_norm},
      {"gated", [](Transformer& t) { t.gated = true; }, plain + h * f + f, tables + last_norm},
      {"no biases at all", [](Transformer& t) { t.biases = t.qkv_biases = false; },
       4 * h * h + 2 * h * f + 2 * h, tables + h},
      {"biases of queries, keys and values alone", [](Transformer& t) { t.biases = false; },
       4 * h * h + 3 * h + 2 * h * f + 2 * h, tables + h},
      {"rotary", [](Transformer& t) { t.rotary = true, t.positions = 0; }, plain, 1000 * h + last_norm},
      {"ALiBi", [](Transformer& t) { t.positions = 0; }, plain, 1000 * h + last_norm},
      {"untied", [](Transformer& t) { t.tied_embeddings = false; }, plain, tables + last_norm + 1000 * h},
      {"a norm after the embedding", [](Transformer& t) { t.embedding_norm = true; }, plain,
       tables + 2 * last_norm},
      {"no dropout", [](Transformer& t) { t.dropout = false; }, plain, tables + last_norm},
  };
  for (const Case& c : cases) {
    CAPTURE(c.variant);
    Transformer t = small();
    c.change(t);
    CHECK(layer_costs(model_of(t), {})[1].parameters == c.layer);
    CHECK(parameter_count(model_of(t)) == 3 * c.layer + c.others);
  }
}

TEST_CASE("FLOPs of models with grouped-query attention and gates equal their formula") {
  // Two FLOPs (multiply and add) for each weight and token: queries and projection 2 h^2, keys and values 2
  // h^2 kv/a, feed-forward 2 h f, gated 3 h f, logits h V; attention's scores and values 2 s h. The sum
  // counts three times, once for the forward pass and twice for the backward pass.
  for (const char* preset :
       {"llama2-7b", "llama2-13b", "llama2-70b", "llama3-8b", "llama3-70b", "llama3-405b", "llama3.1-8b",
        "llama3.1-70b", "qwen2.5-7b", "qwen2.5-14b", "qwen2.5-32b", "qwen2.5-72b", "nemotron4-15b",
        "nemotron4-340b", "mpt-7b", "mpt-30b", "bloom-176b", "megatron-76.1b"}) {
    for (const double s : {1.0, 512.0, 2048.0}) {
      CAPTURE(preset, s);
      const Model model = model_preset(preset);
      const auto& t = std::get<Transformer>(model.shape);
      const double h = t.hidden, f = t.feed_forward;
      const double weights = 2 * h * h * (1 + t.kv_heads / t.heads) + (t.gated ? 3 : 2) * h * f;
      const double a_token = t.layers * (weights + 2 * s * h) + h * t.vocabulary;
      CHECK(flops_per_sample(model, s) == Approx(6 * s * a_token).epsilon(1e-12));
    }
  }
}

TEST_CASE("a Llama layer by hand") {
  const Transformer t = small_llama();
  const double h = 64, f = 160, a = 8, s = 32, b = 4, n = s * b, kv = 16;
  PassShape pass;
  pass.micro_batch = b;
  const LayerCost layer = layer_costs(model_of(t), pass)[1];
  const double linear = 2 * n * (h * (h + 2 * kv) + h * h + 3 * h * f), attention = 4 * b * s * s * h;
  CHECK(flops(layer.forward) == linear + attention);
  CHECK(flops(layer.backward_weight) == linear);
  CHECK(flops(layer.backward_input) == linear + 2 * attention);
  // Elements moved: norms read and write 2 x 2 h; rotary embedding reads and writes h + kv; repeating keys
  // and values reads 2 kv and writes 2 h; softmax reads and writes a s scores per token; concatenating heads
  // 2 h; two residual sums 3 h each; SwiGLU 3 f.
  CHECK(memory_bytes(layer.forward) ==
        2 * n * (4 * h + 2 * (h + kv) + 2 * (h + kv) + 2 * a * s + 2 * h + 6 * h + 3 * f));
  // Norms 2 x 3 h; splitting heads 2 h; softmax 3 a s; summing repeated keys and values 2 (h + kv); copying
  // into one tensor 2 (h + 2 kv); rotary 2 (h + kv); residual sums 2 x 3 h; SwiGLU 5 f.
  CHECK(memory_bytes(layer.backward_input) ==
        2 * n * (6 * h + 2 * h + 3 * a * s + 2 * (h + kv) + 2 * (h + 2 * kv) + 2 * (h + kv) + 6 * h + 5 * f));
  // Only the gains of the two norms: each reads x and dy.
  CHECK(memory_bytes(layer.backward_weight) == 2 * n * 4 * h);
  // Inputs of two norms and three products, Q, and K and V repeated: 8 h; gate, inner width and their
  // product: 3 f; softmax.
  CHECK(layer.saved_bytes == 2 * n * (8 * h + 3 * f + a * s));

  SECTION("selective recomputation repeats keys and values again, and keeps them once") {
    pass.recompute = Recompute::selective;
    const LayerCost selective = layer_costs(model_of(t), pass)[1];
    CHECK(selective.saved_bytes == 2 * n * (6 * h + 2 * kv + 3 * f));
    CHECK(flops(selective.recompute) == attention);
    CHECK(memory_bytes(selective.recompute) == 2 * n * (2 * (h + kv) + 2 * a * s + 2 * h));
  }
  SECTION("without dropout the embedding keeps nothing and sends nothing back") {
    const LayerCost embedding = layer_costs(model_of(t), pass)[0];
    CHECK(embedding.saved_bytes == 0);
    CHECK(embedding.backward_input.empty());
    CHECK(memory_bytes(embedding.forward) == 2 * n * 2 * h);
  }
}

TEST_CASE("keys of [model.transformer] for newer shapes") {
  const std::string text = R"([model.transformer]
    layers = 2
    hidden = 64
    heads = 8
    vocabulary = 100
    sequence_length = 16
  )";
  const auto read = [&](const std::string& more) {
    Document document = Document::parse_text(text + more, "job.toml");
    Section section = document.root().section("model");
    return std::get<Transformer>(read_model(section, ".").shape);
  };
  CHECK(read("").kv_heads == 8);
  CHECK(read("kv_heads = 2").kv_heads == 2);
  CHECK(read("").positions == 16);
  CHECK(read("rotary = true").positions == 0);
  CHECK(read("positions = 0").positions == 0);
  CHECK(!read("positions = 0").rotary);
  CHECK(!read("biases = false").qkv_biases);
  CHECK(read("biases = false\nqkv_biases = true").qkv_biases);
  CHECK(read("embedding_norm = true").final_norm);
  CHECK(read("causal = false").embedding_norm);
  CHECK(!read("").gated);
  CHECK(read("gated = true").gated);
  CHECK(read("").dropout);
  CHECK(!read("dropout = false").dropout);
}

// As in google-research/bert (run_pretraining.py, gather_indexes), the transform, its norm and the logits run
// on the masked tokens of a sample only (max_predictions_per_seq).
TEST_CASE("a masked language model may compute the logits of its predicted tokens alone") {
  const Model bert = model_preset("bert-large");
  PassShape pass{32, 128};
  const LayerCost all = layer_costs(bert, pass).back();
  pass.predicted_tokens = 20;
  const LayerCost some = layer_costs(bert, pass).back();
  const double hidden = 1024, vocabulary = 30522;
  const auto logits = [&](double tokens) {
    return 2 * 32 * tokens *
           (hidden * hidden + hidden * vocabulary);  // FLOPs of the transform and the logits
  };
  CHECK(flops(all.forward) - flops(some.forward) == Approx(logits(128) - logits(20)));
  CHECK(flops(all.backward_weight) - flops(some.backward_weight) == Approx(logits(128) - logits(20)));
  CHECK(some.logits == 32 * 20 * vocabulary);
  CHECK(some.parameters == all.parameters);
  pass.predicted_tokens = 128;
  CHECK(flops(layer_costs(bert, pass).back().forward) == flops(all.forward));
}

TEST_CASE("a framework says what its loss moves for each logit") {
  const Model gpt2 = model_preset("gpt2");
  PassShape pass{1, 1024};
  const auto moved = [&] {
    const LayerCost head = layer_costs(gpt2, pass).back();
    double bytes = 0;
    for (const std::vector<Kernel>* kernels : {&head.forward, &head.backward_input})
      for (const Kernel& kernel : *kernels)
        if (kernel.loss) bytes += kernel.count * kernel.bytes;
    return bytes;
  };
  const double logits = 1024 * 50257;
  CHECK(moved() == Approx(115 * logits));  // fp32 kernels, one after the other
  pass.loss_bytes = 12;
  CHECK(moved() == Approx(12 * logits));
}
