// Defines errors in the user's input: they state the position, what was found there and what is allowed.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace rehearse {

// A position in an input file. `line` and `column` count from 1; 0 means the file as a whole. An override
// from the command line has the file name "--set ASSIGNMENT" and no line.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
};

// The input is invalid: the program exits with status 2. what() is "file:line:column: message".
class InputError : public std::runtime_error {
public:
  InputError(Place place, const std::string& message);
  const Place& place() const { return place_; }

private:
  Place place_;
};

// An unknown key, whose value would have no effect.
class UnknownKeyError : public InputError {
public:
  using InputError::InputError;
};

// A key that has no meaning beside other keys: as if it were absent, everything else is valid. Readers that
// try several settings of one file leave it out.
class InapplicableKeyError : public InputError {
public:
  // always: the key refines something that is not used; if_changed: the key suits the file, but not what
  // overrides made of it (stage_layers for another number of stages).
  enum class Ignored { always, if_changed };

  InapplicableKeyError(const Place& place, std::string key_path, const std::string& message, Ignored ignored)
      : InputError(place, message), key_path_(std::move(key_path)), ignored_(ignored) {}
  const std::string& key_path() const { return key_path_; }  // "strategy.sequence_parallel"
  Ignored ignored() const { return ignored_; }

private:
  std::string key_path_;
  Ignored ignored_;
};

// The run itself failed (not the input): the program exits with status 1.
class RunError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearse
