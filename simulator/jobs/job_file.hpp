// Reads what training frameworks start jobs with as the keys of a scenario.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/document.hpp"

namespace rehearse {

struct JobKey {
  std::string key;     // "strategy.tensor"
  std::string value;   // in TOML
  Place place;         // of the setting in the job file
  std::string origin;  // the setting: "--tensor-model-parallel-size 8"
};

// A key that the job file leaves open, and options that give it.
struct JobQuestion {
  std::string key, why, options;
};

struct JobFile {
  std::string kind;  // "a launch script of Megatron-LM"
  std::string path;
  std::vector<JobKey> keys;
  std::vector<std::string> notes;  // complete sentences
  std::vector<JobQuestion> questions;
  // What becomes keys once the cluster is known; 0: not given. `accumulation` counts micro-batches that a
  // rank adds up for a step, `devices` those of the job, `replicas` groups of ranks that hold everything
  // once.
  double accumulation = 0, devices = 0, devices_per_node = 0, replicas = 0;
  double iterations = 0;                // optimizer steps of the training
  std::optional<bool> fuses_attention;  // chooses among the kernels that the device has
};

// Recognises a job file by its content and reads it. Returns nullopt for TOML that is no job file, such as a
// scenario. Throws InputError if a setting is wrong, or if the text is of a kind that is known but is no job
// that can be read: the message names the kind and the command to use. Nothing in a script is executed.
std::optional<JobFile> read_job(std::string_view text, const std::string& path);

// Returns whether a TOML document is a job's, and no scenario.
bool is_job_document(const TomlValue& root);

// Returns the keys as a document, with the places of the job file.
Document job_document(const JobFile& job);

// Completes a job's document, to which "--set" assignments were applied, by what follows from the cluster.
// Throws one InputError that names all keys that are missing.
void complete_job(JobFile& job, Document& document, const std::string& base_folder);

// Returns the sentences for the answer: what the file was read as, and what was left out.
std::vector<std::string> job_notes(const JobFile& job);

// Writes the completed document as a scenario file, with a comment behind each key that says where it is
// from.
std::string job_scenario_text(const JobFile& job, const Document& document);

}  // namespace rehearse
