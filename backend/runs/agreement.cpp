#include "backend/runs/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"
#include "models/text/text_hash.hpp"
#include "models/text/toml_table.hpp"
#include "models/text/toml_text.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kMostKeys = 4;  // that a message names

// Returns the value at a path of keys, as text.
std::string value_at(const TomlValue& root, const std::string& path) {
  const TomlValue* value = &root;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const TomlEntry* entry = find_entry(*value, path.substr(begin, end - begin));
    if (!entry) return "not set";
    value = &entry->value;
    begin = end + 1;
  }
  return toml_value_text(*value);
}

std::string packed_intent(const RankIntent& intent) {
  return intent.version + '\0' + intent.options + '\0' + intent.scenario;
}

RankIntent unpacked_intent(const std::string& text) {
  const std::size_t first = text.find('\0'), second = text.find('\0', first + 1);
  if (second == std::string::npos) throw RunError("a rank of another kind of program has joined");
  return {text.substr(0, first), text.substr(second + 1), text.substr(first + 1, second - first - 1)};
}

}  // namespace

std::string difference(const RankIntent& first, const RankIntent& other, int rank) {
  const auto differs = [&](const std::string& what, const std::string& its, const std::string& of_first) {
    return fmt::format("{} is {} at rank {} and {} at rank 0", what, its, rank, of_first);
  };
  if (first.version != other.version)
    return differs("the version of rehearse-run", other.version, first.version);
  if (first.options != other.options)
    return differs("the command's options", other.options.empty() ? "none" : other.options,
                   first.options.empty() ? "none" : first.options);
  if (first.scenario == other.scenario) return "";
  const TomlValue of_first = parse_toml(first.scenario, "rank 0's scenario"),
                  its = parse_toml(other.scenario, fmt::format("rank {}'s scenario", rank));
  std::set<std::string> keys;
  for (const std::string& key : changed_keys(of_first, its)) keys.insert(key);
  for (const std::string& key : changed_keys(its, of_first)) keys.insert(key);
  std::string all;
  std::size_t told = 0;
  for (const std::string& key : keys) {
    if (++told > kMostKeys) break;
    all += (all.empty() ? "" : ", ") + differs(key, value_at(its, key), value_at(of_first, key));
  }
  if (keys.size() > kMostKeys) all += fmt::format(", and {} more keys", keys.size() - kMostKeys);
  return all;
}

void agree(Transport& transport, const RankIntent& own) {
  const std::string packed = packed_intent(own);
  TextHash hash;
  hash.add(packed);
  const std::vector<std::string> hashes = gather(transport, hash.hex());
  const bool same = std::count(hashes.begin(), hashes.end(), hash.hex()) == transport.ranks();
  if (broadcast(transport, same ? "same" : "different") == "same") return;
  const std::vector<std::string> intents = gather(transport, packed);
  std::string found;
  for (std::size_t rank = 1; rank < intents.size() && found.empty(); ++rank)
    found = difference(own, unpacked_intent(intents[rank]), static_cast<int>(rank));
  const std::string told = broadcast(transport, found);  // empty: only written differently
  if (told.empty()) return;
  throw DifferentScenarios({},
                           fmt::format("the ranks have different scenarios: {}; allowed: the same scenario, "
                                       "overrides and program on all ranks",
                                       told));
}

}  // namespace rehearse
