// Defines the order in which ranks share the tokens of a sample, with the same code on processors and GPUs.
#pragma once

#include "backend/training/element_wise.hpp"

namespace rehearse {

// An order of a sample's tokens. It is that of the sample, unless ring attention assigns each rank one piece
// from either end (zigzag): then there are `pieces` pieces of `piece` tokens each, and rank r has pieces r
// and pieces - 1 - r.
struct TokenOrder {
  long piece = 0, pieces = 1;  // piece 0: the order of the sample

  // position() returns where token `number` of the order is in the sample; number() is its inverse.
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
