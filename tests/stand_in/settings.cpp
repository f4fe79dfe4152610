#include "tests/stand_in/settings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

namespace stand_in {
namespace {

constexpr int kViolation = 86;

double number(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::atof(text);
}

std::string text(const char* name) {
  const char* found = std::getenv(name);
  return found == nullptr ? "" : found;
}

Settings read_settings() {
  Settings s;
  s.gpus = static_cast<int>(number("STAND_IN_GPUS", 1));
  s.delay_us = number("STAND_IN_DELAY_US", 0);
  s.seed = static_cast<std::uint64_t>(number("STAND_IN_SEED", 0));
  s.memory_bytes = static_cast<std::size_t>(number("STAND_IN_MEMORY_MB", 8192) * (1 << 20));
  // CUDA Programming Guide, "Environment Variables": 1 to 32, 8 by default.
  s.queues = std::clamp(static_cast<int>(number("CUDA_DEVICE_MAX_CONNECTIONS", 8)), 1, 32);
  s.report = text("STAND_IN_REPORT");
  std::istringstream fault(text("STAND_IN_FAULT"));
  fault >> s.fault >> s.fault_member >> s.fault_number;
  return s;
}

std::mutex counts_mutex;
Counts counts;

void write_report() {
  if (settings().report.empty()) return;
  const int file = open(settings().report.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::lock_guard lock(counts_mutex);
  const std::string line =
      fmt::format("allocations={} streams={} events={} cublas_handles={} communicators={} graphs={}\n",
                  counts.allocations, counts.streams, counts.events, counts.cublas_handles,
                  counts.communicators, counts.graphs);
  (void)!write(file, line.data(), line.size());
  close(file);
}

}  // namespace

const Settings& settings() {
  static const Settings once = [] {
    Settings s = read_settings();
    if (!s.report.empty()) std::atexit(write_report);
    return s;
  }();
  return once;
}

void violation(const std::string& what) {
  std::fprintf(stderr, "GPU stand-in: %s\n", what.c_str());
  std::fflush(stderr);
  _exit(kViolation);
}

}  // namespace stand_in

// Forked ranks end by calling this, which skips atexit() handlers.
extern "C" void _exit(int status) {
  stand_in::write_report();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

namespace stand_in {

void delay() {
  const Settings& s = settings();
  if (s.delay_us <= 0) return;
  static std::atomic<std::uint64_t> threads{0};
  thread_local std::mt19937_64 random(s.seed * 0x9E3779B97F4A7C15u + 1000 * static_cast<unsigned>(getpid()) +
                                      threads++);
  // Half of all operations begin at once, a few others much later.
  const double draw = std::uniform_real_distribution<>(0, 1)(random);
  if (draw < 0.5) return;
  const double share = 2 * draw - 1;
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(s.delay_us * share * share * share));
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void count(long Counts::*what, long change) {
  const std::lock_guard lock(counts_mutex);
  counts.*what += change;
}

}  // namespace stand_in
