// Declares where the samples of a training come from: made from a seed, or read from files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

// A sample is a row of numbers: a label and the features behind it, or the tokens of a sequence and its last
// label. Samples are numbered through all epochs.
class SampleSource {
public:
  virtual ~SampleSource() = default;
  virtual std::size_t numbers() const = 0;  // of a sample
  // Writes numbers [first, first + count) of a sample. Several threads may call it at a time. Throws
  // InputError, with the place in the file, if the sample cannot be read or does not fit the model.
  virtual void read(std::uint64_t sample, std::size_t first, std::size_t count, float* to) const = 0;
  virtual double stored_bytes() const { return 0; }              // of a sample in its file; 0: it is in none
  virtual std::vector<std::string> notes() const { return {}; }  // on what was read so far
};

}  // namespace rehearse
