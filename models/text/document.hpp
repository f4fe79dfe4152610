// A TOML file being read strictly: every key must be known, every value in range, every error has a place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/error.hpp"

namespace rehearse {

// What a number may be. Bounds are included unless `above_min` says that `min` itself is not allowed.
// NaN and infinities are never allowed.
struct Range {
  double min = 0;
  double max = 1e18;
  bool above_min = false;
};
inline constexpr Range kPositive{0, 1e18, true};
inline constexpr Range kNotNegative{0, 1e18, false};
inline constexpr Range kFraction{0, 1, true};

struct DocumentState;
struct TomlValue;

// One table of a document. Reading a key marks it as known; finish() refuses what nobody asked for.
// A section that stands nowhere in the file is empty: all its keys are absent.
// Every reader throws InputError naming the place, what was found and what is allowed.
class Section {
public:
  bool present() const;                       // the table itself stands in the file (or in an override)
  bool has(std::string_view key) const;       // does not mark the key as known
  bool is_array(std::string_view key) const;  // neither do these
  bool is_table(std::string_view key) const;
  std::vector<std::string> keys() const;             // in the order of the file
  const std::string& path() const { return path_; }  // "strategy.parameter_server"

  // Without a fallback the key is required.
  double number(std::string_view key, Range range, std::optional<double> fallback = std::nullopt);
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max,
                       std::optional<std::int64_t> fallback = std::nullopt);
  bool boolean(std::string_view key, std::optional<bool> fallback = std::nullopt);
  std::string text(std::string_view key, std::optional<std::string> fallback = std::nullopt);
  // One of `allowed`; returns its index.
  std::size_t choice(std::string_view key, std::span<const std::string_view> allowed,
                     std::optional<std::size_t> fallback = std::nullopt);
  // Arrays; an absent key gives an empty vector.
  std::vector<double> numbers(std::string_view key, Range range);
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t min, std::int64_t max);
  std::vector<std::string> texts(std::string_view key);

  Section section(std::string_view key);                // a sub-table, empty if absent
  std::vector<Section> sections(std::string_view key);  // [[key]], an array of tables; empty if absent

  Place place() const;                      // of the table
  Place place(std::string_view key) const;  // of the key's value, or of the table if the key is absent
  // Marks keys as known before they are read, so that none of them is taken for a misspelling of a missing
  // one.
  void expect(std::initializer_list<std::string_view> keys);
  // Refuses a table without `key`, which the value of `because` requires: "section.key is missing beside
  // BECAUSE = VALUE", at the place of that value.
  void require(std::string_view key, std::string_view because, const std::string& allowed) const;
  // The table itself, to be changed before it is read; nullptr if it is absent.
  TomlValue* tree() const;

  // Refuses the value of `key`: "file:line:col: section.key is FOUND; allowed: ALLOWED".
  [[noreturn]] void refuse(std::string_view key, const std::string& found, const std::string& allowed) const;
  // Refuses every key that no reader asked for, with "did you mean" for the nearest known one.
  // Sub-sections are finished one by one by their own readers.
  void finish();

private:
  friend class Document;
  Section(std::shared_ptr<DocumentState> state, const void* table, std::string path);
  // Refuses the unknown key that is nearest to the missing `key`, if one is near enough.
  void refuse_misspelt(std::string_view key) const;
  [[noreturn]] void refuse_missing(std::string_view key, const std::string& allowed) const;
  std::shared_ptr<DocumentState> state_;
  const void* table_ = nullptr;
  std::string path_;
  std::shared_ptr<std::vector<std::string>> known_;
};

class Document {
public:
  // Refuses: a missing file, a directory, more than 16 MiB, text that is not UTF-8, broken TOML.
  static Document parse_file(const std::string& path);
  static Document parse_text(std::string_view text, const std::string& file_name);
  // "a.b.c=value", the value in TOML; a bare word counts as a string. Creates tables on the way.
  // An element of an array of tables is "cluster.slow[0].factor".
  // Errors name the place "--set ASSIGNMENT", or `place` if it is given.
  void set(std::string_view assignment, const Place* place = nullptr);
  // Takes over the values of `defaults` whose keys are absent here, table by table, with their own places.
  // Returns the keys of `defaults` that have another value here, as paths: "strategy.bucket_mb".
  std::vector<std::string> fill_in(const Document& defaults);
  // Every value with its path, in the order of the file: {"cluster.slow[0].factor", "0.5"}. Strings stand
  // without quotes.
  std::vector<std::pair<std::string, std::string>> values() const;
  const TomlValue& tree() const;  // all of it, as it stands now
  Section root();

private:
  std::shared_ptr<DocumentState> state_;
};

// The bytes of a file. Refuses a missing file, a directory (naming the `kind` allowed) and more than 16 MiB.
std::string read_text_file(const std::string& path, const std::string& kind);

// The known name nearest to `found`, if it is near enough to be a slip of the finger (at most 2 edits, or a
// third of its length); empty otherwise.
std::string nearest_name(std::string_view found, std::span<const std::string> known);

// The file of a preset, FOLDER/presets/NAME.toml ("topologies/devices" stands for
// topologies/presets/devices, "topologies/prices" likewise); "" if there is none, or if `name` is not a bare
// name ("..", "a/b"). FOLDER is looked for in $REHEARSE_DATA if that is set, else in share/rehearse beside
// the binary, else in the source tree, else in the install prefix.
std::string preset_path(std::string_view folder, std::string_view name);
std::vector<std::string> preset_names(std::string_view folder);  // sorted

}  // namespace rehearse
