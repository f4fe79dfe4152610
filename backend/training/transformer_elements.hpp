// What transformers' operations do, cut into pieces that do not wait for one another: operator()(i) does
// piece i, on processors and GPUs alike.
#pragma once

#include <tuple>

#include "backend/training/element_wise.hpp"
#include "backend/training/philox.hpp"
#include "backend/training/transformer_arithmetic.hpp"

namespace rehearse::elements {

inline float* at(const Array& array) {
  return reinterpret_cast<float*>(array.data);
}

struct CopyPieces {  // by element
  long width, from_stride, to_stride;
  const float* from;
  float* to;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long row = i / width, column = i % width;
    to[row * to_stride + column] = from[row * from_stride + column];
  }
};

struct LookUp {  // by element of the result
  long width, first_row, rows;
  const float *tokens, *table;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long row = static_cast<long>(tokens[i / width]) - first_row;
    y[i] = row >= 0 && row < rows ? table[row * width + i % width] : 0.0f;
  }
};

struct LookUpBackward {  // by column
  long width, first_row, rows, tokens_here;
  bool accumulate;
  const float *tokens, *dy;
  float* gradient;
  REHEARSE_ELEMENT void operator()(long column) const {
    for (long row = 0; !accumulate && row < rows; ++row) gradient[row * width + column] = 0;
    for (long t = 0; t < tokens_here; ++t) {
      const long row = static_cast<long>(tokens[t]) - first_row;
      if (row >= 0 && row < rows) gradient[row * width + column] += dy[t * width + column];
    }
  }
};

struct AddPositions {  // by element
  long width, sequence, first;
  const float *x, *table;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long position = first + i / width % sequence;
    y[i] = x[i] + table[position * width + i % width];
  }
};

struct PositionsBackward {  // by element of the table
  long width, batch, sequence, first;
  bool accumulate;
  const float* dy;
  float* gradient;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long position = i / width - first;
    float sum = accumulate ? gradient[i] : 0.0f;
    for (long b = 0; b < batch && position >= 0 && position < sequence; ++b)
      sum += dy[(b * sequence + position) * width + i % width];
    gradient[i] = sum;
  }
};

constexpr float kNormEpsilon = 1e-5f;

struct Norm {  // by row
  long width, stride;
  bool centred;
  const float *x, *gain, *offset;
  float *y, *statistics;
  REHEARSE_ELEMENT void operator()(long row) const {
    const float* from = x + row * stride;
    float mean = 0, squares = 0;
    for (long j = 0; centred && j < width; ++j) mean += from[j];
    mean /= static_cast<float>(width);
    for (long j = 0; j < width; ++j) squares += (from[j] - mean) * (from[j] - mean);
    const float scale = 1 / sqrtf(squares / static_cast<float>(width) + kNormEpsilon);
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = scale;
    for (long j = 0; j < width; ++j)
      y[row * stride + j] = (from[j] - mean) * scale * gain[j] + (centred ? offset[j] : 0.0f);
  }
};

struct NormBackward {  // by row
  long width, stride;
  bool centred;
  const float *x, *gain, *statistics, *dy;
  float* dx;
  REHEARSE_ELEMENT void operator()(long row) const {
    const float *from = x + row * stride, *above = dy + row * stride;
    const float mean = statistics[2 * row], scale = statistics[2 * row + 1];
    float sum = 0, product = 0;
    for (long j = 0; j < width; ++j) {
      const float slope = above[j] * gain[j];
      sum += slope;
      product += slope * (from[j] - mean) * scale;
    }
    sum = centred ? sum / static_cast<float>(width) : 0.0f;
    product /= static_cast<float>(width);
    for (long j = 0; j < width; ++j)
      dx[row * stride + j] = scale * (above[j] * gain[j] - sum - (from[j] - mean) * scale * product);
  }
};

struct NormGradients {  // by column
  long rows, stride;
  bool centred, accumulate;
  const float *x, *statistics, *dy;
  float *gain_gradient, *offset_gradient;
  REHEARSE_ELEMENT void operator()(long column) const {
    float gain = accumulate ? gain_gradient[column] : 0.0f;
    float offset = accumulate && centred ? offset_gradient[column] : 0.0f;
    for (long row = 0; row < rows; ++row) {
      const float above = dy[row * stride + column];
      gain += above * (x[row * stride + column] - statistics[2 * row]) * statistics[2 * row + 1];
      offset += above;
    }
    gain_gradient[column] = gain;
    if (centred) offset_gradient[column] = offset;
  }
};

struct Rotate {  // by pair
  long heads, stride, width, sequence, first;
  float sign;
  float* x;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long half = width / 2, pair = i % half, head = i / half;
    const float position = static_cast<float>(first + head / heads % sequence);
    const float angle =
        position * powf(10000.0f, -2.0f * static_cast<float>(pair) / static_cast<float>(width));
    const float cosine = cosf(angle), sine = sign * sinf(angle);
    float *one = x + head * stride + pair, *other = one + half;
    const float before = *one;
    *one = before * cosine - *other * sine;
    *other = *other * cosine + before * sine;
  }
};

constexpr float kGeluScale = 0.7978845608f, kGeluCubic = 0.044715f;  // sqrt(2 / pi)

struct Activate {
  Activation kind;
  const float* x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const float z = x[i];
    if (kind == Activation::relu)
      y[i] = z > 0 ? z : 0.0f;
    else
      y[i] = 0.5f * z * (1 + tanhf(kGeluScale * (z + kGeluCubic * z * z * z)));
  }
};

struct ActivateBackward {
  Activation kind;
  const float *x, *dy;
  float* dx;
  REHEARSE_ELEMENT void operator()(long i) const {
    const float z = x[i];
    if (kind == Activation::relu) {
      dx[i] = z > 0 ? dy[i] : 0.0f;
      return;
    }
    const float t = tanhf(kGeluScale * (z + kGeluCubic * z * z * z));
    const float slope = 0.5f * (1 + t) + 0.5f * z * (1 - t * t) * kGeluScale * (1 + 3 * kGeluCubic * z * z);
    dx[i] = dy[i] * slope;
  }
};

struct Gate {
  const float *gate, *x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const { y[i] = gate[i] / (1 + expf(-gate[i])) * x[i]; }
};

struct GateBackward {
  const float *gate, *x, *dy;
  float *dgate, *dx;
  REHEARSE_ELEMENT void operator()(long i) const {
    const float share = 1 / (1 + expf(-gate[i])), above = dy[i];
    dx[i] = above * gate[i] * share;
    dgate[i] = above * x[i] * share * (1 + gate[i] * (1 - share));
  }
};

// 0 of what is dropped, 1 / (1 - probability) of the others.
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
  const float *samples, *x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long token = i / width, position = first + token % sequence;
    y[i] = x[i] * keep.of(static_cast<std::uint32_t>(samples[token / sequence]),
                          static_cast<std::uint64_t>(position * width + i % width));
  }
};

// A query of a head: i counts [batch, kv_heads, queries, sequence].
struct QueryPlace {
  long sample, kv_head, query, token, first_key, end_key;
  REHEARSE_ELEMENT QueryPlace(const AttentionShape& s, long i) {
    token = i % s.sequence;
    query = i / s.sequence % s.queries;
    kv_head = i / s.sequence / s.queries % s.kv_heads;
    sample = i / s.sequence / s.queries / s.kv_heads;
    const long own = s.first + token + 1;
    end_key = own < s.keys ? own : s.keys;
    first_key = s.window > 0 && end_key > s.window ? end_key - s.window : 0;
  }
  REHEARSE_ELEMENT long row(const AttentionShape& s) const {  // in queries and results, in heads
    return ((sample * s.sequence + token) * s.kv_heads + kv_head) * s.queries + query;
  }
  // What becomes of a share of a key.
  REHEARSE_ELEMENT float kept(const AttentionShape& s, const Keep& keep, const float* samples,
                              long key) const {
    if (keep.probability == 0) return 1;
    const long head = (s.first_kv_head + kv_head) * s.all_queries + s.first_query + query;
    return keep.of(static_cast<std::uint32_t>(samples[sample]),
                   static_cast<std::uint64_t>((head * s.keys + s.first + token) * s.keys + key));
  }
  REHEARSE_ELEMENT long key_row(const AttentionShape& s, long key) const {
    return (sample * s.keys + key) * s.kv_heads + kv_head;
  }
};

struct Attend {  // by query and head
  AttentionShape shape;
  Keep keep;
  float scale;
  const float *samples, *q, *kv;
  float *shares, *y;
  REHEARSE_ELEMENT void operator()(long i) const {
    const QueryPlace at(shape, i);
    const long pair = shape.head + shape.value_head;
    const float* query = q + at.row(shape) * shape.head;
    float *share = shares + i * shape.keys, *result = y + at.row(shape) * shape.value_head;
    float most = -3.0e38f, sum = 0;
    for (long j = 0; j < shape.keys; ++j) {
      share[j] = 0;
      if (j < at.first_key || j >= at.end_key) continue;
      const float* key = kv + at.key_row(shape, j) * pair;
      float score = 0;
      for (long d = 0; d < shape.head; ++d) score += query[d] * key[d];
      share[j] = score * scale;
      most = share[j] > most ? share[j] : most;
    }
    for (long j = at.first_key; j < at.end_key; ++j) sum += share[j] = expf(share[j] - most);
    for (long d = 0; d < shape.value_head; ++d) result[d] = 0;
    for (long j = at.first_key; j < at.end_key; ++j) {
      share[j] /= sum;
      const float* value = kv + at.key_row(shape, j) * pair + shape.head;
      const float kept = share[j] * at.kept(shape, keep, samples, j);
      for (long d = 0; d < shape.value_head; ++d) result[d] += kept * value[d];
    }
  }
};

// Of queries, and the slopes of scores, which those of keys need.
struct AttendBackwardQueries {  // by query and head
  AttentionShape shape;
  Keep keep;
  float scale;
  const float *samples, *kv, *shares, *dy;
  float *slopes, *dq;
  REHEARSE_ELEMENT void operator()(long i) const {
    const QueryPlace at(shape, i);
    const long pair = shape.head + shape.value_head;
    const float *share = shares + i * shape.keys, *above = dy + at.row(shape) * shape.value_head;
    float *slope = slopes + i * shape.keys, *result = dq + at.row(shape) * shape.head;
    float mean = 0;
    for (long j = 0; j < shape.keys; ++j) {
      slope[j] = 0;
      if (j < at.first_key || j >= at.end_key) continue;
      const float* value = kv + at.key_row(shape, j) * pair + shape.head;
      for (long d = 0; d < shape.value_head; ++d) slope[j] += above[d] * value[d];
      slope[j] *= at.kept(shape, keep, samples, j);
      mean += slope[j] * share[j];
    }
    for (long d = 0; d < shape.head; ++d) result[d] = 0;
    for (long j = at.first_key; j < at.end_key; ++j) {
      slope[j] = share[j] * (slope[j] - mean) * scale;
      const float* key = kv + at.key_row(shape, j) * pair;
      for (long d = 0; d < shape.head; ++d) result[d] += slope[j] * key[d];
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
    const long kv_head = i / pair % shape.kv_heads, key = i / pair / shape.kv_heads % shape.keys,
               sample = i / pair / shape.kv_heads / shape.keys;
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

struct TokenLosses {  // by token
  const float *maxima, *sums, *label_logits;
  float* losses;
  REHEARSE_ELEMENT void operator()(long i) const { losses[i] = logf(sums[i]) + maxima[i] - label_logits[i]; }
};

struct TokenLossesBackward {  // by token
  float scale;
  const float* sums;
  float *dsums, *dlabel_logits;
  REHEARSE_ELEMENT void operator()(long i) const {
    dsums[i] = scale / sums[i];
    dlabel_logits[i] = -scale;
  }
};

struct LogitsBackward {  // by element
  long classes, first_class;
  const float *logits, *labels, *maxima, *dsums, *dlabel_logits;
  float* dlogits;
  REHEARSE_ELEMENT void operator()(long i) const {
    const long row = i / classes;
    const bool label = static_cast<long>(labels[row]) == first_class + i % classes;
    dlogits[i] = expf(logits[i] - maxima[row]) * dsums[row] + (label ? dlabel_logits[row] : 0.0f);
  }
};

struct Choose {  // by token
  long experts, chosen;
  const float* logits;
  float* gates;
  REHEARSE_ELEMENT void operator()(long token) const {
    const float* logit = logits + token * experts;
    float* gate = gates + token * experts;
    for (long e = 0; e < experts; ++e) gate[e] = 0;
    float most = 0, sum = 0;
    for (long k = 0; k < chosen; ++k) {
      long best = -1;
      for (long e = 0; e < experts; ++e)
        if (gate[e] == 0 && (best < 0 || logit[e] > logit[best])) best = e;
      if (k == 0) most = logit[best];
      // Never 0, or the expert would be chosen again.
      const float power = expf(logit[best] - most);
      gate[best] = power > 1e-30f ? power : 1e-30f;
      sum += gate[best];
    }
    for (long e = 0; e < experts; ++e) gate[e] /= sum;
  }
};

struct ChooseBackward {  // by token
  long experts;
  const float *gates, *dgates;
  float* dlogits;
  REHEARSE_ELEMENT void operator()(long token) const {
    const long begin = token * experts;
    float mean = 0;
    for (long e = 0; e < experts; ++e) mean += gates[begin + e] * dgates[begin + e];
    for (long e = 0; e < experts; ++e) dlogits[begin + e] = gates[begin + e] * (dgates[begin + e] - mean);
  }
};

struct ScaleRows {  // by element
  long width;
  const float *factors, *x;
  float* y;
  REHEARSE_ELEMENT void operator()(long i) const { y[i] = factors[i / width] * x[i]; }
};

struct RowProducts {  // by row
  long width;
  const float *x, *y;
  float* factors;
  REHEARSE_ELEMENT void operator()(long row) const {
    float sum = 0;
    for (long j = row * width; j < (row + 1) * width; ++j) sum += x[j] * y[j];
    factors[row] = sum;
  }
};

// All of them.
using All = std::tuple<Drop, CopyPieces, LookUp, LookUpBackward, AddPositions, PositionsBackward, Norm,
                       NormBackward, NormGradients, Rotate, Activate, ActivateBackward, Gate, GateBackward,
                       Attend, AttendBackwardQueries, AttendBackwardKeys, TokenLosses, TokenLossesBackward,
                       LogitsBackward, Choose, ChooseBackward, ScaleRows, RowProducts>;

}  // namespace rehearse::elements
