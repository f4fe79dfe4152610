// Declares the stand-in's settings, read from the environment, and how it reports errors of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stand_in {

// All settings, read from the environment once.
struct Settings {
  int gpus = 1;            // STAND_IN_GPUS: devices of this machine; 0: none
  double delay_us = 0;     // STAND_IN_DELAY_US: upper limit of the random delay before each operation
  std::uint64_t seed = 0;  // STAND_IN_SEED: seed of the delays
  std::size_t memory_bytes = 8u << 30u;  // STAND_IN_MEMORY_MB: memory of each device
  int queues = 8;      // CUDA_DEVICE_MAX_CONNECTIONS: hardware queues; further streams share them
  std::string report;  // STAND_IN_REPORT: each process appends a line to this file when it ends
  // STAND_IN_FAULT: "hang RANK N": RANK's Nth NCCL operation does not end; "die RANK N": RANK's process is
  // killed at its Nth operation. RANK is the process's member number in its first communicator.
  std::string fault;
  int fault_member = -1;
  long fault_number = 0;
};
const Settings& settings();

// Reports that the program broke a rule of CUDA, cuBLAS or NCCL: prints `what` to standard error and ends the
// process with status 86, so that no test passes by accident.
[[noreturn]] void violation(const std::string& what);

// Waits for a random time of up to settings().delay_us, different for each thread and seed.
void delay();

double now_s();  // seconds of the monotonic clock

// Numbers of live objects; all zero at the end of a program that releases everything it acquires.
struct Counts {
  long allocations = 0, streams = 0, events = 0, cublas_handles = 0, communicators = 0, graphs = 0;
};
void count(long Counts::*what, long change);

}  // namespace stand_in
