// Implements transformer operations on processors with matrix products and vectors.
#pragma once

#include "backend/training/transformer_by_element.hpp"

namespace rehearse {

struct OneByOne {
  template <class Piece>
  void operator()(int, long count, const Piece& piece) const {
    for (long i = 0; i < count; ++i) piece(i);
  }
};

// Operations that take little time (routers, dropout, losses of split classes) are computed element by
// element.
class HostTransformer : public TransformerByElement<OneByOne> {
public:
  HostTransformer() : TransformerByElement(OneByOne()) {}

  void copy_pieces(int stream, long rows, long width, const Strips& from, const Strips& to) override;
  void look_up(int stream, const Array& tokens, long first_row, long width, const Array& table,
               const Array& y) override;
  void look_up_backward(int stream, const Array& tokens, long first_row, long width, const Array& dy,
                        const Array& table_gradient, bool accumulate) override;
  void add_positions(int stream, const TokenRows& tokens, long offset, const Array& x, const Array& table,
                     const Array& y) override;
  void positions_backward(int stream, const TokenRows& tokens, long offset, long width, const Array& dy,
                          const Array& table_gradient, bool accumulate) override;
  void norm(int stream, const NormRows& rows, const NormArrays& arrays, const Array& y) override;
  void norm_backward(int stream, const NormRows& rows, const NormArrays& arrays, const Array& dy,
                     const Array& dx) override;
  void norm_gradients(int stream, const NormRows& rows, const NormArrays& arrays, const Array& dy,
                      const Array& gain_gradient, const Array& offset_gradient, bool accumulate) override;
  void rotate(int stream, const RotaryShape& shape, bool back, const Array& x) override;
  void activate(int stream, Activation kind, const Array& x, const Array& y) override;
  void activate_backward(int stream, Activation kind, const Array& x, const Array& dy,
                         const Array& dx) override;
  void gate(int stream, const Array& gate, const Array& x, const Array& y) override;
  void gate_backward(int stream, const Array& gate, const Array& x, const Array& dy,
                     const Array& gate_gradient, const Array& dx) override;
  void attend(int stream, const AttentionShape& shape, const Dropout& dropout, const Array& q,
              const Array& kv, const Array& shares, const Array& sums, const Array& y) override;
  void attend_backward(int stream, const AttentionShape& shape, const Dropout& dropout, const Array& q,
                       const Array& kv, const Array& shares, const Array& y, const Array& dy,
                       const Array& slopes, const Array& dq, const Array& dkv) override;
  void logits_backward(int stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                       const Array& dsums, const Array& dlabel_logits, const Array& dlogits) override;
  void spread_rows(int stream, const ExpertRows& shape, bool weighted, const Array& gates, const Array& x,
                   const Array& y) override;
  void gather_rows(int stream, const ExpertRows& shape, bool weighted, const Array& gates, const Array& x,
                   const Array& y) override;
  void gate_slopes(int stream, const ExpertRows& shape, const Array& gates, const Array& x, const Array& dy,
                   const Array& dgates) override;
};

}  // namespace rehearse
