// What transformers' operations do, cut into pieces that do not wait for one another: operator()(i) does
// piece i, on processors and GPUs alike.
#pragma once

#include <tuple>

#include "backend/training/attention_elements.hpp"
#include "backend/training/row_elements.hpp"
#include "backend/training/token_elements.hpp"

namespace rehearse::elements {

inline float* at(const Array& array) {
  return reinterpret_cast<float*>(array.data);
}

// All of them.
using All =
    std::tuple<Drop, CopyPieces, LookUp, LookUpBackward, AddPositions, PositionsBackward, Norm, NormBackward,
               NormGradients, Rotate, Activate, ActivateBackward, Gate, GateBackward, Attend,
               AttendBackwardQueries, AttendBackwardKeys, TokenLosses, TokenLossesBackward, LogitsBackward,
               Choose, ChooseBackward, SpreadRows, GatherRows, GateSlopes, ScaleRows, RowProducts>;

}  // namespace rehearse::elements
