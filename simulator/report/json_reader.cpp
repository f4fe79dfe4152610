#include "simulator/report/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/text/error.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/report/packed_file.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kMostUnpackedBytes = std::size_t{256} << 20;  // unpacked
constexpr std::size_t kShown = 60;                                  // characters of a refused value

}  // namespace

std::string read_packed_file(const std::string& path, const std::string& kind) {
  PackedFile file(path, kind);
  std::string text;
  std::vector<char> buffer(1u << 16);
  while (const std::size_t n = file.read(buffer.data(), buffer.size())) {
    text.append(buffer.data(), n);
    if (text.size() > kMostUnpackedBytes)
      throw InputError({path, 0, 0}, "is larger than 256 MiB; allowed: a " + kind + " of at most 256 MiB");
  }
  return text;
}

nlohmann::json parse_json(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw InputError({file, 0, 0}, "is empty; allowed: JSON");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t at = std::min(text.size(), error.byte > 0 ? error.byte - 1 : 0);
    const std::string_view before = text.substr(0, at);
    const auto line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    const auto column = static_cast<int>(at - (before.rfind('\n') + 1)) + 1;
    throw InputError({file, line, column},
                     at >= text.size() ? "the JSON ends too early" : "not JSON from here on");
  } catch (const nlohmann::json::out_of_range&) {
    throw InputError({file, 0, 0}, "holds a number that is too large for a double");
  }
}

nlohmann::json json_object_in(std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return nlohmann::json::object();
  return json;
}

std::string json_line(const nlohmann::json& json) {
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

nlohmann::json json_in_line(std::string_view text) {
  return nlohmann::json::parse(text);
}

bool is_json(std::string_view text) {
  return !nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false).is_discarded();
}

JsonReader JsonReader::at(const char* key) const {
  object();
  const auto it = value_.find(key);
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (it == value_.end()) throw InputError({file_, 0, 0}, path + " is missing");
  return {*it, file_, path};
}

JsonReader JsonReader::item(std::size_t index) const {
  return {value_.at(index), file_, fmt::format("{}[{}]", path_, index)};
}

std::size_t JsonReader::size() const {
  if (!value_.is_array()) refuse("an array");
  return value_.size();
}

void JsonReader::object() const {
  if (!value_.is_object()) refuse("an object");
}

std::string JsonReader::text() const {
  if (!value_.is_string()) refuse("a string");
  return value_.get<std::string>();
}

bool JsonReader::boolean() const {
  if (!value_.is_boolean()) refuse("true or false");
  return value_.get<bool>();
}

std::int64_t JsonReader::integer(std::int64_t min, std::int64_t max) const {
  const auto allowed = [&] { return fmt::format("an integer from {} to {}", min, max); };
  if (!value_.is_number_integer()) refuse(allowed());
  const bool too_large = value_.is_number_unsigned() && value_.get<std::uint64_t>() > INT64_MAX;
  const std::int64_t number = too_large ? 0 : value_.get<std::int64_t>();
  if (too_large || number < min || number > max) refuse(allowed());
  return number;
}

double JsonReader::number(double min, double max) const {
  const double number = value_.is_number() ? value_.get<double>() : 0;
  if (!value_.is_number() || !(number >= min && number <= max))
    refuse(fmt::format("a number from {} to {}", min, max));
  return number;
}

std::size_t JsonReader::choice(std::span<const std::string_view> allowed) const {
  std::string names;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (value_.is_string() && value_.get_ref<const std::string&>() == allowed[i]) return i;
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", allowed[i]);
  }
  refuse(names);
}

void JsonReader::refuse(const std::string& found, const std::string& allowed) const {
  throw InputError({file_, 0, 0},
                   fmt::format("{} is {}; allowed: {}", path_.empty() ? "the file" : path_, found, allowed));
}

void JsonReader::refuse(const std::string& allowed) const {
  if (value_.is_object()) refuse("an object", allowed);
  if (value_.is_array()) refuse("an array", allowed);
  if (value_.is_string()) refuse(in_quotes(value_.get_ref<const std::string&>()), allowed);
  refuse(value_.dump().substr(0, kShown), allowed);
}

}  // namespace rehearse
