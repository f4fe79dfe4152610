#include "backend/cuda/training_kernels.hpp"

#include <algorithm>

#include "backend/cuda/launch.hpp"
#include "backend/cuda/loss_code.hpp"

namespace rehearse::kernels {
namespace {

using device::Half;
using device::kThreads;
using device::kWarp;

// Calls `with` with a pointer to the elements of the array, in their type.
template <class With>
void typed(const Array& array, With&& with) {
  switch (array.precision) {
    case Precision::fp32:
    case Precision::tf32:
      return with(elements<float>(array));
    case Precision::bf16:
      return with(elements<Bfloat16>(array));
    case Precision::fp16:
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::nvfp4:
      break;
  }
  throw RunError("no kernels for " + std::string(name_of(array.precision)) + " (allowed: fp32, tf32, bf16)");
}

template <Optimizer kind>
void update_as(Stream stream, const StepConstants& constants, const OptimizerArrays& a) {
  const std::size_t n = a.weights.elements;
  typed(a.weights, [&](auto* weights) {
    typed(a.gradient, [&](auto* gradient) {
      using Weight = std::remove_pointer_t<decltype(weights)>;
      using Gradient = std::remove_pointer_t<decltype(gradient)>;
      device::update<kind, Weight, Gradient><<<blocks_for(n), kThreads, 0, stream>>>(
          n, constants, weights, elements<float>(a.master), gradient, elements<float>(a.momentum),
          elements<float>(a.second_moment));
    });
  });
}

}  // namespace

void convert(Stream stream, const Array& from, const Array& to) {
  typed(from, [&](auto* source) {
    typed(to, [&](auto* target) {
      device::convert<<<blocks_for(to.elements), kThreads, 0, stream>>>(to.elements, source, target);
    });
  });
  check_launch("convert");
}

void add_bias(Stream stream, const Array& y, const Array& bias, bool activate) {
  typed(y, [&](auto* result) {
    typed(bias, [&](auto* row) {
      device::add_bias<<<blocks_for(y.elements), kThreads, 0, stream>>>(y.elements, bias.elements, result,
                                                                        row, activate);
    });
  });
  check_launch("add_bias");
}

void activation_backward(Stream stream, const Array& output, const Array& gradient) {
  typed(output, [&](auto* y) {
    typed(gradient, [&](auto* dy) {
      device::activation_backward<<<blocks_for(output.elements), kThreads, 0, stream>>>(output.elements, y,
                                                                                        dy);
    });
  });
  check_launch("activation_backward");
}

void column_sums(Stream stream, const Array& gradient, const Array& sums, bool accumulate) {
  const std::size_t columns = sums.elements;
  const auto blocks = static_cast<unsigned>((columns + kWarp - 1) / kWarp);
  typed(gradient, [&](auto* dy) {
    typed(sums, [&](auto* sum) {
      device::column_sums<<<blocks, dim3(kWarp, kThreads / kWarp), 0, stream>>>(gradient.elements / columns,
                                                                                columns, dy, sum, accumulate);
    });
  });
  check_launch("column_sums");
}

void softmax_cross_entropy(Stream stream, const Array& logits, const Array& labels, float scale,
                           const Array& losses, const Array& gradient) {
  const std::size_t rows = labels.elements;
  typed(gradient, [&](auto* dx) {
    device::softmax_cross_entropy<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
        logits.elements / rows, elements<float>(logits), elements<float>(labels), scale,
        elements<float>(losses), dx);
  });
  check_launch("softmax_cross_entropy");
}

void row_maxima(Stream stream, const Array& logits, const Array& maxima) {
  const std::size_t rows = maxima.elements;
  device::row_maxima<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      logits.elements / rows, elements<float>(logits), elements<float>(maxima));
  check_launch("row_maxima");
}

void exponential_sums(Stream stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                      const Array& sums, const Array& label_logits) {
  const std::size_t rows = sums.elements;
  device::exponential_sums<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      logits.elements / rows, elements<float>(logits), elements<float>(labels.labels), labels.first_class,
      elements<float>(maxima), elements<float>(sums), elements<float>(label_logits));
  check_launch("exponential_sums");
}

void split_cross_entropy(Stream stream, const Array& logits, const RowLabels& labels, const RowSums& sums,
                         float scale, const Array& losses, const Array& gradient) {
  const std::size_t rows = losses.elements;
  typed(gradient, [&](auto* dx) {
    device::split_cross_entropy<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
        logits.elements / rows, elements<float>(logits), elements<float>(labels.labels), labels.first_class,
        elements<float>(sums.maxima), elements<float>(sums.sums), elements<float>(sums.label_logits), scale,
        elements<float>(losses), dx);
  });
  check_launch("split_cross_entropy");
}

void largest(Stream stream, const Array& x, const Array& y) {
  typed(x, [&](auto* from) {
    typed(y, [&](auto* to) {
      device::largest<<<blocks_for(x.elements), kThreads, 0, stream>>>(x.elements, from, to);
    });
  });
  check_launch("largest");
}

void add(Stream stream, const Array& x, const Array& y) {
  typed(x, [&](auto* from) {
    typed(y, [&](auto* to) {
      device::add<<<blocks_for(x.elements), kThreads, 0, stream>>>(x.elements, from, to);
    });
  });
  check_launch("add");
}

void scale(Stream stream, float factor, const Array& x) {
  typed(x, [&](auto* to) {
    device::scale<<<blocks_for(x.elements), kThreads, 0, stream>>>(x.elements, factor, to);
  });
  check_launch("scale");
}

void update(Stream stream, const OptimizerSettings& optimizer, long step, const OptimizerArrays& arrays) {
  const StepConstants constants = step_constants(optimizer, step);
  switch (optimizer.kind) {
    case Optimizer::sgd:
      update_as<Optimizer::sgd>(stream, constants, arrays);
      break;
    case Optimizer::momentum:
      update_as<Optimizer::momentum>(stream, constants, arrays);
      break;
    case Optimizer::adam:
      update_as<Optimizer::adam>(stream, constants, arrays);
      break;
  }
  check_launch("update");
}

void fill(Stream stream, const Array& array) {
  const auto launch = [&](auto* to) {
    device::fill<<<blocks_for(array.elements), kThreads, 0, stream>>>(array.elements, to);
  };
  if (array.precision == Precision::fp16) {
    launch(elements<Half>(array));
  } else {
    typed(array, launch);
  }
  check_launch("fill");
}

void nothing(Stream stream) {
  device::nothing<<<1, kWarp, 0, stream>>>();
  check_launch("nothing");
}

}  // namespace rehearse::kernels
