#include "backend/training/replay.hpp"

#include <algorithm>
#include <cmath>

#include "models/text/error.hpp"

namespace rehearse {

Replayed ReplayPart::work(double element_bytes) const {
  const double times = static_cast<double>(launches);
  if (!is_product()) return {0, times * 2 * 4 * static_cast<double>(elements)};
  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
               k = static_cast<double>(shape.k), products = times * static_cast<double>(batch);
  return {2 * m * n * k * products, element_bytes * (m * k + k * n + m * n) * products};
}

std::size_t ReplayPart::scratch_elements() const {
  if (!is_product()) return 2 * elements;
  const auto of = [](long rows, long columns) { return static_cast<std::size_t>(rows * columns); };
  return static_cast<std::size_t>(batch) *
         (of(shape.m, shape.k) + of(shape.k, shape.n) + of(shape.m, shape.n));
}

ReplayPlan plan_replay(const Kernel& kernel, std::size_t scratch_elements) {
  if (kernel.kind == Kernel::Kind::fixed)
    throw RunError(
        "the model is a profile of measured times, which cannot be computed (allowed: run.compute = "
        "\"timed\")");
  const auto whole = [](double number) { return std::max(1L, std::lround(number)); };
  ReplayPlan plan;
  if (kernel.kind == Kernel::Kind::memory) {
    // Half of the bytes are read, half are written.
    const auto elements = static_cast<std::size_t>(std::llround(kernel.count * kernel.bytes / 8));
    const std::size_t most = std::max<std::size_t>(1, scratch_elements / 2);
    // Treats all `count` kernels as one stream of equal launches, each as large as one kernel or the scratch
    // memory.
    const auto each =
        std::clamp<std::size_t>(static_cast<std::size_t>(std::llround(kernel.bytes / 8)), 1, most);
    plan.main.elements = each;
    plan.main.launches = static_cast<long>(elements / each);
    plan.rest.elements = elements % each;
    plan.rest.launches = plan.rest.elements > 0 ? 1 : 0;
    return plan;
  }
  plan.main.shape = plan.rest.shape = {whole(kernel.m), whole(kernel.n), whole(kernel.k)};
  plan.main.batch = 1;
  const long fitting = std::max(1L, static_cast<long>(scratch_elements / plan.main.scratch_elements()));
  const long batch = whole(kernel.batch), count = whole(kernel.count);
  plan.main.batch = std::min(batch, fitting);
  plan.main.launches = count * (batch / plan.main.batch);
  plan.rest.batch = batch % plan.main.batch;
  plan.rest.launches = plan.rest.batch > 0 ? count : 0;
  return plan;
}

}  // namespace rehearse
