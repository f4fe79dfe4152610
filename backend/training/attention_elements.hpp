// Defines the element functions of attention and dropout (see transformer_elements.hpp). operator()(i)
// computes item i.
#pragma once

#include "backend/training/philox.hpp"
#include "backend/training/transformer_arithmetic.hpp"

namespace rehearse::elements {

// The dropout factor: 0 for dropped elements, 1 / (1 - probability) for the others.
struct Keep {
  float probability, scale;
  std::uint32_t seed_low, seed_high, site, use;
  REHEARSE_ELEMENT float of(std::uint32_t sample, std::uint64_t element) const {
    if (probability == 0) return 1;
    const PhiloxWords drawn =
        philox_words({{static_cast<std::uint32_t>(element),
                       static_cast<std::uint32_t>(element >> 32) ^ (site << 8), sample, use}},
                     seed_low, seed_high);
    return static_cast<float>(drawn.words[0]) * 0x1p-32f < probability ? 0.0f : scale;
  }
};

struct Drop {  // by element
  Keep keep;
  long width, sequence, first;
  TokenOrder order;
  const float *samples, *x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long token = i / width, position = order.position(first + token % sequence);
    y[i] = x[i] * keep.of(static_cast<std::uint32_t>(samples[token / sequence]),
                          static_cast<std::uint64_t>(position * width + i % width));
  }
};

// The position of a query of a head; i is an index into [batch, kv_heads, queries, sequence].
struct QueryPlace {
  long sample, kv_head, query, token, position, first_key, end_key;
  REHEARSE_ELEMENT QueryPlace(const AttentionShape& s, long i) {
    token = i % s.sequence;
    query = i / s.sequence % s.queries;
    kv_head = i / s.sequence / s.queries % s.kv_heads;
    sample = i / s.sequence / s.queries / s.kv_heads;
    position = s.order.position(s.first + token);
    end_key = position + 1;
    first_key = s.window > 0 && end_key > s.window ? end_key - s.window : 0;
  }
  REHEARSE_ELEMENT bool sees(long key) const { return key >= first_key && key < end_key; }
  // Returns the row in queries and results, which have a row per head.
  REHEARSE_ELEMENT long row(const AttentionShape& s) const {
    return ((sample * s.sequence + token) * s.kv_heads + kv_head) * s.queries + query;
  }
  // Returns the dropout factor of a key's share.
  REHEARSE_ELEMENT float kept(const AttentionShape& s, const Keep& keep, const float* samples,
                              long key) const {
    if (keep.probability == 0) return 1;
    const long head = (s.first_kv_head + kv_head) * s.all_queries + s.first_query + query;
    return keep.of(static_cast<std::uint32_t>(samples[sample]),
                   static_cast<std::uint64_t>((head * s.keys + position) * s.keys + key));
  }
  // Returns a row in keys and values; `held` is the index among the keys that this rank holds at present.
  REHEARSE_ELEMENT long key_row(const AttentionShape& s, long held) const {
    return (sample * s.held + held) * s.kv_heads + kv_head;
  }
};

struct Attend {  // by query and head
  AttentionShape shape;
  Keep keep;
  float scale;
  const float *samples, *q, *kv;
  float *shares, *sums, *y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const QueryPlace at(shape, i);
    const long pair = shape.head + shape.value_head;
    const float* query = q + at.row(shape) * shape.head;
    float *share = shares + i * shape.keys, *result = y + at.row(shape) * shape.value_head;
    float most = -3.0e38f, sum = 0;  // running maximum of the scores and sum of exponentials
    if (!shape.begins) {
      most = sums[2 * i];
      sum = sums[2 * i + 1];
    }
    for (long j = 0; shape.begins && j < shape.keys; ++j) share[j] = 0;
    for (long d = 0; shape.begins && d < shape.value_head; ++d) result[d] = 0;
    const float before = most;
    for (long j = 0; j < shape.held; ++j) {
      const long position = shape.order.position(shape.held_first + j);
      if (!at.sees(position)) continue;
      const float* key = kv + at.key_row(shape, j) * pair;
      float score = 0;
      for (long d = 0; d < shape.head; ++d) score += query[d] * key[d];
      share[position] = score * scale;
      most = share[position] > most ? share[position] : most;
    }
    const float smaller = expf(before - most);
    sum *= smaller;
    for (long d = 0; d < shape.value_head; ++d) result[d] *= smaller;
    for (long j = 0; j < shape.held; ++j) {
      const long position = shape.order.position(shape.held_first + j);
      if (!at.sees(position)) continue;
      const float* value = kv + at.key_row(shape, j) * pair + shape.head;
      const float power = expf(share[position] - most);
      const float kept = power * at.kept(shape, keep, samples, position);
      sum += power;
      for (long d = 0; d < shape.value_head; ++d) result[d] += kept * value[d];
    }
    if (!shape.ends) {
      sums[2 * i] = most;
      sums[2 * i + 1] = sum;
      return;
    }
    for (long d = 0; d < shape.value_head; ++d) result[d] /= sum;
    for (long j = at.first_key; j < at.end_key; ++j) share[j] = expf(share[j] - most) / sum;
  }
};

// Computes the gradients of queries, and the slopes of scores, which the gradients of keys need. The mean
// slope of a query's scores is the product of its result and the result's gradient (Dao et al.,
// "FlashAttention", 2022, appendix B.2).
struct AttendBackwardQueries {  // by query and head
  AttentionShape shape;
  Keep keep;
  float scale;
  const float *samples, *kv, *shares, *y, *dy;
  float *slopes, *dq;
  REHEARSE_ELEMENT void operator()(long i) const {
    const QueryPlace at(shape, i);
    const long pair = shape.head + shape.value_head, row = at.row(shape);
    const float *share = shares + i * shape.keys, *own = y + row * shape.value_head,
                *above = dy + row * shape.value_head;
    float *slope = slopes + i * shape.keys, *result = dq + row * shape.head;
    float mean = 0;
    for (long d = 0; d < shape.value_head; ++d) mean += own[d] * above[d];
    for (long d = 0; d < shape.head; ++d) result[d] = 0;
    for (long j = 0; j < shape.held; ++j) {
      const long position = shape.order.position(shape.held_first + j);
      slope[position] = 0;
      if (!at.sees(position)) continue;
      const float *key = kv + at.key_row(shape, j) * pair, *value = key + shape.head;
      float product = 0;
      for (long d = 0; d < shape.value_head; ++d) product += above[d] * value[d];
      product *= at.kept(shape, keep, samples, position);
      slope[position] = share[position] * (product - mean) * scale;
      for (long d = 0; d < shape.head; ++d) result[d] += slope[position] * key[d];
    }
  }
};

struct AttendBackwardKeys {  // by element of keys and values
  AttentionShape shape;
  Keep keep;
  const float *samples, *q, *shares, *slopes, *dy;
  float* dkv;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long pair = shape.head + shape.value_head, d = i % pair;
    const long kv_head = i / pair % shape.kv_heads, held = i / pair / shape.kv_heads % shape.held,
               sample = i / pair / shape.kv_heads / shape.held;
    const long key = shape.order.position(shape.held_first + held);
    const bool of_key = d < shape.head;
    const float *weights = of_key ? slopes : shares, *rows = of_key ? q : dy;
    const long width = of_key ? shape.head : shape.value_head, column = of_key ? d : d - shape.head;
    float sum = 0;
    for (long query = 0; query < shape.queries; ++query)
      for (long token = 0; token < shape.sequence; ++token) {
        const long head = ((sample * shape.kv_heads + kv_head) * shape.queries + query) * shape.sequence;
        const long row =
            ((sample * shape.sequence + token) * shape.kv_heads + kv_head) * shape.queries + query;
        float weight = weights[(head + token) * shape.keys + key];
        if (!of_key && weight != 0) weight *= QueryPlace(shape, head + token).kept(shape, keep, samples, key);
        sum += weight * rows[row * width + column];
      }
    dkv[i] = sum;
  }
};

}  // namespace rehearse::elements
