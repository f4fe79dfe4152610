#include "simulator/input/batch_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulator/schedule/program_edit.hpp"

namespace rehearse {
namespace {

int add_input(Program& program, const std::string& stream, Op op) {
  op.stream = stream_named(program, stream);
  op.pass = Pass::data;
  op.purpose = Purpose::input;
  return add_op(program, std::move(op));
}

bool loads(const Op& op) {
  return op.purpose == Purpose::input && op.host_action == HostAction::load_batch;
}
bool copies(const Op& op) {
  return op.purpose == Purpose::input && op.host_action == HostAction::copy_to_device;
}

}  // namespace

std::vector<BatchOps> batches_of(const Program& program) {
  std::vector<BatchOps> batches;
  int last = -1;
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    const Op& op = program.ops[static_cast<std::size_t>(i)];
    if (loads(op)) batches.push_back({i, -1, -1, last});
    if (copies(op)) batches.back().copy = i;
    for (const int tensor : op.reads)
      if (!batches.empty() && program.tensors[static_cast<std::size_t>(tensor)].kind == TensorKind::batch)
        batches.back().read = i;
    if (op.stream == 0) last = i;
  }
  return batches;
}

LoadedBatch load_batch(Program& program, const BatchLoader& loader, int microbatch) {
  const BatchLoading& loading = loader.loading;
  Op op;
  op.name = "load batch";
  op.microbatch = microbatch;
  op.host_action = HostAction::load_batch;
  if (loading.reads()) {
    op.kind = OpKind::exchange;
    Message message;
    message.direction = Message::Direction::receive;
    message.peer = Peer::member(storage_role(0), loader.storage_of);
    message.bytes = loader.read;
    message.access = {true, loader.on_network, loading.most_bytes_per_s()};
    op.messages.push_back(std::move(message));
  } else {
    op.kind = OpKind::host;
    op.seconds = loading.prepare_s;
  }
  Op copy;
  copy.name = "copy batch";
  copy.kind = OpKind::host;
  copy.microbatch = microbatch;
  copy.host_action = HostAction::copy_to_device;
  if (loader.copies) copy.host_bytes = loading.device_bytes;
  copy.after = {{add_input(program, "loader", std::move(op))}};

  Tensor place;
  place.kind = TensorKind::batch;
  place.name = "batch";
  place.bytes = loading.device_bytes;
  const auto known = std::find_if(program.tensors.begin(), program.tensors.end(),
                                  [](const Tensor& tensor) { return tensor.kind == TensorKind::batch; });
  const int tensor = static_cast<int>(known - program.tensors.begin());
  if (known == program.tensors.end()) program.tensors.push_back(std::move(place));
  copy.writes = {tensor};
  return {add_input(program, "input", std::move(copy)), tensor};
}

void connect_batches(Program& program, const BatchLoader& loader) {
  const std::vector<BatchOps> batches = batches_of(program);
  const auto count = static_cast<int>(batches.size());
  if (count == 0) return;
  // Batch `number` waits for an op of the one `distance` before it, which may be of the previous repetition.
  const auto wait = [&](int op, int number, int distance, int BatchOps::*member) {
    const int earlier = number - distance;
    const int other = batches[static_cast<std::size_t>(earlier >= 0 ? earlier : earlier + count)].*member;
    program.ops[static_cast<std::size_t>(op)].after.push_back({other, earlier >= 0 ? 0 : 1});
  };
  const int streams = loader.loading.streams, places = loader.loader.device_batches;
  const int batch_tensor = program.ops[static_cast<std::size_t>(batches.front().copy)].writes.front();
  std::vector<int> tensors = {batch_tensor},
                   workers = {program.ops[static_cast<std::size_t>(batches.front().load)].stream};
  for (int place = 1; place < places; ++place) {
    tensors.push_back(static_cast<int>(program.tensors.size()));
    program.tensors.push_back(program.tensors[static_cast<std::size_t>(batch_tensor)]);
  }
  for (int place = 0; places > 1 && place < places; ++place)
    program.tensors[static_cast<std::size_t>(tensors[static_cast<std::size_t>(place)])].name =
        fmt::format("batch {}", place);
  if (streams > 1) program.streams[static_cast<std::size_t>(workers.front())] = "loader 1";
  for (int worker = 1; worker < streams; ++worker)
    workers.push_back(stream_named(program, fmt::format("loader {}", worker + 1)));

  for (int number = 0; number < count; ++number) {
    const BatchOps& its = batches[static_cast<std::size_t>(number)];
    Op& load = program.ops[static_cast<std::size_t>(its.load)];
    load.stream = workers[static_cast<std::size_t>(number % streams)];
    load.name = fmt::format("load batch {}", number);
    program.ops[static_cast<std::size_t>(its.copy)].name = fmt::format("copy batch {}", number);
    wait(its.load, number, loader.loading.in_flight, &BatchOps::copy);
    wait(its.copy, number, places, &BatchOps::read);
    if (loader.loader.workers == 0) {  // the training process loads when it has nothing else to do
      if (its.before >= 0)
        load.after.push_back({its.before, 0});
      else if (const int last = last_op_of_stream(program, 0); last >= 0)
        load.after.push_back({last, 1});
    }
    const int tensor = tensors[static_cast<std::size_t>(number % places)];
    program.ops[static_cast<std::size_t>(its.copy)].writes = {tensor};
    std::vector<int>& reads = program.ops[static_cast<std::size_t>(its.read)].reads;
    std::replace(reads.begin(), reads.end(), batch_tensor, tensor);
  }
}

void repeat_ops(Program& program, int times) {
  const auto once = static_cast<int>(program.ops.size()), tensors = static_cast<int>(program.tensors.size());
  program.ops.reserve(static_cast<std::size_t>(once) * static_cast<std::size_t>(times));
  // By tensor of the program: that of the current copy. What lives only in a repetition is another tensor in
  // each.
  std::vector<int> here(static_cast<std::size_t>(tensors));
  for (int copy = 1; copy < times; ++copy) {
    for (int t = 0; t < tensors; ++t) {
      const Tensor tensor = program.tensors[static_cast<std::size_t>(t)];
      here[static_cast<std::size_t>(t)] = t;
      if (tensor.persistent() || tensor.kind == TensorKind::batch) continue;
      here[static_cast<std::size_t>(t)] = static_cast<int>(program.tensors.size());
      program.tensors.push_back(tensor);
    }
    for (int i = 0; i < once; ++i) {
      Op op = program.ops[static_cast<std::size_t>(i)];
      for (Dependency& on : op.after) {
        on.op += once * (copy - on.steps_back);
        on.steps_back = 0;
      }
      for (std::vector<int>* uses : {&op.reads, &op.writes})
        for (int& tensor : *uses) tensor = here[static_cast<std::size_t>(tensor)];
      program.ops.push_back(std::move(op));
    }
  }
  for (int i = 0; i < once; ++i)
    for (Dependency& on : program.ops[static_cast<std::size_t>(i)].after)
      if (on.steps_back > 0) on.op += once * (times - 1);
}

}  // namespace rehearse
