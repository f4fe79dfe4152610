// Whether operands of training arithmetic fit together; std::invalid_argument where they do not.
#pragma once

#include <string_view>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

void expect_elements(std::string_view operand, const Array& array, std::size_t elements);
long rows_of(std::string_view operand, const Array& matrix, const Array& row);
void expect_product(const MatrixShape& shape, const Array& a, const Array& b, const Array& c);
void expect_optimizer_arrays(const OptimizerSettings& optimizer, const OptimizerArrays& arrays);

}  // namespace rehearse
