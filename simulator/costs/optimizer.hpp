// Optimizers by name. What they keep of each parameter: simulator/costs/memory.hpp.
#pragma once

#include <array>
#include <string_view>

namespace rehearse {

enum class Optimizer { adam, sgd, momentum };
inline constexpr std::array<std::string_view, 3> kOptimizerNames = {"adam", "sgd", "momentum"};

}  // namespace rehearse
