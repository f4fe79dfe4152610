#include "backend/runs/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"
#include "simulator/strategies/strategy.hpp"

namespace rehearse {
namespace {

// A file of which only the slices matter.
const SavedFile kAnyFile = {"", std::numeric_limits<std::uint64_t>::max() / 2, 0};

using SliceKey = std::tuple<StateKind, int, std::string, std::size_t>;
SliceKey key_of(const StateSlice& slice) {
  return {slice.kind, slice.layer, slice.place, slice.first};
}

// A rank's part of a checkpoint, as texts go between ranks.
Manifest part_of(const std::vector<StateSlice>& slices, const SavedFile& file) {
  Manifest part;
  part.files = {file};
  std::uint64_t offset = 0;
  for (const StateSlice& slice : slices) {
    part.slices.push_back({slice, 0, offset});
    offset += slice.count * sizeof(float);
  }
  return part;
}

constexpr const char* kStepsAtOnce = "steps after which data.loader repeats";
constexpr const char* kShuffle = "data.shuffle";

}  // namespace

TrainedWhat trained_what(const Scenario& scenario) {
  const Training& training = scenario.training;
  TrainedWhat what = {
      {"model", scenario.model.name},
      {"model's parameters", fmt::format("{:.0f}", parameter_count(scenario.model))},
      {"training.global_batch", fmt::format("{:.0f}", training.global_batch)},
      {"training.sequence_length", fmt::format("{:.0f}", training.sequence_length)},
      {"training.optimizer", std::string(kOptimizerNames[static_cast<std::size_t>(training.optimizer)])},
      {"training.precision", std::string(kPrecisionNames[static_cast<std::size_t>(training.precision)])},
      {"strategy.gradients", scenario.strategy.gradients},
      {"run.learning_rate", fmt::format("{}", scenario.run.learning_rate)},
      {"run.data", scenario.run.data},
      {"run.seed", fmt::format("{}", scenario.run.seed)}};
  // Checkpoints count repetitions of the schedule, which has several steps if batches are loaded far ahead.
  what[kStepsAtOnce] = fmt::format("{}", steps_in_schedule(scenario));
  what[kShuffle] = scenario.data.shuffle ? "true" : "false";
  return what;
}

void refuse_other_training(const FoundCheckpoint& found, const Scenario& scenario) {
  for (const auto& [key, value] : trained_what(scenario)) {
    const auto saved = found.manifest.what.find(key);
    // Checkpoints from before loaders lack what these would have changed.
    const std::string was = saved != found.manifest.what.end() ? saved->second
                            : key == kStepsAtOnce              ? "1"
                            : key == kShuffle                  ? "true"
                                                               : "missing";
    if (was != value)
      throw InputError(
          {}, fmt::format("{}: is of another training: {} is {} there, and {} in {}; allowed: the same, or "
                          "another folder of checkpoints",
                          found.folder, key, was, value, scenario.name));
  }
}

void load_checkpoint(const CheckpointPlan& plan, TrainState& state, Arithmetic& arithmetic) {
  for (const HeldState& held : state.held())
    arithmetic.copy_to_device(0, read_slice(plan.from, held.slice).data(), held.array);
  arithmetic.settle(0);
  state.restored(plan.first());
}

struct CheckpointKeeper::Parts {
  const CheckpointPlan& plan;
  const Scenario& scenario;
  Transport& transport;
  TrainState& state;
  Arithmetic& arithmetic;
  bool divided = false;
  std::vector<StateSlice> own;  // that this rank writes: of equal ones, the first rank does
  std::vector<float> numbers;
  std::thread writer;
  SavedFile written;
  std::exception_ptr failure;
  long pending = -1;  // the round of the checkpoint that is being written
  std::vector<double> held_back_s = {};

  void divide(const std::vector<HeldState>& held) {
    if (std::exchange(divided, true)) return;
    std::vector<StateSlice> all;
    for (const HeldState& one : held)
      if (!one.copy) all.push_back(one.slice);
    const std::vector<std::string> texts = gather(transport, to_text(part_of(all, kAnyFile)));
    std::string owners;
    if (transport.rank() == 0) owners = to_text(divided_among(texts));
    for (const SavedSlice& saved : from_text(broadcast(transport, owners), "rank 0's table of slices").slices)
      if (saved.file == transport.rank()) own.push_back(saved.slice);
  }

  // Returns who writes each slice: the first rank that has it or, if all shall write, the one that has least
  // to write.
  Manifest divided_among(const std::vector<std::string>& texts) const {
    std::map<SliceKey, std::pair<StateSlice, std::vector<int>>> holders;
    for (int rank = 0; rank < static_cast<int>(texts.size()); ++rank)
      for (const SavedSlice& saved :
           from_text(texts[static_cast<std::size_t>(rank)], "another rank's slices").slices) {
        auto& [slice, ranks] = holders[key_of(saved.slice)];
        slice = saved.slice;
        ranks.push_back(rank);
      }
    const bool evenly = scenario.checkpoint.writers == CheckpointWriters::all;
    std::vector<std::size_t> elements(texts.size(), 0);
    Manifest table;
    table.files.resize(texts.size(), kAnyFile);
    for (const auto& [key, held] : holders) {
      const auto& [slice, ranks] = held;
      const int writer = evenly ? *std::min_element(ranks.begin(), ranks.end(),
                                                    [&](int a, int b) {
                                                      return elements[static_cast<std::size_t>(a)] <
                                                             elements[static_cast<std::size_t>(b)];
                                                    })
                                : ranks.front();
      elements[static_cast<std::size_t>(writer)] += slice.count;
      table.slices.push_back({slice, writer, 0});
    }
    return table;
  }

  void copy(const std::vector<HeldState>& held) {
    numbers.clear();
    for (const StateSlice& slice : own)
      for (const HeldState& one : held) {
        if (one.copy || !(one.slice == slice)) continue;
        const std::size_t at = numbers.size();
        numbers.resize(at + slice.count);
        arithmetic.copy_to_host(0, one.array, numbers.data() + at);
        break;
      }
  }

  void write(long round) {
    try {
      written = write_rank_file(plan.folder, round, transport.rank(), numbers);
    } catch (...) {
      failure = std::current_exception();
    }
  }

  // All ranks call it.
  void complete() {
    if (pending < 0) return;
    if (writer.joinable()) writer.join();
    if (failure) std::rethrow_exception(failure);
    const std::vector<std::string> texts = gather(transport, to_text(part_of(own, written)));
    if (transport.rank() == 0) {
      Manifest manifest;
      manifest.round = pending;
      manifest.what = trained_what(scenario);
      for (const std::string& text : texts) {
        Manifest part = from_text(text, "another rank's file");
        for (SavedSlice& saved : part.slices) {
          saved.file = static_cast<int>(manifest.files.size());
          manifest.slices.push_back(std::move(saved));
        }
        manifest.files.push_back(part.files.front());
      }
      publish_checkpoint(plan.folder, manifest, plan.keep);
    }
    broadcast(transport, "");
    pending = -1;
  }

  void save(long round) {
    const double begin_s = monotonic_s();
    complete();
    const std::vector<HeldState> held = state.held();
    divide(held);
    copy(held);
    pending = round;
    if (plan.beside_training) {
      writer = std::thread([this, round] { write(round); });
    } else {
      write(round);
      complete();
    }
    held_back_s.push_back(monotonic_s() - begin_s);
  }
};

CheckpointKeeper::CheckpointKeeper(const CheckpointPlan& plan, const Scenario& scenario, Transport& transport,
                                   TrainState& state, Arithmetic& arithmetic)
    : parts_(new Parts{plan, scenario, transport, state, arithmetic}) {
  if (transport.rank() == 0) remove_incomplete(plan.folder);
}

CheckpointKeeper::~CheckpointKeeper() {
  if (parts_->writer.joinable()) parts_->writer.join();
}

void CheckpointKeeper::save(long round) {
  parts_->save(round);
}

void CheckpointKeeper::finish() {
  parts_->complete();
}

const std::vector<double>& CheckpointKeeper::held_back_s() const {
  return parts_->held_back_s;
}

}  // namespace rehearse
