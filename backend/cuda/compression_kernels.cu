#include "backend/cuda/compression_kernels.hpp"

#include <algorithm>

#include "backend/cuda/compression_code.hpp"
#include "backend/cuda/launch.hpp"

namespace rehearse::kernels {
namespace {

using device::kDigits;
using device::kThreads;
using device::Search;

}  // namespace

void to_halves(Stream stream, const Array& from, const Array& halves) {
  device::to_halves<<<blocks_for(from.elements), kThreads, 0, stream>>>(from.elements, elements(from),
                                                                        elements<std::uint16_t>(halves));
  check_launch("to_halves");
}

void from_halves(Stream stream, const Array& halves, const Array& to) {
  device::from_halves<<<blocks_for(to.elements), kThreads, 0, stream>>>(
      to.elements, elements<std::uint16_t>(halves), elements(to));
  check_launch("from_halves");
}

void clear(Stream stream, const Array& x) {
  device::clear<<<blocks_for(x.elements), kThreads, 0, stream>>>(x.elements, elements(x));
  check_launch("clear");
}

void add_scaled(Stream stream, float factor, const Array& x, const Array& y) {
  device::add_scaled<<<blocks_for(y.elements), kThreads, 0, stream>>>(y.elements, factor, elements(x),
                                                                      elements(y));
  check_launch("add_scaled");
}

void root_mean_square(Stream stream, const Array& x, const Array& scratch, const Array& root) {
  const unsigned blocks = blocks_for(x.elements, kThreads);
  device::sums_of_squares<<<blocks, kThreads, 0, stream>>>(x.elements, elements(x),
                                                           elements<double>(scratch));
  check_launch("sums_of_squares");
  device::root_mean_square<<<1, kThreads, 0, stream>>>(x.elements, blocks, elements<double>(scratch),
                                                       elements(root));
  check_launch("root_mean_square");
}

void put_signs(Stream stream, const Array& numbers, std::size_t share, std::size_t shares, const Array& scale,
               const Array& blocks, std::size_t block) {
  device::put_signs<<<blocks_for(share / 8 * shares), kThreads, 0, stream>>>(
      numbers.elements, share, shares, elements(scale), elements(numbers), elements(blocks), block);
  check_launch("put_signs");
}

void add_signs(Stream stream, const Array& blocks, std::size_t count, std::size_t apart, const Array& to) {
  device::add_signs<<<blocks_for(to.elements), kThreads, 0, stream>>>(to.elements, count, elements(blocks),
                                                                      apart, elements(to));
  check_launch("add_signs");
}

void take_signs(Stream stream, const Array& blocks, std::size_t share, std::size_t block, const Array& to) {
  device::take_signs<<<blocks_for(to.elements), kThreads, 0, stream>>>(to.elements, share, elements(blocks),
                                                                       block, elements(to));
  check_launch("take_signs");
}

void take_largest(Stream stream, const Array& x, std::size_t k, const Array& scratch, const Array& taken) {
  constexpr unsigned kBits = 32, kDigitBits = 8;
  const std::size_t n = x.elements, least = (n + kMostChunks - 1) / kMostChunks;
  const std::size_t chunk = std::max<std::size_t>(least, 16);
  const unsigned blocks = blocks_for((n + chunk - 1) / chunk, kMostChunks / kThreads);
  auto* const search = elements<Search>(scratch);
  auto* const histogram = elements<unsigned>(scratch, kDigits);
  auto* const above = elements<unsigned>(scratch, 2 * kDigits);
  auto* const at = above + kMostChunks;
  device::begin_search<<<1, kDigits, 0, stream>>>(static_cast<unsigned>(k), search, histogram);
  check_launch("begin_search");
  for (unsigned shift = kBits; shift > 0;) {
    shift -= kDigitBits;
    device::count_digits<<<blocks_for(n, kMostChunks / kThreads), kThreads, 0, stream>>>(
        n, elements(x), search, shift, histogram);
    check_launch("count_digits");
    device::choose_digit<<<1, 1, 0, stream>>>(shift, search, histogram);
    check_launch("choose_digit");
  }
  device::count_chunks<<<blocks, kThreads, 0, stream>>>(n, chunk, elements(x), search, above, at);
  check_launch("count_chunks");
  device::sum_before<<<2, kThreads, 0, stream>>>(static_cast<std::size_t>(blocks) * kThreads, above, at);
  check_launch("sum_before");
  device::take_largest<<<blocks, kThreads, 0, stream>>>(n, chunk, elements(x), search, above, at,
                                                        elements(taken), elements<unsigned>(taken, k));
  check_launch("take_largest");
}

void add_at(Stream stream, const Array& taken, const Array& to) {
  const std::size_t k = taken.elements / 2;
  device::add_at<<<blocks_for(k), kThreads, 0, stream>>>(k, elements(taken), elements<unsigned>(taken, k),
                                                         elements(to));
  check_launch("add_at");
}

void orthonormalize(Stream stream, const Array& p, std::size_t columns) {
  device::orthonormalize<<<1, kThreads, 0, stream>>>(p.elements / columns, columns, elements(p));
  check_launch("orthonormalize");
}

}  // namespace rehearse::kernels
