// Reads a config.json of Hugging Face transformers. Errors state the file, the key, what was found and what
// is allowed. Keys that are never asked for are ignored, as the library does.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

class HuggingFaceConfig {
public:
  HuggingFaceConfig(std::string path, const std::string& text);

  bool has(std::string_view key) const;                    // also if it is null
  const nlohmann::json* find(std::string_view key) const;  // nullptr if it is absent or null
  HuggingFaceConfig object(std::string_view key) const;    // required; returns the nested config

  // All of these throw InputError if the value has the wrong type or is out of bounds. A key without a
  // fallback is required; null counts as absent, because the library's defaults usually replace it.
  double whole(std::string_view key, std::int64_t max, std::optional<double> fallback = std::nullopt,
               std::int64_t min = 1) const;
  // Returns 0 if the key is null ("none"), `absent` if it is missing.
  double whole_or_none(std::string_view key, std::int64_t max, double absent) const;
  double probability(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, const std::string& fallback) const;
  // Reads an array with one of `allowed` for each of `count` layers; returns their indices. Empty if the key
  // is absent.
  std::vector<std::size_t> choices(std::string_view key, std::size_t count,
                                   std::span<const std::string_view> allowed) const;
  std::vector<int> layers(std::string_view key, int count) const;  // numbers of layers; empty if absent
  // Returns the index of the value in `allowed`.
  std::size_t choice(std::string_view key, const nlohmann::json* value,
                     std::span<const std::string_view> allowed) const;

  // Throws InputError unless the boolean has the supported value `known`.
  void only(std::string_view key, bool known) const;
  void divides(std::string_view key, double value, std::string_view of, double whole) const;
  [[noreturn]] void refuse(std::string_view key, const std::string& found, const std::string& allowed) const;

private:
  HuggingFaceConfig(std::string path, std::string prefix, nlohmann::json json);
  [[noreturn]] void refuse_missing(std::string_view key, const std::string& allowed) const;
  [[noreturn]] void refuse_syntax(const std::string& text, std::size_t byte) const;

  std::string path_, prefix_;  // prefix: e.g. "text_config."
  nlohmann::json json_;
};

// Describes a value for an error message.
std::string describe(const nlohmann::json& value);

}  // namespace rehearse
