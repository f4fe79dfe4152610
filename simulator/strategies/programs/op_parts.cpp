#include "simulator/strategies/programs/op_parts.hpp"

#include <fmt/format.h>

#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

// A product with 1/`chunks` of the rows still reads all of its other operand.
void divide_rows(Kernel& kernel, int chunks) {
  if (kernel.kind == Kernel::Kind::gemm) {
    const double moved = kernel.m * kernel.k + kernel.k * kernel.n + kernel.m * kernel.n;
    kernel.m /= chunks;
    kernel.bytes *= (kernel.m * kernel.k + kernel.k * kernel.n + kernel.m * kernel.n) / moved;
  } else {
    kernel.bytes /= chunks;
  }
}

int part_work(StepPlan& plan, Pass pass, int first, int end, int chunks) {
  return shared_work(plan, {pass, first, end, -chunks}, [&] {
    Work work = pass_work(plan, pass, first, end);
    if (chunks == 1) return work;
    work.name += fmt::format(", one of {} chunks", chunks);
    for (Kernel& kernel : work.kernels) divide_rows(kernel, chunks);
    work.model_flops /= chunks;
    work.extra_flops /= chunks;
    return work;
  });
}

Action::Kind half(const Op& whole, Pass pass) {
  if (pass == whole.pass) return whole.action.kind;
  return pass == Pass::backward_input ? Action::Kind::backward_input : Action::Kind::backward_weight;
}

}  // namespace

Op part_of_op(StepPlan& plan, const Op& whole, Pass pass, int first, int end, int chunks) {
  Op op = whole;
  const std::string old_segments =
      ", " + segments_text(plan, whole.action.first_segment, whole.action.end_segment);
  std::string item = op.name.substr(kPassNames[static_cast<std::size_t>(whole.pass)].size());
  if (item.ends_with(old_segments)) item.resize(item.size() - old_segments.size());
  op.name = fmt::format("{}{}, {}", kPassNames[static_cast<std::size_t>(pass)], item,
                        segments_text(plan, first, end));
  op.pass = pass;
  op.first_layer = plan.walk.layer_of[static_cast<std::size_t>(first)];
  op.last_layer = plan.walk.layer_of[static_cast<std::size_t>(end) - 1];
  op.work = part_work(plan, pass, first, end, chunks);
  op.action.kind = half(whole, pass);
  op.action.first_segment = first;
  op.action.end_segment = end;
  return op;
}

Op chunk_of(Op op, int chunk, int chunks) {
  op.name += fmt::format(", chunk {} of {}", chunk + 1, chunks);
  op.collective.bytes.base /= chunks;
  if (chunk > 0) op.after.clear();
  return op;
}

}  // namespace rehearse
