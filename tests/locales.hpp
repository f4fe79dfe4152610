// Builds locales with a decimal comma for one test.
#pragma once

#include <array>
#include <cstdlib>
#include <string>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

namespace rehearse::test {

// The Turkish locale also has different letters for "I" and "i".
inline constexpr std::array<const char*, 3> kCommaLocales = {"de_DE", "fr_FR", "tr_TR"};

// Builds a locale in the folder that LOCPATH must name. localedef and its sources are among the tools that
// this project needs (Debian: package locales).
inline void make_locale(const Scratch& scratch, const std::string& name) {
  const std::string errors = scratch.path("localedef");
  const std::string command = "localedef -i " + name + " -f UTF-8 --no-archive " +
                              scratch.path(name + ".UTF-8") + " >" + errors + " 2>&1";
  const int status = std::system(command.c_str());
  CAPTURE(command, read_file(errors));
  REQUIRE(status == 0);
}

// Returns the environment variables that run a program under a locale built by make_locale().
inline std::string under_locale(const Scratch& scratch, const std::string& name) {
  return "LOCPATH=" + scratch.path("") + " LC_ALL=" + name + ".UTF-8";
}

}  // namespace rehearse::test
