// Computes attention by matrix products over blocks of queries.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "backend/host/aligned_floats.hpp"
#include "backend/host/host_transformer.hpp"
#include "backend/host/wide_code.hpp"

namespace rehearse {
namespace {

using elements::at;
using elements::Keep;
using elements::QueryPlace;

constexpr long kBlock = 64;  // queries: their scores stay in the second-level cache for some thousand keys

// Held keys whose positions follow each other: numbers [first, first + count) of the held ones.
struct KeyRun {
  long first = 0, count = 0, position = 0;
};

std::vector<KeyRun> key_runs(const AttentionShape& s) {
  std::vector<KeyRun> runs;
  for (long j = 0; j < s.held; ++j) {
    const long position = s.order.position(s.held_first + j);
    if (runs.empty() || position != runs.back().position + runs.back().count)
      runs.push_back({j, 0, position});
    ++runs.back().count;
  }
  return runs;
}

// The keys of a run that a query sees.
KeyRun seen(const QueryPlace& query, const KeyRun& run) {
  const long first = std::max(query.first_key, run.position);
  const long end = std::min(query.end_key, run.position + run.count);
  return {run.first + first - run.position, std::max(0L, end - first), first};
}

// Some queries of one head, and the held keys [first_key, end_key) outside which none of them sees any.
struct Block {
  const AttentionShape& shape;
  const std::vector<KeyRun>& runs;
  long begin = 0, count = 0;  // index of the first query (transformer_arithmetic.hpp), and how many
  long first_key = 0, end_key = 0;

  Block(const AttentionShape& s, const std::vector<KeyRun>& all, long head, long first_token)
      : shape(s),
        runs(all),
        begin(head * s.sequence + first_token),
        count(std::min(kBlock, s.sequence - first_token)) {
    first_key = s.held;
    for (long i = 0; i < count; ++i)
      for (const KeyRun& run : runs)
        if (const KeyRun part = seen(query(i), run); part.count > 0) {
          first_key = std::min(first_key, part.first);
          end_key = std::max(end_key, part.first + part.count);
        }
    first_key = std::min(first_key, end_key);
  }

  QueryPlace query(long i) const { return {shape, begin + i}; }
  long keys() const { return end_key - first_key; }
  // Where the block's rows begin in queries (or results) of `width` elements, and where its keys do.
  long row(long width) const { return query(0).row(shape) * width; }
  long row_stride(long width) const { return shape.kv_heads * shape.queries * width; }
  long key_row() const { return query(0).key_row(shape, first_key) * pair(); }
  long key_stride() const { return shape.kv_heads * pair(); }
  long pair() const { return shape.head + shape.value_head; }
};

// rows[block, keys] = alpha times the block's rows of `left` times the (transposed) keys, or values, at
// `keys`.
void multiply_by_keys(const Block& block, float alpha, const float* left, const float* keys, long width,
                      AlignedFloats& rows) {
  rows.resize(static_cast<std::size_t>(block.count * block.keys()));
  HostProduct product{block.count, block.keys(), width, false, true, alpha, 0};
  product.a = left + block.row(width);
  product.b = keys + block.key_row();
  product.c = rows.data();
  product.stride_a = block.row_stride(width);
  product.stride_b = block.key_stride();
  wide_code().multiply(product);
}

// The block's rows of `result` += rows[block, keys] times the keys, or values, at `keys`.
void add_keys_times(const Block& block, const AlignedFloats& rows, const float* keys, long width,
                    float* result) {
  HostProduct product{block.count, width, block.keys(), false, false, 1, 1};
  product.a = rows.data();
  product.b = keys + block.key_row();
  product.c = result + block.row(width);
  product.stride_b = block.key_stride();
  product.stride_c = block.row_stride(width);
  wide_code().multiply(product);
}

// The keys', or values', rows of `result` += transposed rows[block, keys] times the block's rows of `right`.
void add_transposed_times(const Block& block, const AlignedFloats& rows, const float* right, long width,
                          float* result) {
  HostProduct product{block.keys(), width, block.count, true, false, 1, 1};
  product.a = rows.data();
  product.b = right + block.row(width);
  product.c = result + block.key_row();
  product.stride_b = block.row_stride(width);
  product.stride_c = block.key_stride();
  wide_code().multiply(product);
}

void for_each_block(const AttentionShape& s, const std::vector<KeyRun>& runs, const auto& work) {
  for (long head = 0; s.sequence > 0 && head < s.heads() / s.sequence; ++head)
    for (long token = 0; token < s.sequence; token += kBlock) work(Block(s, runs, head, token));
}

void drop_shares(const AttentionShape& s, const Keep& keep, const float* samples, const QueryPlace& query,
                 const KeyRun& run, float* row) {
  for (long j = 0; keep.probability != 0 && j < run.count; ++j)
    row[j] *= query.kept(s, keep, samples, run.position + j);
}

}  // namespace

void HostTransformer::attend(int, const AttentionShape& s, const Dropout& dropout, const Array& q,
                             const Array& kv, const Array& shares, const Array& sums, const Array& y) {
  const WideCode& code = wide_code();
  const Keep keep = this->keep(dropout);
  const float scale = scale_of(s);
  const bool at_once = s.begins && s.ends;  // no later step of a ring raises the maximum
  const std::vector<KeyRun> runs = key_runs(s);
  AlignedFloats scores, powers;
  for_each_block(s, runs, [&](const Block& block) {
    multiply_by_keys(block, scale, at(q), at(kv), s.head, scores);
    powers.assign(scores.size(), 0.0f);
    std::array<float, kBlock> maxima, totals;  // of the scores and of their exponentials, so far
    for (long i = 0; i < block.count; ++i) {
      const QueryPlace query = block.query(i);
      float *share = at(shares) + (block.begin + i) * s.keys, *result = at(y) + query.row(s) * s.value_head;
      const float* score = scores.data() + i * block.keys() - block.first_key;
      float* power = powers.data() + i * block.keys() - block.first_key;
      float most = s.begins ? -3.0e38f : at(sums)[2 * (block.begin + i)];
      float sum = s.begins ? 0.0f : at(sums)[2 * (block.begin + i) + 1];
      if (s.begins) std::fill_n(share, s.keys, 0.0f);
      if (s.begins) std::fill_n(result, s.value_head, 0.0f);
      const float before = most;
      for (const KeyRun& run : runs) {
        const KeyRun part = seen(query, run);
        if (part.count == 0) continue;
        if (!at_once) std::copy_n(score + part.first, part.count, share + part.position);
        most = std::max(most, code.maximum(score + part.first, part.count));
      }
      const float smaller = std::exp(before - most);
      sum *= smaller;
      if (!s.begins) code.scale(smaller, s.value_head, result);
      for (const KeyRun& run : runs) {
        const KeyRun part = seen(query, run);
        if (part.count == 0) continue;
        sum += code.exponentials(score + part.first, most, part.count, power + part.first);
        if (at_once) std::copy_n(power + part.first, part.count, share + part.position);
        drop_shares(s, keep, at(dropout.samples), query, part, power + part.first);
      }
      maxima[static_cast<std::size_t>(i)] = most;
      totals[static_cast<std::size_t>(i)] = sum;
    }
    if (block.keys() > 0) add_keys_times(block, powers, at(kv) + s.head, s.value_head, at(y));
    for (long i = 0; i < block.count; ++i) {
      const QueryPlace query = block.query(i);
      const float most = maxima[static_cast<std::size_t>(i)], sum = totals[static_cast<std::size_t>(i)];
      if (!s.ends) {
        at(sums)[2 * (block.begin + i)] = most;
        at(sums)[2 * (block.begin + i) + 1] = sum;
        continue;
      }
      float* share = at(shares) + (block.begin + i) * s.keys + query.first_key;
      code.scale(1 / sum, s.value_head, at(y) + query.row(s) * s.value_head);
      if (!at_once) code.exponentials(share, most, query.end_key - query.first_key, share);
      code.scale(1 / sum, query.end_key - query.first_key, share);
    }
  });
}

void HostTransformer::attend_backward(int, const AttentionShape& s, const Dropout& dropout, const Array& q,
                                      const Array& kv, const Array& shares, const Array& y, const Array& dy,
                                      const Array& slopes, const Array& dq, const Array& dkv) {
  const WideCode& code = wide_code();
  const Keep keep = this->keep(dropout);
  const float scale = scale_of(s);
  const std::vector<KeyRun> runs = key_runs(s);
  AlignedFloats products, dropped, slope_rows;
  std::fill_n(at(dq), count(dq), 0.0f);
  std::fill_n(at(dkv), count(dkv), 0.0f);
  for_each_block(s, runs, [&](const Block& block) {
    for (long i = 0; i < block.count; ++i)
      for (const KeyRun& run : runs)
        std::fill_n(at(slopes) + (block.begin + i) * s.keys + run.position, run.count, 0.0f);
    if (block.keys() == 0) return;
    multiply_by_keys(block, 1, at(dy), at(kv) + s.head, s.value_head, products);
    slope_rows.assign(products.size(), 0.0f);
    dropped.assign(products.size(), 0.0f);
    for (long i = 0; i < block.count; ++i) {
      const QueryPlace query = block.query(i);
      const long row = query.row(s) * s.value_head, from = i * block.keys() - block.first_key;
      // The mean slope of a query's scores (Dao et al., "FlashAttention", 2022, appendix B.2).
      const float mean = code.inner_product(at(y) + row, at(dy) + row, s.value_head);
      for (const KeyRun& run : runs) {
        const KeyRun part = seen(query, run);
        if (part.count == 0) continue;
        const float* share = at(shares) + (block.begin + i) * s.keys + part.position;
        float *slope = slope_rows.data() + from + part.first, *product = products.data() + from + part.first,
              *kept = dropped.data() + from + part.first;
        std::copy_n(share, part.count, kept);
        drop_shares(s, keep, at(dropout.samples), query, part, kept);
        drop_shares(s, keep, at(dropout.samples), query, part, product);
        code.score_slopes(share, product, mean, scale, part.count, slope);
        std::copy_n(slope, part.count, at(slopes) + (block.begin + i) * s.keys + part.position);
      }
    }
    add_keys_times(block, slope_rows, at(kv), s.head, at(dq));
    add_transposed_times(block, slope_rows, at(q), s.head, at(dkv));
    add_transposed_times(block, dropped, at(dy), s.value_head, at(dkv) + s.head);
  });
}

}  // namespace rehearse
