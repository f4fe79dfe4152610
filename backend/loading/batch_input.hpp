// Carries out the ops that load a rank's batches: reads samples, holds the readers to the scenario's storage,
// and prepares the samples as long as the scenario says.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/loading/rate_queues.hpp"
#include "backend/loading/sample_source.hpp"
#include "backend/runtime/hardware.hpp"
#include "simulator/input/loading.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// Returns whether the program has ops that load batches.
bool loads_batches(const Program& program);

// Where a rank of the schedule reads.
struct BatchReader {
  int role_rank = 0, endpoint = 0;
  RateQueues* queues = nullptr;  // that it shares with the other readers; null: it has its own
  StorageReaders apart;          // without shared queues
};

// A prepared batch: rows of SampleSource::numbers() numbers.
struct PreparedBatch {
  std::vector<std::uint64_t> samples;
  std::vector<float> rows;
};

// Each stream of the program that loads batches is a worker: its thread reads and prepares one batch after
// the other, when the schedule's dependencies allow it. With LoaderKind::samples the stream starts threads
// that share the samples of a batch. Every batch has a place of its own in each part of its way (loaded,
// copied), and whoever takes it waits for the op that put it there; so places need no locks.
class BatchInput {
public:
  // `source`: null if there are no samples, and batches only take their time. `first_step`: optimizer steps
  // that were done before this run.
  BatchInput(const Scenario& scenario, const Schedule& schedule, const Program& program,
             const BatchReader& reader, std::shared_ptr<const SampleSource> source, long first_step);

  // Runs an op with Purpose::input.
  void carry_out(const OpCall& call);
  // Returns the batch that an op reads; null if it reads none. Only after the batch was copied.
  const PreparedBatch* batch_for(const OpCall& call) const;
  // Makes workers stop that wait for the storage or prepare.
  void stop() { stopped_ = true; }

  // On how batches were loaded; valid after all workers have ended.
  std::vector<std::string> notes() const;

private:
  // What one sample of a batch takes.
  struct OfSample {
    double bytes = 0;   // charged to the storage
    double read_s = 0;  // at least: operations, and the rate of a single reader
    double prepare_s = 0;
  };
  struct Slot {
    int number = -1;  // of the batch in a repetition
    bool copies = false;
  };
  void load(const OpCall& call, int number);
  void load_rows(const OfSample& each, std::size_t first, std::size_t stride, PreparedBatch& batch);
  double prepare(double seconds, double read_s) const;
  void wait_until(double time_s) const;
  void refuse_if_stopped() const;
  std::uint64_t batch_number(const OpCall& call, int number) const;
  OfSample of_sample(const Op& op) const;

  const Scenario& scenario_;
  const Program& program_;
  const Role& role_;
  const int role_rank_;
  const bool timed_;
  const BatchLoading loading_;
  const std::shared_ptr<const SampleSource> source_;
  std::unique_ptr<RateQueues> own_queues_;
  RateQueues* queues_;
  const StoragePath path_;
  std::vector<Slot> loads_or_copies_;  // by op
  std::vector<int> read_by_;           // by op: the batch that it reads; -1: none
  int batches_ = 0;                    // of a repetition
  int optimizer_steps_;
  std::uint64_t first_step_, data_rank_;
  std::size_t samples_;  // of a batch
  std::vector<PreparedBatch> loaded_, copied_;
  std::atomic<bool> stopped_ = false;
  mutable std::mutex figures_;
  double files_s_ = 0, held_s_ = 0,
         loads_ = 0;  // reading itself; waiting for the scenario's storage; batches
};

}  // namespace rehearse
