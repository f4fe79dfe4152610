// Collects the element functions of transformer operations, for processors and GPUs. Their items do not
// depend on each other; operator()(i) computes item i.
#pragma once

#include <tuple>

#include "backend/training/attention_elements.hpp"
#include "backend/training/row_elements.hpp"
#include "backend/training/token_elements.hpp"

namespace rehearse::elements {

inline float* at(const Array& array) {
  return reinterpret_cast<float*>(array.data);
}

// All element functions.
using All =
    std::tuple<Drop, CopyPieces, LookUp, LookUpBackward, AddPositions, PositionsBackward, Norm, NormBackward,
               NormGradients, Rotate, Activate, ActivateBackward, Gate, GateBackward, Attend,
               AttendBackwardQueries, AttendBackwardKeys, TokenLosses, TokenLossesBackward, LogitsBackward,
               Choose, ChooseBackward, SpreadRows, GatherRows, GateSlopes, ScaleRows, RowProducts>;

}  // namespace rehearse::elements
