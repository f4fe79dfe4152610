// Kernels are counted as their implementations run them: each reads its operands and writes its results once.
#include "simulator/strategies/gradients/compression.hpp"

#include <fmt/format.h>

#include <cmath>

#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

constexpr double kHalf = 2;   // bytes of an fp16 element
constexpr double kIndex = 4;  // bytes of an index
constexpr double kScale = 4;  // bytes of a scale

// PyTorch, torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py, fp16_compress_hook: a cast, a
// division by the number of ranks, the sum in fp16, and a cast back.
CompressedSync fp16(double elements, double element) {
  CompressedSync sync;
  sync.parts = {
      {"cast", {memory_kernel((element + kHalf) * elements), memory_kernel(2 * kHalf * elements)}},
      {"all-reduce", {}, CollectiveKind::all_reduce, kHalf * elements},
      {"cast back", {memory_kernel((element + kHalf) * elements)}},
  };
  sync.buffer_bytes = kHalf * elements;
  return sync;
}

// Lin et al., "Deep Gradient Compression" (ICLR 2018): gradients that are not sent are added to the next
// step's gradients. The k largest are found exactly, by PyTorch's radix select
// (aten/src/ATen/native/cuda/TensorTopK.cu and pull request 71081: 8 bits per pass over all magnitudes, then
// one pass to gather). Every rank receives the pairs of all others and adds them up.
CompressedSync top_k(double elements, double element, double density, double n) {
  const double k = std::ceil(density * elements), pair = element + kIndex, all = element * elements;
  CompressedSync sync;
  SyncPart compress{"select", {}};
  compress.kernels.push_back(memory_kernel(3 * all));                 // gradients added to the residual
  compress.kernels.push_back(memory_kernel(2 * all));                 // magnitudes
  compress.kernels.push_back(memory_kernel(element * all, element));  // one pass for each of the key's bytes
  compress.kernels.push_back(memory_kernel(all + pair * k));
  compress.kernels.push_back(memory_kernel(pair * k));  // removes what is sent from the residual
  sync.parts = {
      compress,
      {"all-gather", {}, CollectiveKind::all_gather, n * k * pair},
      {"add up", {memory_kernel(all), memory_kernel(n * k * (pair + 2 * element))}},  // from zero
  };
  sync.error_bytes = all;
  sync.buffer_bytes = n * k * pair;
  return sync;
}

// Seide et al., "1-Bit Stochastic Gradient Descent" (Interspeech 2014); Tang et al., "1-bit Adam" (ICML
// 2021). This is the compressed all-reduce of the latter as DeepSpeed runs it
// (deepspeed/runtime/comm/nccl.py): every rank receives the signs of its share from all others, adds them up,
// and sends the signs of the sum to all. Both sides retain their errors. Every message includes a scale.
CompressedSync one_bit(double elements, double element, double n) {
  const double all = element * elements, share = all / n, signs = std::ceil(elements / (8 * n));
  // Adds the error, takes the norm, computes the new error, packs the signs.
  const auto pack = [&](double bytes, double packed) {
    return std::vector<Kernel>{memory_kernel(3 * bytes), memory_kernel(bytes), memory_kernel(2 * bytes),
                               memory_kernel(bytes + packed)};
  };
  CompressedSync sync;
  SyncPart add{"add up", {memory_kernel(n * signs + share)}};
  for (const Kernel& kernel : pack(share, signs)) add.kernels.push_back(kernel);
  sync.parts = {
      {"pack signs", pack(all, n * signs)},
      {"all-to-all", {}, CollectiveKind::all_to_all, signs + kScale},
      add,
      {"all-gather", {}, CollectiveKind::all_gather, n * (signs + kScale)},
      {"unpack", {memory_kernel(n * signs + all)}},
  };
  sync.error_bytes = all + share;
  sync.buffer_bytes = 2 * n * (signs + kScale);  // one buffer to send, one to receive
  return sync;
}

Kernel product(double m, double n, double k, double element) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::gemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.bytes = element * (m * k + k * n + m * n);
  return kernel;
}

// Vogels et al., "PowerSGD" (NeurIPS 2019), algorithms 1 and 2: approximates M + error by P Q^T. P = M Q is
// summed and orthogonalized, Q = M^T P is summed; vectors, and matrices that would not become smaller, are
// sent uncompressed together with P. For each column of P, Gram-Schmidt takes one kernel that scales it (two
// reads, one write) and one that removes it from the columns after it.
CompressedSync power_sgd(const std::vector<Matrix>& matrices, double elements, double element, double rank) {
  CompressedSync sync;
  double compressed = 0, rows = 0, columns = 0;
  SyncPart project{"project", {}}, turn{"orthogonalize", {}}, restore{"restore", {}};
  for (const Matrix& m : matrices) {
    if ((m.rows + m.columns) * rank >= m.rows * m.columns) continue;
    compressed += m.rows * m.columns;
    rows += m.rows;
    columns += m.columns;
    project.kernels.push_back(product(m.rows, rank, m.columns, element));
    const double column = element * m.rows;
    turn.kernels.push_back(memory_kernel((3 * rank + 3 * rank * (rank - 1) / 2) * column, 2 * rank));
    turn.kernels.push_back(product(m.columns, rank, m.rows, element));
    restore.kernels.push_back(product(m.rows, m.columns, rank, element));
  }
  const double all = element * compressed, rest = elements - compressed;
  project.kernels.insert(project.kernels.begin(), memory_kernel(3 * all));  // error added
  restore.kernels.push_back(memory_kernel(3 * all));                        // new error
  sync.parts = {project, {"all-reduce P", {}, CollectiveKind::all_reduce, element * (rank * rows + rest)}};
  if (compressed > 0) {
    sync.parts.push_back(turn);
    sync.parts.push_back({"all-reduce Q", {}, CollectiveKind::all_reduce, element * rank * columns});
  }
  sync.parts.push_back(restore);
  sync.error_bytes = all;
  sync.buffer_bytes = element * rank * (rows + columns);
  return sync;
}

// Returns the op of part number `number` of the sync.
Op part_op(StepPlan& plan, StageProgram& stage, const CompressedSync& sync, std::size_t number,
           const char* stream, std::size_t bucket) {
  const SyncPart& part = sync.parts[number];
  const std::string name = fmt::format("{} bucket {}", part.name, bucket);
  Op op;
  if (part.kernels.empty()) {
    op = collective_op(plan, stage.program, name, stream, part.kind, part.bytes);
  } else {
    Work work;
    work.name = name;
    work.kernels = part.kernels;
    work.precision = plan.scenario.training.gradient_precision;
    op = compute_op(plan, stage.program, name, Pass::gradient_sync, std::move(work));
    op.stream = stream_named(stage.program, stream);
  }
  op.action = {Action::Kind::compress, static_cast<int>(number)};
  op.first_layer = stage.buckets[bucket].first_layer;
  op.last_layer = stage.buckets[bucket].last_layer;
  return op;
}

}  // namespace

std::vector<Matrix> weight_matrices(const StepPlan& plan, int layer) {
  const LayerCost& cost = plan.layers[layer];
  std::vector<Matrix> matrices;
  double left = cost.parameters;
  // A tied output layer computes the gradient of a table that belongs to another layer.
  const auto add = [&](double rows, double columns) {
    if (rows * columns == 0 || rows * columns > left) return;
    matrices.push_back({rows, columns});
    left -= rows * columns;
  };
  const auto* transformer = std::get_if<Transformer>(&plan.scenario.model.shape);
  if (transformer && layer == 0) {
    add(transformer->vocabulary, transformer->table_width());
    for (const double rows : {transformer->position_rows(), transformer->token_types})
      add(rows, transformer->hidden);
  }
  for (const Kernel& kernel : cost.backward_weight)
    if (kernel.kind == Kernel::Kind::gemm || kernel.kind == Kernel::Kind::convolution)
      for (int i = 0; i < static_cast<int>(kernel.batch * kernel.count); ++i) add(kernel.m, kernel.n);
  return matrices;
}

CompressedSync compressed_sync(const CompressionChoice& choice, const StepPlan& plan, const Bucket& bucket,
                               int ranks) {
  const double element = element_bytes(plan.scenario.training.gradient_precision);
  switch (choice.kind) {
    case Compression::none:
      break;
    case Compression::fp16:
      return fp16(bucket.parameters, element);
    case Compression::top_k:
      return top_k(bucket.parameters, element, choice.density, ranks);
    case Compression::one_bit:
      return one_bit(bucket.parameters, element, ranks);
    case Compression::power_sgd: {
      std::vector<Matrix> matrices;
      for (int i = bucket.first_layer; i <= bucket.last_layer; ++i)
        for (const Matrix& m : weight_matrices(plan, i)) matrices.push_back(m);
      return power_sgd(matrices, bucket.parameters, element, choice.rank);
    }
  }
  return {{{"all-reduce", {}, CollectiveKind::all_reduce, gradient_bytes(plan, bucket)}}, 0, 0};
}

void write_compression(StepPlan& plan, StageProgram& stage, const CompressedSync& sync, std::size_t bucket) {
  Op op = part_op(plan, stage, sync, 0, "compute", bucket);
  op.reads = op.writes = {stage.gradients[bucket]};
  const auto add = [&](TensorKind kind, const char* name, double bytes) {
    if (bytes == 0) return;
    Tensor tensor;
    tensor.kind = kind;
    tensor.name = fmt::format("{} {}", name, bucket);
    tensor.first_layer = op.first_layer;
    tensor.last_layer = op.last_layer;
    tensor.type = plan.scenario.training.gradient_precision;
    tensor.bytes = bytes;
    op.writes.push_back(add_tensor(stage.program, std::move(tensor)));
  };
  add(TensorKind::buffer, "compressed gradients", sync.buffer_bytes);
  add(TensorKind::gradient, "error feedback", sync.error_bytes);
  stage.backward_of_bucket[bucket] = add_op(stage.program, std::move(op));
}

void write_compressed_sync(StepPlan& plan, StageProgram& stage, const CompressedSync& sync,
                           std::size_t bucket, std::vector<Dependency> after) {
  const int compressed = stage.backward_of_bucket[bucket];
  const std::vector<int> tensors = stage.program.ops[compressed].writes;  // gradients, buffers, error
  for (std::size_t i = 1; i < sync.parts.size(); ++i) {
    Op op = part_op(plan, stage, sync, i, "gradients", bucket);
    if (i == 1) op.after = std::move(after);  // NOLINT(bugprone-use-after-move): only once
    op.reads = op.writes = tensors;
    add_op(stage.program, std::move(op));
  }
}

}  // namespace rehearse
