// What the environment asks of the stand-in, and how it tells of what a program did wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stand_in {

// All of them from the environment, read once.
struct Settings {
  int gpus = 1;                          // STAND_IN_GPUS: devices of this machine; 0: none
  double delay_us = 0;                   // STAND_IN_DELAY_US: before each operation, at random up to this
  std::uint64_t seed = 0;                // STAND_IN_SEED: of the delays
  std::size_t memory_bytes = 8u << 30u;  // STAND_IN_MEMORY_MB: of each device
  int queues = 8;                        // CUDA_DEVICE_MAX_CONNECTIONS: streams beyond them share one
  std::string report;  // STAND_IN_REPORT: at its end each process adds its line to this file
  // STAND_IN_FAULT: "hang RANK N": RANK's Nth NCCL operation does not end; "die RANK N": the process of RANK
  // is killed at its Nth. RANK counts the processes by their member number in the first communicator.
  std::string fault;
  int fault_member = -1;
  long fault_number = 0;
};
const Settings& settings();

// The program broke a rule of CUDA, cuBLAS or NCCL: says which on standard error and ends the process with
// status 86, so that no test passes by accident.
[[noreturn]] void violation(const std::string& what);

// Waits at random up to settings().delay_us, differently for each thread and seed.
void delay();

double now_s();  // of the monotonic clock

// Live objects; all of them zero at the end of a program that releases what it takes.
struct Counts {
  long allocations = 0, streams = 0, events = 0, cublas_handles = 0, communicators = 0, graphs = 0;
};
void count(long Counts::*what, long change);

}  // namespace stand_in
