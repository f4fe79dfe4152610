// Contains Catch2's own code if that is only a header (Catch2 2), so that it is compiled once for all programs.
#define CATCH_CONFIG_RUNNER
#include "tests/catch_session.hpp"

#include "tests/catch.hpp"

int run_tests(int argc, char** argv) { return Catch::Session().run(argc, argv); }
