// Tests errors for wrong command lines: what was found, what is allowed, and what was probably meant.
#include <string>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;

TEST_CASE("a wrong argument is named, and the nearest right one") {
  struct Case {
    const char* arguments;
    const char* said;
  };
  for (const Case& one : {
           Case{"simulat x",
                "unknown subcommand \"simulat\"; did you mean \"simulate\"?; allowed: simulate, compare, "
                "list, show, validate, collective, sweep, kernel, profile, plan, jobs, launch, "
                "convert, completion\n"},
           Case{"frobnicate", "unknown subcommand \"frobnicate\"; allowed: simulate, "},
           Case{"simulate a.toml b c", "simulate: unexpected arguments \"b\" \"c\"\n"},
           Case{"list models clusters", "list: unexpected argument \"clusters\"\n"},
           Case{"simulate a.toml --fromat json",
                "simulate: unknown option \"--fromat\"; did you mean \"--format\"?; allowed: --help, --set, "
                "--format, "
                "--trace, --memory, --memory-trace, --no-fold, --strict, --uncertainty, --advice, "
                "--progress\n"},
           Case{"simulate a.toml --fromat=json",
                "simulate: unknown option \"--fromat\"; did you mean \"--format\"?"},
           Case{"--vresion",
                "unknown option \"--vresion\"; did you mean \"--version\"?; allowed: --help, --version\n"},
           Case{"simulate a.toml --format jsn",
                "--format: is \"jsn\"; allowed: text, json, csv; did you mean \"json\"?"},
           Case{"list modls",
                "WHAT: is \"modls\"; allowed: models, clusters, devices, strategies, frameworks, inputs; did "
                "you mean "
                "\"models\"?"},
       }) {
    CAPTURE(one.arguments);
    const Outcome run = run_rehearse(one.arguments);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CAPTURE(run.err);
    CHECK(run.err.rfind(one.said, 0) == 0);
  }
}

TEST_CASE("no arguments print the help") {
  const Outcome run = run_rehearse("");
  CHECK(run.status == 2);
  CHECK(run.out.empty());
  CHECK(run.err.find("A subcommand is required.\n") == 0);
  CHECK(run_rehearse("--help").status == 0);
  CHECK(run_rehearse("simulate --help").status == 0);
}
