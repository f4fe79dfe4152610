// The command line of `rehearse-run`. Exit status: 0 done; 1 the run failed; 2 the input is wrong.
#include <CLI/CLI.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

#include "backend/run_command.hpp"
#include "models/base/error.hpp"

namespace {

using namespace rehearse;

constexpr int kDone = 0, kRunFailed = 1, kInputWrong = 2;

int run(int argc, char** argv) {
  CLI::App app{"Rehearse's schedules on real machines: what `rehearse` predicts, carried out and measured."};
  app.set_version_flag("--version", "rehearse-run " REHEARSE_VERSION);
  app.require_subcommand(0, 1);

  RunArguments real;
  CLI::App* run = app.add_subcommand("run", "Carry out a scenario by real ranks and measure it");
  run->add_option("SCENARIO", real.scenario, "A scenario file; - for standard input")->required();
  run->add_option("--set", real.overrides, "Override a key of the scenario: key=value")
      ->take_all()
      ->allow_extra_args(false);
  run->add_option("--format", real.format, "text or json")
      ->check(CLI::IsMember(std::vector<std::string>{"text", "json"}));
  run->add_option("--trace", real.trace, "Write the record of the run (.json or .json.gz)");
  run->add_option("--transport", real.transport, "auto, mpi, tcp or local")
      ->check(CLI::IsMember(std::vector<std::string>{"auto", "mpi", "tcp", "local"}));
  run->add_flag("--check-replicas", real.check_replicas,
                "Compare what the ranks that hold the same layers learn, bit for bit");
  run->add_option("--patience", real.patience_s, "Seconds without progress after which a rank gives up")
      ->check(CLI::Range(0.1, 86400.0));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kInputWrong;
  }
  if (app.get_subcommands().empty()) {
    std::cerr << "A subcommand is required.\n\n" << app.help();
    return kInputWrong;
  }
  if (*run) run_run(real, std::cin, std::cout);
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const int status = run(argc, argv);
    errno = 0;
    if (!std::cout.flush()) {
      std::cerr << "rehearse-run: standard output cannot be written"
                << (errno != 0 ? std::string(": ") + std::strerror(errno) : "") << '\n';
      return kRunFailed;
    }
    return status;
  } catch (const InputError& error) {
    std::cerr << error.what() << '\n';
    return kInputWrong;
  } catch (const std::exception& error) {
    std::cerr << "rehearse-run: " << error.what() << '\n';
    return kRunFailed;
  }
}
