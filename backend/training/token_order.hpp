// The order in which ranks share out the tokens of a sample: the same code on processors and GPUs.
#pragma once

#include "backend/training/element_wise.hpp"

namespace rehearse {

// As they stand in the sample, unless ranks have a piece from either end of it (zigzag, of ring attention):
// then `pieces` of `piece` tokens each, rank r's being r and pieces - 1 - r.
struct TokenOrder {
  long piece = 0, pieces = 1;  // 0: as they stand

  // Where token `number` of the order stands in the sample, and back.
  REHEARSE_ELEMENT long position(long number) const {
    if (piece == 0) return number;
    const long rank = number / piece / 2;
    return (number / piece % 2 == 0 ? rank : pieces - 1 - rank) * piece + number % piece;
  }
  REHEARSE_ELEMENT long number(long position) const {
    if (piece == 0) return position;
    const long its = position / piece;
    return (its < pieces / 2 ? 2 * its : 2 * (pieces - 1 - its) + 1) * piece + position % piece;
  }
};

}  // namespace rehearse
