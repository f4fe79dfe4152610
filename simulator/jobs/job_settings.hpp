// Holds a job file's settings as flat names and values, and turns them into keys of a scenario.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/toml_value.hpp"
#include "simulator/jobs/job_file.hpp"
#include "simulator/jobs/job_names.hpp"

namespace rehearse {

struct JobSetting {
  std::string name;   // "tensor-model-parallel-size", "zero_optimization.stage"
  std::string value;  // as in the file, without quotes; "true" for an argument without a value
  Place place;
};
using JobSettings = std::vector<JobSetting>;

// Flatten documents: names are paths with dots, elements of arrays are joined by commas
// (arrays in an array by semicolons).
JobSettings toml_settings(const TomlValue& root);
// Throws InputError with the line if the text is not JSON. Keys have the line where their name first appears
// behind that of their parent.
JobSettings json_settings(std::string_view text, const std::string& path);
bool reads_yaml();  // the build has libyaml-cpp
// Throws InputError with the line if the text is not YAML, or if the build cannot read it.
JobSettings yaml_settings(std::string_view text, const std::string& path);

// One reader's work on the settings: it asks for values by name, and sets keys.
class JobDraft {
public:
  // Refers to `settings`, so they must outlive the draft.
  JobDraft(JobFile& job, JobSettings&& settings, std::span<const JobName> names, std::string prefix) = delete;
  JobDraft(JobFile& job, const JobSettings& settings, std::span<const JobName> names, std::string prefix)
      : job_(job), settings_(settings), names_(names), prefix_(std::move(prefix)) {}

  // Sets the keys of all rows that need no other setting.
  void translate();
  // Adds the notes on settings that are unknown or cannot be modelled, and counts those that are ignored.
  void report();

  const JobSetting* find(std::string_view name) const;  // the last one; nullptr if absent, empty or "null"
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool on(std::string_view name, bool fallback = false) const;
  std::string text(std::string_view name, std::string_view fallback = "") const;
  // Refuses what is not a number from `least` on. "auto" counts as absent.
  double number(std::string_view name, double fallback, double least = 0) const;

  void set(std::string_view key, double value, std::string_view from = "");
  void set(std::string_view key, bool value, std::string_view from = "");
  void set_text(std::string_view key, std::string_view value, std::string_view from = "");
  void set_toml(std::string_view key, std::string value, std::string_view from = "");
  void note(std::string sentence) { job_.notes.push_back(std::move(sentence)); }
  void ask(std::string key, std::string why, std::string options);
  [[noreturn]] void refuse(const JobSetting& setting, const std::string& allowed) const;
  JobFile& job() { return job_; }

private:
  JobFile& job_;
  const JobSettings& settings_;
  std::span<const JobName> names_;
  std::string prefix_;  // of names in messages: "--"
};

// Returns whether a setting is switched off: "false", "no", "none", "0", "null" or nothing.
bool is_off(std::string_view value);

}  // namespace rehearse
