// Checks whether operands of training arithmetic fit together; throws std::invalid_argument if they do not.
#pragma once

#include <initializer_list>
#include <string_view>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

void expect_elements(std::string_view operand, const Array& array, std::size_t elements);
// Expects one number per row in each of `arrays`.
void expect_rows(std::size_t rows, std::initializer_list<Array> arrays);
long rows_of(std::string_view operand, const Array& matrix, const Array& row);
void expect_product(const MatrixShape& shape, const Array& a, const Array& b, const Array& c);
void expect_optimizer_arrays(const OptimizerSettings& optimizer, const OptimizerArrays& arrays);

}  // namespace rehearse
