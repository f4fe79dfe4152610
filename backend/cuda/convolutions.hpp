// Computes convolutions with cuDNN. The library is loaded on first use, so that our programs run without it.
#pragma once

#include <memory>
#include <string>

#include "backend/training/arithmetic.hpp"

struct CUstream_st;  // cudaStream_t points to it

namespace rehearse {

struct ConvolutionSizes {
  std::size_t x = 0, w = 0, y = 0;  // elements of the input, the filters and the output
  std::size_t workspace = 0;        // bytes
};
// Maps are [samples, channels, height, width], filters [out, in, height, width]. A gradient has the layout of
// the array that it belongs to.
struct ConvolutionArrays {
  Array x, w, y, workspace;
};

// Convolutions on one stream, for one thread at a time. Uses the first algorithm that cuDNN's heuristics list
// with a workspace of at most 1 GiB, and tensor cores in tf32, bf16 and fp16.
class Convolutions {
public:
  explicit Convolutions(CUstream_st* stream);  // throws RunError if cuDNN is missing
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;
  Convolutions& operator=(const Convolutions&) = delete;

  std::string version() const;  // "9.19.0"
  // Throws RunError, at every call, if cuDNN refuses the shape. Rounds the samples to a whole number.
  ConvolutionSizes sizes(const ConvolutionShape& shape, Precision precision);
  // Writes y or, depending on the shape's pass, the gradient of x or of w.
  void run(const ConvolutionShape& shape, Precision precision, const ConvolutionArrays& arrays);

private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace rehearse
