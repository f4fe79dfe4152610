// Reads a JSON file strictly: every error names the file, the place in it, what was found and what is
// allowed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rehearse {

// Returns the text of a file, unpacked if it is gzipped. Throws InputError for a missing file, a directory, a
// `kind` of more than 256 MiB, or gzip data that ends early or is damaged.
std::string read_packed_file(const std::string& path, const std::string& kind);
// Throws InputError if the text is not one JSON value.
nlohmann::json parse_json(std::string_view text, const std::string& file);
// Returns the object that the text is, or an empty object if the text is anything else.
nlohmann::json json_object_in(std::string_view text);
// For what processes pass to one another and files of results hold, a value on a line.
std::string json_line(const nlohmann::json& json);   // bytes that are not UTF-8 become U+FFFD
nlohmann::json json_in_line(std::string_view text);  // throws nlohmann::json::parse_error
bool is_json(std::string_view text);

// A value of the document, which must outlive it.
class JsonReader {
public:
  JsonReader(const nlohmann::json& value, const std::string& file, std::string path = "")
      : value_(value), file_(file), path_(std::move(path)) {}

  const nlohmann::json& value() const { return value_; }
  bool has(const char* key) const { return value_.is_object() && value_.contains(key); }
  JsonReader at(const char* key) const;  // refuses a missing key
  JsonReader item(std::size_t index) const;
  std::size_t size() const;  // of an array; refuses anything else
  void object() const;       // refuses anything else

  std::string text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  double number(double min, double max) const;
  std::size_t choice(std::span<const std::string_view> allowed) const;  // returns its index

  // Throws InputError: "file: traceEvents[3].args.op is FOUND; allowed: ALLOWED".
  [[noreturn]] void refuse(const std::string& found, const std::string& allowed) const;
  [[noreturn]] void refuse(const std::string& allowed) const;  // states what the value is

private:
  const nlohmann::json& value_;
  const std::string& file_;
  std::string path_;
};

}  // namespace rehearse
