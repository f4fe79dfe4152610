// Compiles the implementation of Catch2, which in Catch2 2 is part of the header, once for all test programs.
#define CATCH_CONFIG_RUNNER
#include "tests/catch_session.hpp"

#include "tests/catch.hpp"

int run_tests(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
