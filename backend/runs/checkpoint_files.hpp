// Writes and reads checkpoints: a folder for each, with a file of every rank's numbers and a manifest. A
// checkpoint counts once its folder has its final name, which it gets when everything in it is on the disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/training/state_slice.hpp"

namespace rehearse {

// A slice in one of a checkpoint's files.
struct SavedSlice {
  StateSlice slice;
  int file = 0;
  std::uint64_t offset = 0;  // in bytes
};

struct SavedFile {
  std::string name;
  std::uint64_t bytes = 0, hash = 0;  // FNV-1a
};

// What has to be the same where a training continues: {"model", "gpt2"}, {"optimizer", "adam"}.
using TrainedWhat = std::map<std::string, std::string>;

struct Manifest {
  long round = 0;  // runs of the schedule that had been done
  TrainedWhat what;
  std::vector<SavedFile> files;
  std::vector<SavedSlice> slices;
};

// Writes a rank's file of the checkpoint of `round`, whose folder is created if it does not exist, and waits
// until it is on the disk. `numbers`: those of the slices, one after the other. Throws RunError if it cannot
// be written.
SavedFile write_rank_file(const std::string& folder, long round, int rank, const std::vector<float>& numbers);

// Completes the checkpoint of manifest.round, all files of which have been written: from now on it is found.
// Removes older ones but the `keep` newest. Throws RunError if it cannot be written.
void publish_checkpoint(const std::string& folder, const Manifest& manifest, int keep);

// Removes checkpoints that were never completed.
void remove_incomplete(const std::string& folder);

struct FoundCheckpoint {
  std::string folder;  // of the checkpoint itself; empty: there is none
  Manifest manifest;
  std::vector<std::string> damaged;  // why newer ones cannot be used
};
// Returns the newest complete checkpoint whose files have the sizes and hashes of its manifest. The folder
// need not exist.
FoundCheckpoint newest_checkpoint(const std::string& folder);

// Reads the numbers of `wanted` from the files of a checkpoint. Throws RunError if it lacks any of them.
std::vector<float> read_slice(const FoundCheckpoint& found, const StateSlice& wanted);

// Texts of slices and files, for manifests and between ranks. from_text() throws RunError if it is malformed.
std::string to_text(const Manifest& manifest);
Manifest from_text(std::string_view text, const std::string& name);

}  // namespace rehearse
