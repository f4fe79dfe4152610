// Implements transformer operations with the element functions of transformer_elements.hpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "backend/training/sample_data.hpp"
#include "backend/training/transformer_elements.hpp"

namespace rehearse {

// `Each` runs items of work on a stream: it has a template <class Piece> void operator()(int stream, long
// count, const Piece& piece), which calls piece(0) to piece(count - 1) in any order.
template <class Each>
class TransformerByElement : public TransformerArithmetic {
public:
  explicit TransformerByElement(Each each) : each_(each) {}

  void copy_pieces(int stream, long rows, long width, const Strips& from, const Strips& to) override {
    each_(stream, rows * width,
          elements::CopyPieces{width, from.stride, to.stride, at(from.array) + from.first,
                               at(to.array) + to.first});
  }

  void look_up(int stream, const Array& tokens, long first_row, long width, const Array& table,
               const Array& y) override {
    each_(stream, count(y),
          elements::LookUp{width, first_row, count(table) / width, at(tokens), at(table), at(y)});
  }
  void look_up_backward(int stream, const Array& tokens, long first_row, long width, const Array& dy,
                        const Array& table_gradient, bool accumulate) override {
    each_(stream, width,
          elements::LookUpBackward{width, first_row, count(table_gradient) / width, count(tokens), accumulate,
                                   at(tokens), at(dy), at(table_gradient)});
  }
  void add_positions(int stream, const TokenRows& tokens, long offset, const Array& x, const Array& table,
                     const Array& y) override {
    each_(stream, count(y),
          elements::AddPositions{count(y) / tokens.count(), tokens.sequence, tokens.first, offset,
                                 tokens.order, at(x), at(table), at(y)});
  }
  void positions_backward(int stream, const TokenRows& tokens, long offset, long width, const Array& dy,
                          const Array& table_gradient, bool accumulate) override {
    each_(stream, count(table_gradient),
          elements::PositionsBackward{width, tokens.batch, tokens.sequence, tokens.first, offset,
                                      tokens.order, accumulate, at(dy), at(table_gradient)});
  }

  void norm(int stream, const NormRows& rows, const NormArrays& a, const Array& y) override {
    each_(stream, rows.rows,
          elements::Norm{rows.width, rows.stride, rows.centred, at(a.input), at(a.gain), at(a.offset), at(y),
                         at(a.statistics)});
  }
  void norm_backward(int stream, const NormRows& rows, const NormArrays& a, const Array& dy,
                     const Array& dx) override {
    each_(stream, rows.rows,
          elements::NormBackward{rows.width, rows.stride, rows.centred, at(a.input), at(a.gain),
                                 at(a.statistics), at(dy), at(dx)});
  }
  void norm_gradients(int stream, const NormRows& rows, const NormArrays& a, const Array& dy,
                      const Array& gain_gradient, const Array& offset_gradient, bool accumulate) override {
    each_(stream, rows.width,
          elements::NormGradients{rows.rows, rows.stride, rows.centred, accumulate, at(a.input),
                                  at(a.statistics), at(dy), at(gain_gradient), at(offset_gradient)});
  }

  void rotate(int stream, const RotaryShape& s, bool back, const Array& x) override {
    each_(stream, s.tokens.count() * s.heads * (s.width / 2),
          elements::Rotate{s.heads, s.stride, s.width, s.tokens.sequence, s.tokens.first, s.tokens.order,
                           back ? -1.0f : 1.0f, at(x)});
  }

  void activate(int stream, Activation kind, const Array& x, const Array& y) override {
    each_(stream, count(x), elements::Activate{kind, at(x), at(y)});
  }
  void activate_backward(int stream, Activation kind, const Array& x, const Array& dy,
                         const Array& dx) override {
    each_(stream, count(x), elements::ActivateBackward{kind, at(x), at(dy), at(dx)});
  }
  void gate(int stream, const Array& gate, const Array& x, const Array& y) override {
    each_(stream, count(x), elements::Gate{at(gate), at(x), at(y)});
  }
  void gate_backward(int stream, const Array& gate, const Array& x, const Array& dy,
                     const Array& gate_gradient, const Array& dx) override {
    each_(stream, count(x), elements::GateBackward{at(gate), at(x), at(dy), at(gate_gradient), at(dx)});
  }

  void drop(int stream, const TokenRows& tokens, const Dropout& dropout, const Array& x,
            const Array& y) override {
    each_(stream, count(x),
          elements::Drop{keep(dropout), count(x) / tokens.count(), tokens.sequence, tokens.first,
                         tokens.order, at(dropout.samples), at(x), at(y)});
  }

  void attend(int stream, const AttentionShape& s, const Dropout& dropout, const Array& q, const Array& kv,
              const Array& shares, const Array& sums, const Array& y) override {
    each_(stream, s.heads(),
          elements::Attend{s, keep(dropout), scale_of(s), at(dropout.samples), at(q), at(kv), at(shares),
                           at(sums), at(y)});
  }
  void attend_backward(int stream, const AttentionShape& s, const Dropout& dropout, const Array& q,
                       const Array& kv, const Array& shares, const Array& y, const Array& dy,
                       const Array& slopes, const Array& dq, const Array& dkv) override {
    each_(stream, s.heads(),
          elements::AttendBackwardQueries{s, keep(dropout), scale_of(s), at(dropout.samples), at(kv),
                                          at(shares), at(y), at(dy), at(slopes), at(dq)});
    each_(stream, count(dkv),
          elements::AttendBackwardKeys{s, keep(dropout), at(dropout.samples), at(q), at(shares), at(slopes),
                                       at(dy), at(dkv)});
  }

  void token_losses(int stream, const RowSums& rows, const Array& losses) override {
    each_(stream, count(losses),
          elements::TokenLosses{at(rows.maxima), at(rows.sums), at(rows.label_logits), at(losses)});
  }
  void token_losses_backward(int stream, const RowSums& rows, float scale, const Array& dsums,
                             const Array& dlabel_logits) override {
    each_(stream, count(dsums),
          elements::TokenLossesBackward{scale, at(rows.sums), at(dsums), at(dlabel_logits)});
  }
  void logits_backward(int stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                       const Array& dsums, const Array& dlabel_logits, const Array& dlogits) override {
    each_(stream, count(logits),
          elements::LogitsBackward{count(logits) / count(maxima), static_cast<long>(labels.first_class),
                                   at(logits), at(labels.labels), at(maxima), at(dsums), at(dlabel_logits),
                                   at(dlogits)});
  }

  void choose(int stream, const RouterShape& s, const Array& logits, const Array& gates) override {
    each_(stream, s.tokens, elements::Choose{s.experts, s.chosen, at(logits), at(gates)});
  }
  void choose_backward(int stream, const RouterShape& s, const Array& gates, const Array& dgates,
                       const Array& dlogits) override {
    each_(stream, s.tokens, elements::ChooseBackward{s.experts, at(gates), at(dgates), at(dlogits)});
  }
  void spread_rows(int stream, const ExpertRows& s, bool weighted, const Array& gates, const Array& x,
                   const Array& y) override {
    each_(stream, count(y),
          elements::SpreadRows{s.tokens, s.experts, s.width, weighted, at(gates), at(x), at(y)});
  }
  void gather_rows(int stream, const ExpertRows& s, bool weighted, const Array& gates, const Array& x,
                   const Array& y) override {
    each_(stream, count(y),
          elements::GatherRows{s.tokens, s.experts, s.width, weighted, at(gates), at(x), at(y)});
  }
  void gate_slopes(int stream, const ExpertRows& s, const Array& gates, const Array& x, const Array& dy,
                   const Array& dgates) override {
    each_(stream, count(dgates),
          elements::GateSlopes{s.tokens, s.experts, s.width, at(gates), at(x), at(dy), at(dgates)});
  }
  void scale_rows(int stream, const Array& factors, const Array& x, const Array& y) override {
    each_(stream, count(x),
          elements::ScaleRows{count(x) / std::max(count(factors), 1L), at(factors), at(x), at(y)});
  }
  void row_products(int stream, const Array& x, const Array& y, const Array& factors) override {
    each_(stream, count(factors),
          elements::RowProducts{count(x) / std::max(count(factors), 1L), at(x), at(y), at(factors)});
  }

protected:
  static float* at(const Array& array) { return elements::at(array); }
  static long count(const Array& array) { return static_cast<long>(array.elements); }
  static elements::Keep keep(const Dropout& d) {
    return {d.probability,
            1 / (1 - d.probability),
            static_cast<std::uint32_t>(d.seed),
            static_cast<std::uint32_t>(d.seed >> 32),
            d.site,
            static_cast<std::uint32_t>(RandomUse::dropout)};
  }
  static float scale_of(const AttentionShape& s) { return 1 / std::sqrt(static_cast<float>(s.head)); }

private:
  Each each_;
};

}  // namespace rehearse
