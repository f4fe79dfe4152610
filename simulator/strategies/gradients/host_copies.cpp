#include "simulator/strategies/gradients/host_copies.hpp"

#include <fmt/format.h>

#include "simulator/costs/memory.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/pass_tensors.hpp"

namespace rehearse {

HostCopies::HostCopies(StepPlan& plan, StageProgram& stage, int zero)
    : plan_(plan),
      stage_(stage),
      offload_(plan.scenario.strategy.offload),
      zero_(zero),
      overlaps_(plan.scenario.strategy.overlap),
      last_copy_(stage.buckets.size(), -1),
      fetched_(stage.buckets.size(), -1) {
  const auto lies = [&](int tensor, TensorMemory memory) {
    if (tensor >= 0) stage_.program.tensors[static_cast<std::size_t>(tensor)].memory = memory;
  };
  const StateBytes bytes = state_bytes(plan_.scenario.training.optimizer, plan_.scenario.training.precision,
                                       plan_.scenario.training.gradient_precision);
  for (std::size_t b = 0; b < stage_.buckets.size(); ++b) {
    lies(stage_.weights[b], memory_of(offload_.parameters));
    if (zero_ >= 2) lies(stage_.gradients[b], TensorMemory::host);
    host_gradients_.push_back(stage_.gradients[b]);
    if (zero_ >= 2 || stage_.gradients[b] < 0) continue;
    Tensor copy = stage_.program.tensors[static_cast<std::size_t>(stage_.gradients[b])];
    copy.name += " in host memory";
    copy.memory = TensorMemory::host;
    copy.shards = stage_.held.optimizer;
    copy.bytes = kept_parameters(plan_, stage_.buckets[b], copy.shards) * bytes.gradient;
    host_gradients_[b] = add_tensor(stage_.program, std::move(copy));
  }
}

double HostCopies::shard_bytes(std::size_t b) const {
  return kept_parameters(plan_, stage_.buckets[b], stage_.held.optimizer) *
         element_bytes(plan_.scenario.training.gradient_precision);
}

Op HostCopies::gradient_copy(std::string name, std::size_t b, HostAction action) {
  const bool to_host = action == HostAction::copy_to_host;
  Op op = host_op(stage_.program, std::move(name),
                  overlaps_ ? to_host ? kToHostStream : kToDeviceStream : "compute", action,
                  stage_.buckets[b], shard_bytes(b));
  op.pass = Pass::gradient_sync;
  return op;
}

int HostCopies::fetch_sum(const PassItem& item, std::size_t b, int complete) {
  if (last_copy_[b] < 0) return -1;
  Op fetch = gradient_copy(bucket_text("copy gradients back", item, stage_.buckets[b]), b,
                           HostAction::copy_to_device);
  fetched_[b] = add_buffer(stage_.program, bucket_text("sum of gradients before", item, stage_.buckets[b]),
                           shard_bytes(b));
  fetch.microbatch = item.microbatch;
  fetch.after = {{complete}, {last_copy_[b]}};
  fetch.reads = {stage_.gradients[b]};
  fetch.writes = {fetched_[b]};
  return add_op(stage_.program, std::move(fetch));
}

void HostCopies::copy_gradients(const PassItem& item, std::size_t b, int sum, int of_pass,
                                const std::vector<Dependency>& after) {
  Op copy = gradient_copy(bucket_text("copy gradients to host", item, stage_.buckets[b]), b,
                          HostAction::copy_to_host);
  copy.microbatch = item.microbatch;
  copy.after = after;
  copy.reads = {sum};
  if (sum != of_pass) copy.reads.push_back(of_pass);
  if (fetched_[b] >= 0) copy.reads.push_back(fetched_[b]);
  copy.writes = {stage_.gradients[b]};
  if (item.microbatch == plan_.scenario.microbatches - 1 && holds_tied_embedding(plan_, stage_, b)) {
    tied_sum_ = sum;
    tied_copy_ = std::move(copy);
    return;
  }
  copies_.push_back(last_copy_[b] = add_op(stage_.program, std::move(copy)));
}

void HostCopies::copy_remaining(int tied) {
  if (tied_copy_) {
    Op& sum = stage_.program.ops[static_cast<std::size_t>(tied)];
    sum.reads = sum.writes = {tied_sum_};
    tied_copy_->after.push_back({tied});
    copies_.push_back(add_op(stage_.program, *std::move(tied_copy_)));
  }
  for (std::size_t b = 0; zero_ == 1 && b < stage_.buckets.size(); ++b) {
    if (stage_.buckets[b].parameters == 0) continue;
    Op copy = gradient_copy(fmt::format("copy gradients to host, {}", layers_text(stage_.buckets[b])), b,
                            HostAction::copy_to_host);
    copy.after = {{stage_.backward_of_bucket[b]}};
    if (holds_tied_embedding(plan_, stage_, b)) copy.after.push_back({tied});
    copy.reads = {stage_.gradients[b]};
    copy.writes = {host_gradients_[b]};
    copies_.push_back(add_op(stage_.program, std::move(copy)));
  }
}

int HostCopies::update(std::vector<int>& updated) {
  HostUpdate update = write_host_update(plan_, stage_, host_gradients_, copies_.back());
  Op wait = marker(plan_, stage_, "wait for the host's update");
  wait.pass = Pass::optimizer;
  for (const int last : update.last) wait.after.push_back({last});
  for (const int send : stage_.sends) wait.after.push_back({send});
  updated = std::move(update.updated);
  return add_op(stage_.program, std::move(wait));
}

HostCopies::Fetched HostCopies::fetch_weights(const PassItem& item, std::size_t b, int behind,
                                              std::vector<int> writes) {
  const Bucket& bucket = stage_.buckets[b];
  const double bytes =
      kept_parameters(plan_, bucket, stage_.held.weights) * element_bytes(plan_.scenario.training.precision);
  const auto write = [&](Op op, int reads, std::vector<int> its_writes) {
    op.microbatch = item.microbatch;
    op.reads = {reads};
    op.writes = std::move(its_writes);
    return add_op(stage_.program, std::move(op));
  };
  Fetched fetched;
  int source = stage_.weights[b];
  if (offload_.parameters == OffloadTo::nvme) {
    const int staged =
        add_host_buffer(stage_.program, bucket_text("weights read for", item, stage_.buckets[b]), bytes);
    Op read = host_op(stage_.program, bucket_text("read weights", item, stage_.buckets[b]), kNvmeReadStream,
                      HostAction::read_nvme, bucket, bytes);
    if (behind >= 0) read.after = {{behind}};
    fetched.first = fetched.last = write(std::move(read), source, {staged});
    source = staged;
  }
  Op copy = host_op(stage_.program, bucket_text("copy weights to device", item, stage_.buckets[b]),
                    overlaps_ ? kToDeviceStream : "compute", HostAction::copy_to_device, bucket, bytes);
  if (fetched.last >= 0)
    copy.after = {{fetched.last}};
  else if (behind >= 0)
    copy.after = {{behind}};
  fetched.last = write(std::move(copy), source, std::move(writes));
  if (fetched.first < 0) fetched.first = fetched.last;
  return fetched;
}

}  // namespace rehearse
