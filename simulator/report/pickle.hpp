// Writes values as Python's `pickle` reads them, in protocol 2 and with few of its operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

// Builds one value: a number, a text, or a list or dictionary of values. Between begin_list() and end_list()
// come its elements; between begin_dict() and end_dict() come a key and a value in turn.
class Pickle {
public:
  Pickle();
  void begin_list();
  void end_list();
  void begin_dict();
  void end_dict();
  void text(std::string_view text);  // bytes that are not UTF-8, and control characters, are escaped
  void integer(std::int64_t value);
  void boolean(bool value);
  // A key of a dictionary with its value.
  void item(std::string_view key, std::string_view value);
  void item(std::string_view key, std::int64_t value);

  std::string done();  // returns the file's bytes

private:
  // Readers take a list's elements in batches, because some hold a batch on a stack of limited size.
  struct Open {
    bool list = false;
    int elements = 0;  // since the batch began
  };
  void begin(bool list);
  void end();
  void element();  // makes room for another element of the innermost list
  void little_endian(std::uint64_t value, int bytes);

  std::string bytes_;
  std::vector<Open> open_;
  std::map<std::string, std::uint32_t, std::less<>> memo_;  // texts that were written, by their number
};

}  // namespace rehearse
