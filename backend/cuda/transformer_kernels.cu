#include "backend/cuda/transformer_kernels.hpp"

#include <utility>

#include "backend/cuda/launch.hpp"
#include "backend/cuda/transformer_code.hpp"
#include "backend/training/transformer_by_element.hpp"

namespace rehearse::kernels {
namespace {

struct Launched {
  std::function<Stream(int)> stream_of;
  template <class Piece>
  void operator()(int stream, long count, const Piece& piece) const {
    if (count == 0) return;
    device::each<<<blocks_for(static_cast<std::size_t>(count)), device::kThreads, 0, stream_of(stream)>>>(
        count, piece);
    check_launch("an operation of transformers");
  }
};

}  // namespace

std::unique_ptr<TransformerArithmetic> transformer(std::function<Stream(int)> stream_of) {
  return std::make_unique<TransformerByElement<Launched>>(Launched{std::move(stream_of)});
}

}  // namespace rehearse::kernels
