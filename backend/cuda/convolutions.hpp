// Convolutions by cuDNN. The library is loaded when it is asked for: nothing that we build needs it.
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
// Maps [samples, channels, height, width], filters [out, in, height, width]; gradients are like what they are
// gradients of.
struct ConvolutionArrays {
  Array x, w, y, workspace;
};

// On one stream, for one thread at a time. Algorithms are those that cuDNN's heuristics name first of those
// whose workspace has 1 GiB at most. Tensor cores compute in tf32, bf16 and fp16.
class Convolutions {
public:
  explicit Convolutions(CUstream_st* stream);  // RunError if cuDNN is not there
  ~Convolutions();
  Convolutions(const Convolutions&) = delete;
  Convolutions& operator=(const Convolutions&) = delete;

  std::string version() const;  // "9.19.0"
  // RunError, at each call, for what cuDNN refuses. Samples are rounded to a whole number.
  ConvolutionSizes sizes(const ConvolutionShape& shape, Precision precision);
  // Writes y, or the gradient of x or of w, as the shape's pass says.
  void run(const ConvolutionShape& shape, Precision precision, const ConvolutionArrays& arrays);

private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace rehearse
