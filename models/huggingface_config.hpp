// A config.json of Hugging Face transformers being read: errors name the file, the key, what was found and
// what is allowed. Keys that nobody asks for are passed over, as the library does.
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

  bool has(std::string_view key) const;                    // null counts
  const nlohmann::json* find(std::string_view key) const;  // nullptr if it is absent or null
  HuggingFaceConfig object(std::string_view key) const;    // required: a config inside this one

  // All are InputErrors if the value is not of the kind named, or beyond its bounds. A key without a fallback
  // is required; null is as absent, since most of the library's defaults take its place.
  double whole(std::string_view key, std::int64_t max, std::optional<double> fallback = std::nullopt,
               std::int64_t min = 1) const;
  // 0 where the key is null ("none"), `absent` where it is not there at all.
  double whole_or_none(std::string_view key, std::int64_t max, double absent) const;
  double probability(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, const std::string& fallback) const;
  // An array with one of `allowed` for each of `count` layers; indices. Empty if the key is absent.
  std::vector<std::size_t> choices(std::string_view key, std::size_t count,
                                   std::span<const std::string_view> allowed) const;
  std::vector<int> layers(std::string_view key, int count) const;  // numbers of layers; empty if absent
  // One of `allowed`; its index.
  std::size_t choice(std::string_view key, const nlohmann::json* value,
                     std::span<const std::string_view> allowed) const;

  void only(std::string_view key, bool known) const;  // refuses the boolean that has no shape here
  void divides(std::string_view key, double value, std::string_view of, double whole) const;
  [[noreturn]] void refuse(std::string_view key, const std::string& found, const std::string& allowed) const;

private:
  HuggingFaceConfig(std::string path, std::string prefix, nlohmann::json json);
  [[noreturn]] void refuse_missing(std::string_view key, const std::string& allowed) const;
  [[noreturn]] void refuse_syntax(const std::string& text, std::size_t byte) const;

  std::string path_, prefix_;  // prefix: "text_config."
  nlohmann::json json_;
};

// What an error says was found.
std::string describe(const nlohmann::json& value);

}  // namespace rehearse
