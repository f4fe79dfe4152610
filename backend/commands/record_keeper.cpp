#include "backend/commands/record_keeper.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iostream>

#include "backend/host/host_executor.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"
#include "simulator/report/wrap.hpp"

namespace rehearse {
namespace {

// Returns once the other end of the pipe is closed, which happens when its process ends for any reason.
void wait_for_end(int pipe) {
  char unused = 0;
  ssize_t n = 0;
  do n = read(pipe, &unused, 1);
  while (n > 0 || (n < 0 && errno == EINTR));
}

// Detaches the keeper, so that nobody who reads the ranks' standard output waits for it.
void leave_the_ranks() {
  setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE})
    std::signal(number, SIG_IGN);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  close(nothing);
}

}  // namespace

void RecordKeeper::start(const RunOutput& output, const Scenario& scenario, const Plan& plan,
                         const Measurement& measurement) {
  if (output.trace.empty()) return;
  auto journal = std::make_unique<Journal>(*plan.schedule, real_repeats(scenario, *plan.schedule));
  int ends[2];
  if (journal->name().empty() || pipe2(ends, O_CLOEXEC) != 0) return;
  std::cout.flush();
  const pid_t pid = fork();
  if (pid != 0) {
    close(ends[0]);  // the other end stays open as long as this process lives
    if (pid > 0) journal_ = std::move(journal);
    return;
  }
  close(ends[1]);
  leave_the_ranks();
  wait_for_end(ends[0]);
  if (journal->shared() && !journal->closed()) {
    Measurement own = measurement;
    own.processor = host_executor().arithmetic(1)->device_name();
    const std::string said = write_unfinished_run(output, scenario, plan, *journal, std::move(own),
                                                  "rank 0 was ended before it had the result");
    std::cerr << wrapped("rehearse-run: " + said) << '\n' << std::flush;
  }
  _exit(0);
}

Journal* RecordKeeper::share(Transport& transport, const Scenario& scenario, const Plan& plan) {
  const std::string name = broadcast(transport, journal_ ? journal_->name() : std::string());
  if (name.empty()) return nullptr;
  if (transport.rank() != 0) {
    try {
      journal_ = std::make_unique<Journal>(*plan.schedule, real_repeats(scenario, *plan.schedule), name);
    } catch (const RunError&) {
      // For example, this rank is on another machine.
    }
  }
  const std::vector<std::string> opened = all_gather(transport, journal_ ? "opened" : "");
  if (std::count(opened.begin(), opened.end(), "") > 0) return nullptr;
  if (transport.rank() == 0) journal_->share();
  return journal_.get();
}

}  // namespace rehearse
