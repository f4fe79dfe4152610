// Writes a transformer's first layer, which looks up tokens, and its last one, which ends with the loss.
#include "models/transformer_parts.hpp"

namespace rehearse {

namespace {

// Projects the pixels of each patch, as in Dosovitskiy et al., "An Image is Worth 16x16 Words" (arXiv
// 2010.11929), section 3.1. The image needs no gradient.
void add_patches(TransformerWriter& to) {
  const Transformer& t = to.t;
  const Sizes z = to.sizes(SegmentKind::dense);
  const double pixels = t.image_channels * t.patch_size * t.patch_size;
  LayerCost& cost = to.layer.add(SegmentKind::dense, {0}, {to.tokens()});
  add_linear(cost, z.tokens, z.hidden, pixels, z.element, false);
  if (t.biases) add_bias(cost, z, z.hidden, false);
  if (t.class_token) cost.parameters += z.hidden;
  cost.saved_bytes = z.bytes(pixels);
}

// Adds a classifier of `rows` rows: of each sample's first token, or of all tokens.
void add_classifier(LayerCost& cost, const Sizes& z, double rows, double classes) {
  add_linear(cost, rows, classes, z.hidden, z.element);
  cost.parameters += classes;
  cost.saved_bytes += z.element * rows * z.hidden;
}

}  // namespace

Layer embedding_layer(const Transformer& t, const PassShape& pass) {
  using enum Dim;
  TransformerWriter to(t, pass, "embedding", false);
  // The gradient of a table is a dense tensor: it is zeroed, and then dy's rows are added to its rows.
  const auto look_up = [&](LayerCost& cost, const Sizes& z, double rows, double width) {
    cost.parameters += rows * width;
    cost.forward.push_back(moves(2 * z.bytes(width)));
    cost.backward_weight.push_back(
        moves(z.element * rows * width + 3 * z.bytes(width), 2, 1 + rows / z.tokens));
  };
  if (t.patch_size > 0)
    add_patches(to);
  else
    look_up(to.layer.add(SegmentKind::embedding, {0}, {to.value({batch, sequence, hidden}, t.table_width())}),
            to.sizes(SegmentKind::embedding), to.sizes(SegmentKind::embedding).vocabulary, t.table_width());
  Sizes z{};
  LayerCost* cost = nullptr;
  const auto project = [&] {
    if (t.embedding_width == 0) return;
    z = to.sizes(SegmentKind::dense);
    cost = &to.layer.add(SegmentKind::dense, {to.layer.last()}, {to.tokens()});
    add_linear(*cost, z.tokens, z.hidden, t.embedding_width, z.element);
    if (t.narrow_positions) add_bias(*cost, z, z.hidden, false);
    cost->saved_bytes = z.bytes(t.embedding_width);
  };
  if (!t.narrow_positions) project();
  const double width = t.narrow_positions ? t.table_width() : t.hidden;
  const Value embedded = to.value({batch, sequence, hidden}, width);
  for (const double rows : {t.position_rows(), t.token_types}) {
    if (rows == 0) continue;
    z = to.sizes(SegmentKind::position);
    cost = &to.layer.add(SegmentKind::position, {to.layer.last()}, {embedded});
    look_up(*cost, z, rows, width);
    cost->forward.push_back(moves(3 * z.bytes(width), 2, 1));
  }
  if (t.embedding_norm && t.narrow_positions) {
    z = to.sizes(SegmentKind::norm);
    cost = &to.layer.add(SegmentKind::norm, {to.layer.last()}, {embedded});
    add_norm(*cost, z, width, width, (t.norm_biases.value_or(t.biases) ? 2 : 1) * width);
    cost->saved_bytes = z.bytes(width);
  } else if (t.embedding_norm) {
    add_norm(to, to.layer.last());
    to.layer.layer().segments.back().cost.saved_bytes = to.sizes(SegmentKind::norm).activation;
  }
  if (t.relative_positions > 0) {  // the table of all layers; they read it without moving an activation
    to.layer.layer().segments.back().cost.parameters += t.relative_positions * t.hidden;
  }
  if (t.narrow_positions) project();
  if (t.embedding_dropout.value_or(t.dropout)) {
    z = to.sizes(SegmentKind::residual);
    cost = &to.layer.add(SegmentKind::residual, {to.layer.last()}, {to.tokens()});
    const double bytes = 2 * z.activation + kMask * z.tokens * z.hidden, part = kMask / z.element;
    cost->forward.push_back(moves(bytes, 1, 1 + part));
    cost->backward_input.push_back(moves(bytes, 1 + part, 1));
    cost->saved_bytes = kMask * z.tokens * z.hidden;
  }
  Layer& layer = to.layer.layer();
  const double table = to.sizes(SegmentKind::embedding).vocabulary * t.table_width();
  if (t.tied_embeddings && t.patch_size == 0)  // adds the output layer's gradient of the same table
    layer.segments.front().cost.backward_weight.push_back(moves(3 * z.element * table, 2, 1));
  return to.layer.take(to.sizes(layer.segments.back().kind).activation);
}

namespace {

// Adds what follows the final norm: a masked language model's transform, logits and loss. `to` must be set up
// for only the predicted tokens of a sample.
void add_predictions(TransformerWriter& to, int last, double whole_activation) {
  using enum Dim;
  const Transformer& t = to.t;
  const PassShape& pass = to.pass;
  if (t.masked_lm_head && !t.narrow_positions) {  // ELECTRA's generator has the next product alone
    const Sizes z = to.sizes(SegmentKind::dense);
    LayerCost& cost = to.layer.add(SegmentKind::dense, {last}, {to.tokens()});
    // Gathers the rows of these tokens; the backward pass scatters them into a zeroed tensor.
    if (pass.predicted_tokens > 0) {
      cost.forward.push_back(moves(2 * z.activation));
      cost.backward_input.push_back(moves(z.activation + whole_activation));
    }
    add_linear(cost, z.tokens, z.hidden, z.hidden, z.element);
    add_bias(cost, z, z.hidden, true);
    add_gelu(cost, z.activation);
    cost.saved_bytes = 2 * z.activation;
    last = add_norm(to, to.layer.last());
    to.layer.layer().segments.back().cost.saved_bytes = to.sizes(SegmentKind::norm).activation;
  }
  if (t.causal || t.masked_lm_head) {
    const double width = t.table_width();
    if (t.embedding_width > 0) {
      const Sizes z = to.sizes(SegmentKind::dense);
      LayerCost& cost =
          to.layer.add(SegmentKind::dense, {last}, {to.value({batch, sequence, hidden}, width)});
      add_linear(cost, z.tokens, width, z.hidden, z.element);
      cost.saved_bytes = z.activation;
      last = to.layer.last();
    }
    const Sizes z = to.sizes(SegmentKind::logits);
    LayerCost& cost =
        to.layer.add(SegmentKind::logits, {last}, {to.value({batch, sequence, vocabulary}, t.vocabulary)});
    const double logits = z.tokens * z.vocabulary;
    add_linear(cost, z.tokens, z.vocabulary, width, z.element);
    if (pass.kernels.wide_logits)
      for (auto* passed : {&cost.forward, &cost.backward_input, &cost.backward_weight})
        for (Kernel& kernel : *passed) kernel.wide = true;
    if (t.tied_embeddings) cost.parameters -= z.vocabulary * width;  // already counted by the embedding
    if (t.masked_lm_head || t.head_bias) add_bias(cost, z, z.vocabulary, false);
    if (t.logit_softcap) {  // the backward pass reads its result
      cost.forward.push_back(moves(2 * z.element * logits));
      cost.backward_input.push_back(moves(3 * z.element * logits, 2, 1));
      cost.saved_bytes += z.element * logits;
    }
    // The input of the output layer, saved as the norm returns it: Korthikanti et al. 2022, section 4.3.
    cost.saved_bytes += to.sizes(SegmentKind::norm).bytes(width);
    const double sequence_length = pass.sequence_length > 0 ? pass.sequence_length : t.sequence_length;
    add_loss(to.layer, to.layer.last(), pass, pass.micro_batch * sequence_length, t.vocabulary);
  }
}

}  // namespace

Layer head_layer(const Transformer& t, const PassShape& pass) {
  using enum Dim;
  TransformerWriter to(t, pass, "head");
  int last = 0;
  if (t.final_norm) {
    last = add_norm(to, last);
    to.layer.layer().segments.back().cost.saved_bytes = to.sizes(SegmentKind::norm).activation;
  }
  const bool of_tokens = t.classes > 0 && t.classes_of_tokens;
  if (t.pooler && of_tokens) {  // of all tokens: linear, GELU
    const Sizes z = to.sizes(SegmentKind::dense);
    LayerCost& cost = to.layer.add(SegmentKind::dense, {last}, {to.tokens()});
    last = to.layer.last();
    add_linear(cost, z.tokens, z.hidden, z.hidden, z.element);
    add_bias(cost, z, z.hidden, true);
    add_gelu(cost, z.activation);
    cost.saved_bytes = 2 * z.activation;
  } else if (t.pooler) {  // first token of each sample: linear, tanh
    const Sizes z = to.sizes(SegmentKind::pooler);
    LayerCost& cost = to.layer.add(SegmentKind::pooler, {last}, {});
    add_linear(cost, z.samples, z.hidden, z.hidden, z.element);
    const double pooled = z.element * z.samples * z.hidden;
    cost.parameters += z.hidden;
    cost.forward.push_back(moves(2 * pooled));
    cost.backward_input.push_back(moves(3 * pooled, 2, 1));
    cost.saved_bytes = 2 * pooled;
    if (t.masked_lm_head) {  // next-sentence classifier
      add_linear(cost, z.samples, 2, z.hidden, z.element);
      cost.parameters += 2;
    }
  }
  if (of_tokens) {
    const Sizes z = to.sizes(SegmentKind::dense);
    add_classifier(to.layer.add(SegmentKind::dense, {last}, {to.value({batch, sequence, hidden}, t.classes)}),
                   z, z.tokens, t.classes);
  } else if (t.classes > 0) {
    const Sizes z = to.sizes(SegmentKind::pooler);
    add_classifier(
        t.pooler ? to.layer.layer().segments.back().cost : to.layer.add(SegmentKind::pooler, {last}, {}), z,
        z.samples, t.classes);
  }
  // Everything else runs only on the predicted tokens.
  PassShape predicted = pass;
  if (pass.predicted_tokens > 0) predicted.sequence_length = pass.predicted_tokens;
  TransformerWriter rest(t, predicted, "head");
  rest.layer = std::move(to.layer);
  add_predictions(rest, last, to.sizes(SegmentKind::dense).activation);
  return rest.layer.take(0);
}

}  // namespace rehearse
