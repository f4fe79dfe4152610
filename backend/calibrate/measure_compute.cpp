#include "backend/calibrate/measure_compute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "models/kernels.hpp"
#include "models/text/error.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/schedule/peak_memory.hpp"

namespace rehearse {
namespace {

using Kind = Kernel::Kind;
using Use = KernelSample::Use;
constexpr double kBeyondCaches =
    256e6;  // bytes of each of two arrays: together twice the largest last-level caches

constexpr double kLeastBeyondCaches = 128e6;  // bytes of a copy's two arrays

struct Wanted {
  Kind kind;
  double m, n, k, batch;
  KernelSample::Use use = KernelSample::Use::fitted;
  Transposed transposed = Transposed::none;
  Convolution layer = {};  // if images > 0: the convolution that the product computes
  double images = 0;
};

Convolution resnet_layer(double in_channels, double out_channels, double kernel, double stride, double size) {
  Convolution layer;
  layer.in_channels = in_channels;
  layer.out_channels = out_channels;
  layer.kernel = kernel;
  layer.stride = stride;
  layer.padding = (kernel - 1) / 2;
  layer.in_size = size;
  layer.out_size = size / stride;
  return layer;
}

Kernel kernel_of(const Wanted& w, Precision precision) {
  Kernel kernel = product(w.kind, w.m, w.n, w.k, element_bytes(precision), w.batch);
  kernel.transposed = w.transposed;
  if (w.images > 0)
    kernel.convolution =
        convolution_kernel(w.layer, w.images, element_bytes(precision), ConvolutionShape::Pass::forward)
            .convolution;
  return kernel;
}

// Returns the shapes, with several samples per decade of FLOPs, so that slow devices measure the small ones
// and fast devices the large ones.
std::vector<Wanted> wanted_products() {
  std::vector<Wanted> all;
  for (const double size : {128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192})
    all.push_back({Kind::gemm, size, size, size, 1});
  for (const double side : {256, 1024, 4096})
    for (double k = 16; k <= 8192; k *= 2) all.push_back({Kind::gemm, side, side, k, 1});
  for (const double rows :
       {16, 32, 64, 128, 512, 2048})  // rows of a batch through a layer, and its gradients
    for (const double width : {256, 1024, 4096}) {
      all.push_back({Kind::gemm, rows, width, width, 1});
      all.push_back({Kind::gemm, rows, width, width, 1, Use::listed, Transposed::b});
      all.push_back({Kind::gemm, width, width, rows, 1});
      all.push_back({Kind::gemm, width, width, rows, 1, Use::listed, Transposed::a});
    }
  for (const double batch : {8, 32, 128})  // heads of width 64 over 128 to 512 tokens: scores, then values
    for (const double tokens : {128, 512}) {
      all.push_back({Kind::attention, tokens, tokens, 64, batch});
      all.push_back({Kind::attention, tokens, 64, tokens, batch});
    }
  // Layers of ResNet-50, for 1 and 8 images (He et al. 2016, table 1).
  for (const double images : {1, 8})
    for (const Convolution& layer : {resnet_layer(3, 64, 7, 2, 224), resnet_layer(64, 64, 3, 1, 56),
                                     resnet_layer(128, 128, 3, 1, 28), resnet_layer(256, 256, 3, 1, 14),
                                     resnet_layer(512, 512, 3, 1, 7), resnet_layer(256, 1024, 1, 1, 14)}) {
      const Kernel kernel = convolution_kernel(layer, images, 4, ConvolutionShape::Pass::forward);
      all.push_back(
          {Kind::convolution, kernel.m, kernel.n, kernel.k, 1, Use::fitted, Transposed::none, layer, images});
    }
  // Predicted instead of fitted: other shapes of the same kinds.
  const Wanted held_out[] = {
      {Kind::gemm, 300, 700, 500, 1},    {Kind::gemm, 1000, 1000, 1000, 1}, {Kind::gemm, 1920, 240, 1500, 1},
      {Kind::gemm, 96, 3072, 768, 1},    {Kind::gemm, 768, 96, 3072, 1},    {Kind::gemm, 3072, 768, 96, 1},
      {Kind::gemm, 640, 640, 2560, 1},   {Kind::gemm, 48, 2048, 2048, 1},   {Kind::gemm, 1500, 1500, 200, 1},
      {Kind::gemm, 192, 192, 4096, 1},   {Kind::gemm, 784, 1024, 64, 1},    {Kind::gemm, 6144, 1536, 6144, 1},
      {Kind::gemm, 2500, 2500, 2500, 1}, {Kind::gemm, 5000, 5000, 5000, 1}};
  for (Wanted w : held_out) {
    w.use = Use::held_out;
    all.push_back(w);
  }
  // Shuffles, so that changes on the machine affect all kinds, except for the first few, which show how fast
  // the device is.
  std::shuffle(all.begin() + 3, all.end(), std::mt19937(1));
  return all;
}

// Memory-bound kernels of transformers and perceptrons, of 16 kB to 64 MB in rows of 64 to 4,096 numbers;
// small ones first.
std::vector<Kernel> kernels_on_rows() {
  std::vector<Kernel> all;
  std::mt19937 random(2);
  for (const double bytes : {16e3, 256e3, 4e6, 64e6}) {
    const auto begin = static_cast<std::ptrdiff_t>(all.size());
    Kernel forward = moves(2 * bytes), backward = moves(3 * bytes, 2, 1);
    all.push_back(forward);   // a copy
    all.push_back(backward);  // a sum
    forward.form = MemoryForm::activation_forward;
    backward.form = MemoryForm::activation_backward;
    all.push_back(forward);
    all.push_back(backward);
    for (const double width : {64.0, 512.0, 4096.0}) {
      if (4 * width > bytes) continue;
      const RowArrays rows{bytes, width, 4};
      for (const Kernel& kernel : {norm_forward(rows), norm_backward(rows), norm_parameters(rows),
                                   softmax_forward(rows), softmax_backward(rows), column_sums(rows)})
        all.push_back(kernel);
    }
    std::shuffle(all.begin() + begin, all.end(), random);
  }
  return all;
}

// Returns whether a kernel of this time, with warming up, sizing and three samples, takes more than twice its
// share.
bool takes_too_long(double seconds, double share_s) {
  return 6 * seconds > 2 * share_s;
}

std::string identity(const Kernel& k, Precision precision) {
  return fmt::format("{} {} {} {} {} {} {:.6g} {} {} {:g} {:g} {} {} {}", static_cast<int>(k.kind), k.m, k.n,
                     k.k, k.batch, static_cast<int>(k.transposed), k.bytes, static_cast<int>(k.form), k.width,
                     k.reads, k.writes, k.channels, k.backward, static_cast<int>(precision));
}

std::string words(const Kernel& kernel) {
  if (kernel.kind == Kind::memory)
    return fmt::format("{} of {:g} kB", kMemoryFormNames[static_cast<std::size_t>(kernel.form)],
                       kernel.bytes / 1e3);
  std::string text = kernel.batch > 1 ? fmt::format("{:g} of ", kernel.batch) : "";
  return text + fmt::format("{:g} x {:g} x {:g}", kernel.m, kernel.n, kernel.k);
}

class Measuring {
public:
  Measuring(Arithmetic& arithmetic, double most_s, const Progress& progress)
      : arithmetic_(arithmetic), most_s_(most_s), progress_(progress) {}

  // Samples the time of `work`; a sample issues it as often as this device requires (DeviceTraits::sample_s).
  Sample of(const std::string& what, double share_s, const std::function<void()>& work) {
    progress_(what, std::min(1.0, elapsed_s() / most_s_));
    long times = 1;
    const auto run = [&] {
      const Timed timed = arithmetic_.time(0, [&] {
        for (long i = 0; i < times; ++i) work();
      });
      total_s_ += timed.seconds + timed.waited_s;
      waited_s_ += timed.waited_s;
      return timed.seconds / static_cast<double>(times);
    };
    work();  // touches memory and loads libraries
    arithmetic_.settle(0);
    const double one_s = std::max(run(), 1e-9);
    times = std::clamp(std::lround(traits_.sample_s / one_s), 1L, traits_.sample_operations);
    Repeats repeats;
    repeats.most_s = share_s;
    return sample(run, repeats);
  }

  // Samples the host's time to issue one kernel while the device is still busy with earlier ones.
  Sample issuing(double share_s) {
    Repeats repeats;
    repeats.most_s = share_s;
    const auto run = [&] {
      const double begin_s = elapsed_s();
      for (long i = 0; i < traits_.sample_operations; ++i) arithmetic_.nothing(0);
      const double seconds = elapsed_s() - begin_s;
      arithmetic_.settle(0);
      return seconds / static_cast<double>(traits_.sample_operations);
    };
    return sample(run, repeats);
  }

  Sample kernel(const std::string& what, double share_s, const Kernel& kernel, Precision precision) {
    return of(what, share_s, [&] { replayed_ = arithmetic_.replay(0, kernel, precision); });
  }
  const Replayed& replayed() const { return replayed_; }  // of the last kernel, for one call

  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  double taken_off() const { return total_s_ > 0 ? waited_s_ / total_s_ : 0; }
  double left_s() const { return most_s_ - elapsed_s(); }

private:
  Arithmetic& arithmetic_;
  const DeviceTraits traits_ = arithmetic_.traits();
  const double most_s_;
  const Progress& progress_;
  Replayed replayed_;
  double total_s_ = 0, waited_s_ = 0;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

void measure_memory(Measuring& measuring, Arithmetic& arithmetic, double share_s, DeviceMeasures& measures,
                    std::vector<KernelSample>& kernels) {
  {
    const auto elements = static_cast<std::size_t>(kBeyondCaches / 4);
    const OwnedArray x(arithmetic, elements, Precision::fp32), y(arithmetic, elements, Precision::fp32);
    measures.triad_bytes = 3 * kBeyondCaches;  // both arrays are read, one is written
    measures.triad = measuring.of("memory bandwidth", 3 * share_s, [&] { arithmetic.add(0, x, y); });
  }
  for (const double bytes : {1e6, 4e6, 16e6, 64e6, 128e6, 256e6}) {
    const Kernel kernel = moves(bytes);
    const std::string what = fmt::format("{:g} MB", bytes / 1e6);
    // The efficiency is that of memory. Arrays that caches hold are only listed.
    kernels.push_back({what, kernel, Precision::fp32,
                       measuring.kernel("memory, " + what, share_s, kernel, Precision::fp32),
                       bytes < kLeastBeyondCaches ? Use::listed : Use::fitted});
  }
  measures.overhead = measuring.of("kernel overhead", share_s, [&] { arithmetic.nothing(0); });
}

void measure_update(Measuring& measuring, Arithmetic& arithmetic, double share_s, DeviceMeasures& measures,
                    std::vector<KernelSample>& kernels) {
  constexpr std::size_t kParameters = std::size_t{16} << 20;
  const OwnedArray weights(arithmetic, kParameters, Precision::fp32),
      gradient(arithmetic, kParameters, Precision::fp32), first(arithmetic, kParameters, Precision::fp32),
      second(arithmetic, kParameters, Precision::fp32);
  const OptimizerArrays arrays{weights, weights, gradient, first, second};
  const OptimizerSettings adam = default_settings(Optimizer::adam);
  long step = 0;
  measures.adam_parameters = static_cast<double>(kParameters);
  measures.adam =
      measuring.of("Adam's update", 2 * share_s, [&] { arithmetic.update(0, adam, ++step, arrays); });
  for (const std::size_t parameters :
       {std::size_t{16} << 10, std::size_t{256} << 10, std::size_t{4} << 20, kParameters}) {
    const auto some = [&](const Array& array) { return array.part(0, parameters); };
    const OptimizerArrays part{some(weights), some(weights), some(gradient), some(first), some(second)};
    Kernel kernel;
    kernel.form = MemoryForm::adam_update;
    kernel.bytes =
        static_cast<double>(parameters) * update_bytes(Optimizer::adam, Precision::fp32, Precision::fp32);
    const std::string what = fmt::format("Adam's update of {} parameters", parameters);
    const Sample time = parameters == kParameters
                            ? measures.adam
                            : measuring.of(what, share_s, [&] { arithmetic.update(0, adam, ++step, part); });
    kernels.push_back({what, kernel, Precision::fp32, time, Use::listed});
  }
}

}  // namespace

std::vector<Precision> precisions_of(Arithmetic& arithmetic) {
  std::vector<Precision> all;
  for (std::size_t p = 0; p < kPrecisionNames.size(); ++p) try {
      arithmetic.release(arithmetic.allocate(64, static_cast<Precision>(p)));
      all.push_back(static_cast<Precision>(p));
    } catch (const RunError&) {  // no arithmetic in this precision
    }
  return all;
}

std::vector<TrainedKernel> trained_kernels(const Schedule& schedule) {
  std::vector<TrainedKernel> all;
  std::set<std::string> seen;
  double step_bytes = 0;
  for (std::size_t r = 0; r < schedule.roles.size(); ++r)
    for (int rank = 0; rank < schedule.roles[r].size(); ++rank)
      if (const int program = schedule.program_of(static_cast<int>(r), rank); program >= 0)
        step_bytes = std::max(step_bytes, tensor_bytes(schedule.programs[static_cast<std::size_t>(program)],
                                                       schedule.roles[r], rank));
  for (const Work& work : schedule.works)
    for (Kernel kernel : work.kernels) {
      kernel.count = 1;
      const bool nothing = kernel.flops() == 0 && kernel.bytes < 1;
      if (kernel.kind != Kind::fixed && !nothing && seen.insert(identity(kernel, work.precision)).second)
        all.push_back({kernel, work.precision, step_bytes});
    }
  return all;
}

ComputeMeasurements measure_compute(Arithmetic& arithmetic, double most_s,
                                    const std::vector<TrainedKernel>& trained, const Progress& progress) {
  ComputeMeasurements found;
  Measuring measuring(arithmetic, most_s, progress);
  const std::vector<Wanted> wanted = wanted_products();
  const std::vector<Precision> precisions = precisions_of(arithmetic);
  const std::vector<Kernel> on_rows = kernels_on_rows();
  const double count =
      static_cast<double>(trained.size() + on_rows.size() + wanted.size() * precisions.size() + 15);
  double share_s = most_s / count;
  measure_memory(measuring, arithmetic, share_s, found.measures, found.kernels);
  measure_update(measuring, arithmetic, share_s, found.measures, found.kernels);
  if (arithmetic.traits().compute_capability > 0) found.issue = measuring.issuing(share_s);
  const auto list = [&](const Kernel& kernel, Precision precision) {
    const std::string what = words(kernel);
    const Sample time = measuring.kernel(what, share_s, kernel, precision);
    found.kernels.push_back({what, kernel, precision, time, Use::listed});
    return time.median_s;
  };
  for (const TrainedKernel& kernel : trained) {
    arithmetic.replay_within(kernel.step_bytes);
    list(kernel.kernel, kernel.precision);
  }
  arithmetic.replay_within(0);
  std::map<std::pair<MemoryForm, double>, double> seconds_per_byte;  // by form and width, of the last size
  for (const Kernel& kernel : on_rows) {
    double& known = seconds_per_byte[{kernel.form, kernel.width}];
    if (!takes_too_long(known * kernel.bytes, share_s)) known = list(kernel, Precision::fp32) / kernel.bytes;
  }

  double left = static_cast<double>(wanted.size() * precisions.size());
  for (const Precision precision : precisions) {
    double flops_per_s = 0;  // the best so far
    for (const Wanted& w : wanted) {
      share_s = std::max(0.0, measuring.left_s() / left);  // shares the time that quick products have left
      --left;
      Kernel kernel = kernel_of(w, precision);
      if (flops_per_s > 0 && takes_too_long(kernel.flops() / flops_per_s, share_s)) continue;
      const std::string what = words(kernel);
      const Sample time = measuring.kernel(fmt::format("products in {}, {}", name_of(precision), what),
                                           share_s, kernel, precision);
      flops_per_s = std::max(flops_per_s, kernel.flops() / time.median_s);
      // A real convolution moves less than the product and uses other algorithms.
      if (measuring.replayed().convolution)
        kernel =
            convolution_kernel(w.layer, w.images, element_bytes(precision), ConvolutionShape::Pass::forward);
      found.kernels.push_back({what, kernel, precision, time, w.use});
    }
  }
  found.taken_off = measuring.taken_off();
  found.notes = arithmetic.notes();
  return found;
}

}  // namespace rehearse
