#include "tests/adversary_support.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "models/text/error.hpp"
#include "tests/sanitized.hpp"

namespace rehearse::adversary {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::stoull(text) : fallback;
}

template <class Resource>
void limit(Resource resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(resource, &both);
}

void send(int file, const Verdict& verdict) {
  std::string bytes(1, static_cast<char>(verdict.kind));
  bytes += verdict.message;
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::write(file, bytes.data() + sent, bytes.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
}

std::string receive(int file) {
  std::string bytes;
  char block[4096];
  while (true) {
    const ssize_t n = ::read(file, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(n));
  }
}

}  // namespace

std::uint64_t first_seed() {
  // Under sanitizers, the scenario of seed 20260103 takes minutes.
  return from_environment("REHEARSE_SEED", testing::kSanitized ? 20260104 : 20260101);
}

int input_count(int inputs) {
  const int fallback = testing::kSanitized ? std::max(1, inputs / 40) : inputs;
  return static_cast<int>(from_environment("REHEARSE_INPUTS", static_cast<std::uint64_t>(fallback)));
}

std::string saved(std::uint64_t seed, const std::string& ending, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("rehearse-adversary-" + std::to_string(seed) + ending);
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

Verdict told(const std::function<Verdict()>& work) {
  try {
    return work();
  } catch (const InputError& error) {
    if (error.place().file.empty())
      return {Verdict::Kind::broken, std::string("names no file: ") + error.what()};
    return {Verdict::Kind::refused, error.what()};
  } catch (const RunError& error) {
    return {Verdict::Kind::failed, error.what()};
  } catch (const std::exception& error) {
    return {Verdict::Kind::broken, std::string("another exception: ") + error.what()};
  }
}

Verdict in_child(const std::function<Verdict()>& work, int seconds) {
  std::cout.flush();  // otherwise the child may write the buffered output as well
  std::fflush(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    close(ends[0]);
    for (const int s : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGTERM, SIGBUS}) std::signal(s, SIG_DFL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, static_cast<rlim_t>(seconds));
    if (!testing::kSanitized) limit(RLIMIT_AS, rlim_t{4} << 30);
    alarm(static_cast<unsigned>(20 * seconds));  // wall-clock limit, for a child that sleeps forever
    send(ends[1], told(work));
    _exit(0);
  }
  close(ends[1]);
  const std::string bytes = receive(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    return {Verdict::Kind::broken, std::string("ended by a signal: ") + strsignal(WTERMSIG(status))};
  if (bytes.empty()) return {Verdict::Kind::broken, "ended without a verdict"};
  return {static_cast<Verdict::Kind>(bytes[0]), bytes.substr(1)};
}

}  // namespace rehearse::adversary
