// Reads a TOML file strictly: every key must be known, every value in range, and every error has a position.
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

// The allowed values of a number. Bounds are inclusive, unless `above_min` excludes `min` itself. NaN and
// infinities are never allowed.
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

// One TOML table of a document. Reading a key marks it as known; finish() rejects keys that were not read. A
// section that is not in the file is empty: all its keys are absent. Every reading function throws InputError
// with the position, what was found and what is allowed.
class Section {
public:
  bool present() const;                       // the table itself is in the file (or in an override)
  bool has(std::string_view key) const;       // does not mark the key as known
  bool is_array(std::string_view key) const;  // these do not mark it either
  bool is_table(std::string_view key) const;
  std::vector<std::string> keys() const;             // in the order of the file
  const std::string& path() const { return path_; }  // e.g. "strategy.parameter_server"

  // A key without a fallback is required.
  double number(std::string_view key, Range range, std::optional<double> fallback = std::nullopt);
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max,
                       std::optional<std::int64_t> fallback = std::nullopt);
  bool boolean(std::string_view key, std::optional<bool> fallback = std::nullopt);
  std::string text(std::string_view key, std::optional<std::string> fallback = std::nullopt);
  // Reads one of `allowed`; returns its index.
  std::size_t choice(std::string_view key, std::span<const std::string_view> allowed,
                     std::optional<std::size_t> fallback = std::nullopt);
  // Read arrays; an absent key gives an empty vector.
  std::vector<double> numbers(std::string_view key, Range range);
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t min, std::int64_t max);
  std::vector<std::string> texts(std::string_view key);

  Section section(std::string_view key);                // a sub-table; empty if absent
  std::vector<Section> sections(std::string_view key);  // [[key]], an array of tables; empty if absent

  Place place() const;  // position of the table
  // Returns the position of the key's value, or of the table if the key is absent.
  Place place(std::string_view key) const;
  // Marks keys as known before they are read, so that none of them is taken for a misspelling of a missing
  // key.
  void expect(std::initializer_list<std::string_view> keys);
  // Throws if the table lacks `key`, which the value of `because` requires: "section.key is missing beside
  // BECAUSE = VALUE", at the position of that value.
  void require(std::string_view key, std::string_view because, const std::string& allowed) const;
  // The TOML table itself, for changes before it is read; nullptr if it is absent.
  TomlValue* tree() const;

  // Rejects the value of `key`: "file:line:col: section.key is FOUND; allowed: ALLOWED".
  [[noreturn]] void refuse(std::string_view key, const std::string& found, const std::string& allowed) const;
  // Rejects `key` because it has no meaning beside other keys: as refuse(), with an InapplicableKeyError.
  [[noreturn]] void refuse_inapplicable(
      std::string_view key, const std::string& found, const std::string& allowed,
      InapplicableKeyError::Ignored ignored = InapplicableKeyError::Ignored::always) const;
  // Rejects every key that was not read, with "did you mean" for the nearest known one. The readers of
  // sub-sections must finish those themselves.
  void finish();

private:
  friend class Document;
  Section(std::shared_ptr<DocumentState> state, const void* table, std::string path);
  // Reports the unknown key that is nearest to the missing `key`, if one is near enough.
  void refuse_misspelt(std::string_view key) const;
  [[noreturn]] void refuse_missing(std::string_view key, const std::string& allowed) const;
  [[noreturn]] void refuse_unknown(std::string_view key, const Place& place, bool is_section) const;
  std::shared_ptr<DocumentState> state_;
  const void* table_ = nullptr;
  std::string path_;
  std::shared_ptr<std::vector<std::string>> known_;
};

class Document {
public:
  // Rejects a missing file, a directory, more than 16 MiB, text that is not UTF-8, and invalid TOML.
  static Document parse_file(const std::string& path);
  static Document parse_text(std::string_view text, const std::string& file_name);
  // Sets "a.b.c=value", with the value in TOML; a bare word counts as a string. Creates missing tables on the
  // path. "cluster.slow[0].factor" addresses an element of an array of tables. Errors give the position
  // "--set ASSIGNMENT", or `given` if it is not null. Without a value ("a.b.c=") the key is removed, as if
  // the file did not have it.
  void set(std::string_view assignment, const Place* given = nullptr);
  // Adds the values of `defaults` whose keys are absent here, table by table, with their positions. Returns
  // the keys of `defaults` that have a different value here, as paths: "strategy.bucket_mb".
  std::vector<std::string> fill_in(const Document& defaults);
  // Returns every value with its path, in the order of the file: {"cluster.slow[0].factor", "0.5"}. Strings
  // have no quotes.
  std::vector<std::pair<std::string, std::string>> values() const;
  const TomlValue& tree() const;  // the complete document in its current state
  Document copy() const;          // copies of a Document share its state
  Section root();

private:
  std::shared_ptr<DocumentState> state_;
};

// Returns the position of an assignment on the command line: "--set training.micro_batch=2".
Place place_of(std::string_view option, std::string_view assignment);

// Reads the bytes of a file. Rejects a missing file, a directory (naming the allowed `kind`) and more than 16
// MiB.
std::string read_text_file(const std::string& path, const std::string& kind);

// Returns the known name nearest to `found` if it is near enough to be a typo (at most 2 edits, or a third of
// its length); empty otherwise.
std::string nearest_name(std::string_view found, std::span<const std::string> known);

// Returns the file of a preset, FOLDER/presets/NAME.toml ("topologies/devices" means
// topologies/presets/devices, and "topologies/prices" accordingly), where data_folder() finds that folder; ""
// if there is none, or if `name` is not a bare name ("..", "a/b").
std::string preset_path(std::string_view folder, std::string_view name);
std::vector<std::string> preset_names(std::string_view folder);  // sorted
std::string allowed_presets(std::string_view folder);            // data_folder.hpp: allowed_names()

}  // namespace rehearse
