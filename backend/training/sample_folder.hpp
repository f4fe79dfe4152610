// Reads samples from a folder of files that hold one or several samples each.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/loading/sample_source.hpp"

namespace rehearse {

// The folder has a file index.toml, which says what a sample is:
//
//   type             of its numbers, little-endian: float32, uint8, uint16 or uint32
//   numbers          of a sample: a label and its features, or the tokens of a sequence and its last label
//   samples          of all files together
//   scale            by which features (not labels or tokens) are multiplied (1)
//   padding_bytes    behind the numbers of each sample; they are read, but not used (0)
//   files            in this order (all other files of the folder, by name)
//
// Every file is a whole number of samples, one behind the other, and nothing else.
class SampleFolder : public SampleSource {
public:
  // Each epoch has the samples in another order, which depends on the seed alone; or, not shuffled, in that
  // of the files. Throws InputError, with the file and the place in it, for a malformed index and for files
  // that are missing, empty or truncated.
  SampleFolder(const std::string& folder, std::uint64_t seed, bool shuffle);

  bool has_tokens() const { return type_ == Type::uint16 || type_ == Type::uint32; }
  std::uint64_t samples() const { return first_.back(); }
  std::size_t numbers() const override { return numbers_; }
  void read(std::uint64_t sample, std::size_t first, std::size_t count, float* to) const override;
  double stored_bytes() const override { return static_cast<double>(sample_bytes_); }
  std::vector<std::string> notes() const override;

  // Returns where a sample is, for messages: "train.bin: sample 3 (at byte 120)". Samples are numbered
  // through all epochs.
  std::string place_of(std::uint64_t sample) const;

private:
  enum class Type { float32, uint8, uint16, uint32 };
  struct At {
    std::size_t file = 0;
    std::uint64_t sample = 0;  // of the file
  };
  At at(std::uint64_t sample) const;
  void read_index();
  void add_files(std::vector<std::string> names);
  void read_bytes(const At& from, std::size_t offset, std::size_t bytes, std::byte* to) const;
  [[noreturn]] void refuse(const std::string& file, const std::string& what) const;

  std::string folder_;
  std::uint64_t seed_;
  bool shuffle_;
  Type type_ = Type::float32;
  std::size_t numbers_ = 0, number_bytes_ = 4, sample_bytes_ = 0;
  float scale_ = 1;
  std::vector<std::string> files_;
  std::vector<std::uint64_t> first_;  // by file: its first sample; then the number of all samples
  // How many bytes were read, and how many of them were in the page cache, as far as the system tells.
  mutable std::atomic<std::uint64_t> told_bytes_ = 0, cached_bytes_ = 0;
};

}  // namespace rehearse
