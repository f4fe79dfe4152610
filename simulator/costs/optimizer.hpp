// Lists the optimizers by name. simulator/costs/memory.hpp defines what each stores per parameter.
#pragma once

#include <array>
#include <string_view>

namespace rehearse {

enum class Optimizer { adam, sgd, momentum };
inline constexpr std::array<std::string_view, 3> kOptimizerNames = {"adam", "sgd", "momentum"};

}  // namespace rehearse
