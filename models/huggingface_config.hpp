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

// A `key` can be several names, separated by "|": the first counts that the file has and that is not null. A
// name with dots is inside nested objects ("ffn_config.moe_top_k"). Errors state the name that counts, or the
// first.
class HuggingFaceConfig {
public:
  // `text` may have Python's Infinity, -Infinity and NaN, which are read as texts of that name.
  HuggingFaceConfig(std::string path, const std::string& text);

  bool has(std::string_view key) const;                    // also if it is null
  const nlohmann::json* find(std::string_view key) const;  // nullptr if it is absent or null
  std::string name(std::string_view key) const;            // the name that counts
  HuggingFaceConfig object(std::string_view key) const;    // required; returns the nested config
  std::vector<std::string> keys() const;                   // those that are not null, false, 0 or empty
  const std::string& path() const { return path_; }

  // All of these throw InputError if the value has the wrong type or is out of bounds. A key without a
  // fallback is required; null counts as absent, because the library's defaults usually replace it.
  double whole(std::string_view key, std::int64_t max, std::optional<double> fallback = std::nullopt,
               std::int64_t min = 1) const;
  // The same, but takes an array with the same integer for all layers, too.
  double whole_of_all(std::string_view key, std::int64_t max, std::optional<double> fallback = std::nullopt,
                      std::int64_t min = 1) const;
  // Returns 0 if the key is null ("none"), `absent` if it is missing.
  double whole_or_none(std::string_view key, std::int64_t max, double absent) const;
  double number(std::string_view key, double min, double max, double fallback) const;
  double probability(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, const std::string& fallback) const;
  // Reads an array with one of `allowed` for each of `count` layers; returns their indices. Empty if the key
  // is absent.
  std::vector<std::size_t> choices(std::string_view key, std::size_t count,
                                   std::span<const std::string_view> allowed) const;
  // Reads an array of 0 and 1, or false and true, for each of `count` layers; empty if the key is absent.
  std::vector<bool> flags(std::string_view key, std::size_t count) const;
  std::vector<int> layers(std::string_view key, int count) const;  // numbers of layers; empty if absent
  // Returns the index of the value in `allowed`.
  std::size_t choice(std::string_view key, const nlohmann::json* value,
                     std::span<const std::string_view> allowed) const;

  void divides(std::string_view key, double value, std::string_view of, double whole) const;
  [[noreturn]] void refuse(std::string_view key, const std::string& found, const std::string& allowed) const;
  [[noreturn]] void refuse_missing(std::string_view key, const std::string& allowed) const;

private:
  HuggingFaceConfig(std::string path, std::string prefix, nlohmann::json json);

  std::string path_, prefix_;  // prefix: e.g. "text_config."
  nlohmann::json json_;
};

// Describes a value for an error message.
std::string describe(const nlohmann::json& value);

}  // namespace rehearse
