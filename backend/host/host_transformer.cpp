// Runs transformer operations on processors, item by item.
#include "backend/host/host_arithmetic.hpp"
#include "backend/training/transformer_by_element.hpp"

namespace rehearse {
namespace {

struct OneByOne {
  template <class Piece>
  void operator()(int, long count, const Piece& piece) const {
    for (long i = 0; i < count; ++i) piece(i);
  }
};

}  // namespace

std::unique_ptr<TransformerArithmetic> HostArithmetic::transformer() {
  return std::make_unique<TransformerByElement<OneByOne>>(OneByOne());
}

}  // namespace rehearse
