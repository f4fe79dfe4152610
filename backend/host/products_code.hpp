// Defines the products for one instruction set. Each instruction set has one source file that includes this
// file, is compiled for these instructions, and renames Eigen's namespace beforehand. Otherwise the linker
// would keep a single copy of Eigen's functions, which the processor might not be able to run.
#pragma once

#ifndef Eigen
#error "Eigen needs a name for each set of instructions"
#endif

#include <Eigen/Core>

#include "backend/host/products.hpp"

namespace rehearse {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Operand = Eigen::Map<const Matrix>;

template <class Left, class Right>
void multiply_with(const HostProduct& p, const Left& a, const Right& b) {
  Eigen::Map<Matrix> c(p.c, p.m, p.n);
  if (p.beta == 0) {
    c.noalias() = p.alpha * a * b;
  } else {
    if (p.beta != 1) c *= p.beta;
    c.noalias() += p.alpha * a * b;
  }
}

// Each instruction set has its own copy. NOLINTNEXTLINE(misc-definitions-in-headers)
void multiply_all(const HostProduct& p) {
  const Operand a(p.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k);
  const Operand b(p.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n);
  if (p.transpose_a && p.transpose_b) {
    multiply_with(p, a.transpose(), b.transpose());
  } else if (p.transpose_a) {
    multiply_with(p, a.transpose(), b);
  } else if (p.transpose_b) {
    multiply_with(p, a, b.transpose());
  } else {
    multiply_with(p, a, b);
  }
}

}  // namespace
}  // namespace rehearse
