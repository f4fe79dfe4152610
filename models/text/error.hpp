// Errors in what the user gave us: they name the place, what was found there and what is allowed.
#pragma once

#include <stdexcept>
#include <string>

namespace rehearse {

// A place in an input file. `line` and `column` count from 1; 0 means "the file as a whole".
// An override from the command line has the file name "--set" and no line.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
};

// The input is wrong: the program ends with exit status 2.
// what() is "file:line:column: message".
class InputError : public std::runtime_error {
public:
  InputError(Place place, const std::string& message);
  const Place& place() const { return place_; }

private:
  Place place_;
};

// A key that nobody knows: what stands at it makes no difference.
class UnknownKeyError : public InputError {
public:
  using InputError::InputError;
};

// The run itself failed (not the input): the program ends with exit status 1.
class RunError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearse
