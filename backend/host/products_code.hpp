// The products of one set of instructions: included by one source for each, which is compiled for these
// instructions and gives Eigen's namespace a name of its own before. Otherwise the linker would keep one copy
// of Eigen's functions for all, which a processor may not be able to run.
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
