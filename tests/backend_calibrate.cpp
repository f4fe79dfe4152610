// Tests fits against the constants their data were generated from, and profiles against what is read back.
#include <cmath>
#include <random>

#include "backend/calibrate/bandwidth.hpp"
#include "backend/calibrate/calibrate.hpp"
#include "backend/calibrate/write_profile.hpp"
#include "models/kernels.hpp"
#include "models/text/error.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/costs/transfer.hpp"
#include "simulator/scenario/scenario.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

// A factor around 1 with a standard deviation of 5 %; one in ten samples takes 1.5 to 5 times as long.
class Noise {
public:
  explicit Noise(unsigned seed) : random_(seed) {}
  double next() {
    const double usual = 1 + 0.05 * std::normal_distribution<double>()(random_);
    const bool outlier = std::uniform_real_distribution<double>()(random_) < 0.1;
    return outlier ? usual * std::uniform_real_distribution<double>(1.5, 5)(random_) : usual;
  }

private:
  std::mt19937 random_;
};

Sample steady(double seconds) {
  return {seconds, 0.97 * seconds, 1.04 * seconds, 11, true};
}

std::vector<double> sizes() {
  std::vector<double> all;
  for (double bytes = 64; bytes < 65e6 * 1.1; bytes *= std::sqrt(2.0)) all.push_back(std::round(bytes));
  return all;
}

struct Truth {
  const char* what;
  // Per range: from_bytes, latency in microseconds, GB/s.
  std::vector<std::array<double, 3>> ranges;
  double time_s(double bytes) const {
    const std::array<double, 3>* at = &ranges.front();
    for (const auto& range : ranges)
      if (bytes >= range[0]) at = &range;
    return 1e-6 * (*at)[1] + bytes / (1e9 * (*at)[2]);
  }
};

const Truth kTruths[] = {
    {"one line", {{0, 20, 1.2}}},
    {"two protocols", {{0, 12, 0.4}, {65000, 80, 1.1}}},
    {"three", {{0, 5, 0.2}, {8000, 40, 0.9}, {1e6, 400, 0.6}}},
};

}  // namespace

TEST_CASE("quartiles are those of Hyndman and Fan's type 7, and medians are called steady when they are") {
  CHECK(quantile({4, 1, 3, 2}, 0.25) == Approx(1.75));
  CHECK(quantile({1, 2, 3, 4, 5}, 0.5) == 3);
  CHECK(quantile({7}, 0.75) == 7);
  const Sample even = sample_of({1, 1.01, 0.99, 1, 1.02, 0.98, 1, 1.01}, 0.02);
  CHECK(even.steady);
  CHECK(even.repeats == 8);
  CHECK(even.median_s == 1);
  CHECK_FALSE(sample_of({1, 2, 3, 1, 2, 3, 1, 2}, 0.02).steady);
  CHECK_FALSE(sample_of({1, 1, 1}, 0.02).steady);  // three samples give no 95 % interval
  int calls = 0;
  CHECK(sample([&] { return ++calls, 1.0; }, {}).repeats == 8);
  CHECK(calls == 9);  // one of them for warming up
  calls = 0;
  Repeats few;
  few.most = 20;
  CHECK(sample([&] { return ++calls % 2 + 1.0; }, few).repeats == 20);
}

TEST_CASE("without noise the fit is what the times were made from") {
  for (const Truth& truth : kTruths) {
    CAPTURE(truth.what);
    std::vector<SizedSample> samples;
    for (const double bytes : sizes()) samples.push_back({bytes, steady(truth.time_s(bytes))});
    const std::vector<SizeRange> ranges = fit_ranges(samples);
    REQUIRE(ranges.size() == truth.ranges.size());
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      CAPTURE(r);
      CHECK(1e6 * ranges[r].latency_s.value == Approx(truth.ranges[r][1]).epsilon(1e-3));
      CHECK(1e-9 * ranges[r].bandwidth.value == Approx(truth.ranges[r][2]).epsilon(1e-3));
      // The bounds are 0.97 and 1.04 of the time.
      CHECK(1e6 * ranges[r].latency_s.low == Approx(0.97 * truth.ranges[r][1]).epsilon(1e-3));
      CHECK(1e6 * ranges[r].latency_s.high == Approx(1.04 * truth.ranges[r][1]).epsilon(1e-3));
      CHECK(1e-9 * ranges[r].bandwidth.low == Approx(truth.ranges[r][2] / 1.04).epsilon(1e-3));
      CHECK(1e-9 * ranges[r].bandwidth.high == Approx(truth.ranges[r][2] / 0.97).epsilon(1e-3));
    }
  }
}

TEST_CASE("5 % of noise and one outlier in ten: the fit gives the times back") {
  for (const Truth& truth : kTruths)
    for (unsigned seed = 1; seed <= 20; ++seed) {
      CAPTURE(truth.what, seed);
      Noise noise(seed);
      std::vector<SizedSample> samples;
      for (const double bytes : sizes())
        samples.push_back({bytes, steady(truth.time_s(bytes) * noise.next())});
      const std::vector<SizeRange> ranges = fit_ranges(samples);
      CHECK(ranges.size() <= truth.ranges.size() + 1);
      std::vector<double> errors;
      for (const double bytes : sizes())
        errors.push_back(std::abs(time_s(ranges, bytes) / truth.time_s(bytes) - 1));
      CHECK(quantile(errors, 0.5) < 0.04);
      CHECK(quantile(errors, 0.9) < 0.12);
      // The first latency describes small messages, the last bandwidth large ones.
      CHECK(1e6 * ranges.front().latency_s.value == Approx(truth.ranges.front()[1]).epsilon(0.08));
      CHECK(1e-9 * ranges.back().bandwidth.value == Approx(truth.ranges.back()[2]).epsilon(0.08));
    }
}

TEST_CASE("a line that would be negative somewhere is not") {
  // t grows faster than the size: the best fit is a line through zero, or several lines.
  std::vector<SizedSample> samples;
  for (const double bytes : sizes()) samples.push_back({bytes, steady(1e-12 * bytes * std::sqrt(bytes))});
  for (const SizeRange& range : fit_ranges(samples)) {
    CHECK(range.latency_s.value >= 0);
    CHECK(range.latency_s.low >= 0);
    CHECK(range.bandwidth.low > 0);
  }
  samples.clear();
  for (const double bytes : sizes()) samples.push_back({bytes, steady(1e-5)});  // latency only
  const std::vector<SizeRange> flat = fit_ranges(samples);
  REQUIRE(flat.size() == 1);
  CHECK(flat[0].latency_s.value == Approx(1e-5).epsilon(1e-3));
  CHECK(time_s(flat, 64e6) == Approx(1e-5).epsilon(0.1));
  CHECK_THROWS_AS(fit_ranges({samples[0], samples[1], samples[2]}), std::invalid_argument);
}

TEST_CASE("constants of a device come back from its kernels' times") {
  struct Case {
    const char* what;
    double units, peak, bandwidth, efficiency, prologue, memory, attention, convolution;
  };
  const Case cases[] = {
      {"a core", 0, 60e9, 12e9, 0.8, 40, 0.9, 0.5, 0.6},
      {"a core without prologue", 0, 60e9, 12e9, 0.7, 0, 1.2, 0.9, 0.7},
      {"a GPU", 108, 300e12, 2e12, 0.78, 85, 0.79, 0.5, 0.36},
  };
  for (const Case& c : cases)
    for (const bool noisy : {false, true}) {
      CAPTURE(c.what, noisy);
      Device truth;
      truth.peak_flops[static_cast<std::size_t>(Precision::fp32)].value = c.peak;
      truth.memory_bandwidth.value = c.bandwidth;
      truth.compute_units = c.units;
      truth.compute_capability = c.units > 0 ? 80 : 0;
      Device base = truth;
      truth.gemm_efficiency.value = c.efficiency;
      truth.gemm_prologue_k.value = c.prologue;
      truth.memory_efficiency.value = c.memory;
      truth.attention_efficiency.value = c.attention;
      truth.convolution_efficiency.value = c.convolution;
      truth.kernel_overhead_s.value = 1e-6;
      Noise noise(7);
      std::vector<KernelSample> kernels;
      const auto add = [&](const Kernel& kernel, KernelSample::Use use = KernelSample::Use::fitted) {
        const double s = kernel_time_s(kernel, truth, Precision::fp32) * (noisy ? noise.next() : 1);
        kernels.push_back({"kernel", kernel, Precision::fp32, steady(s), use});
      };
      const double large = c.units > 0 ? 4096 : 512;
      for (double k = 16; k <= 8192; k *= std::sqrt(2.0))
        for (const double side : {large, 2 * large})
          add(product(Kernel::Kind::gemm, side, side, std::round(k), 4));
      for (double tokens = 128; tokens <= 1024; tokens *= 1.2)
        add(product(Kernel::Kind::attention, tokens, tokens, 640, 4, 64));
      for (double images = 1; images <= 32; images *= 1.3)
        add(product(Kernel::Kind::convolution, 3136 * images, 256, 1152, 4));
      for (double bytes = 1e6; bytes <= 1e9; bytes *= 1.5) add(moves(bytes));
      add(product(Kernel::Kind::gemm, 3000, 1000, 1000, 4), KernelSample::Use::held_out);
      DeviceMeasures measures;
      measures.memory_bytes = 8e9;
      measures.triad_bytes = 1e9;
      measures.triad = steady(1e9 / (0.9 * c.bandwidth));
      measures.overhead = steady(1e-6);
      const DeviceFit fit = fit_device(base, kernels, measures, "made up");
      const double close = noisy ? 0.05 : 2e-3;
      CHECK(fit.device.memory_efficiency.value == Approx(c.memory).epsilon(close));
      CHECK(fit.device.gemm_efficiency.value == Approx(c.efficiency).epsilon(close));
      CHECK(fit.device.gemm_prologue_k.value ==
            Approx(c.prologue).epsilon(noisy ? 0.35 : 0.01).margin(noisy ? 3 : 0.5));
      CHECK(fit.device.attention_efficiency.value == Approx(c.attention).epsilon(close));
      CHECK(fit.device.convolution_efficiency.value == Approx(c.convolution).epsilon(close));
      CHECK(fit.device.kernel_overhead_s.value == Approx(1e-6));
      CHECK(fit.device.peak_flops[0].value == c.peak);          // given
      CHECK(fit.device.memory_bandwidth.value == c.bandwidth);  // given
      CHECK(fit.device.memory_bytes.value == 8e9);              // measured, not given
      CHECK(fit.device.gemm_efficiency.basis == Basis::measured);
      CHECK(fit.device.gemm_efficiency.source.starts_with("made up; at the quartiles "));
      CHECK(fit.held_out.kernels == 1);
      for (const Residual& r : fit.residuals) {
        CAPTURE(r.name);
        CHECK(r.kernels > 5);
        CHECK(r.median < (noisy ? 0.06 : 2e-3));
        CHECK(r.low <= r.value);
        CHECK(r.high >= r.value);
      }
    }
}

TEST_CASE("without a base the peak is the best rate, the bandwidth the triad's, Adam's bytes its time's") {
  DeviceMeasures measures;
  measures.triad_bytes = 1.5e9;
  measures.triad = steady(0.1);
  measures.memory_bytes = 4e9;
  measures.adam_parameters = 1e6;
  measures.adam = steady(4e-3);
  const Kernel slow = product(Kernel::Kind::gemm, 64, 64, 64, 4),
               fast = product(Kernel::Kind::gemm, 500, 500, 500, 4);
  const Kernel half = product(Kernel::Kind::gemm, 500, 500, 500, 2);
  const std::vector<KernelSample> kernels = {{"slow", slow, Precision::fp32, steady(slow.flops() / 20e9)},
                                             {"fast", fast, Precision::fp32, steady(fast.flops() / 50e9)},
                                             {"half", half, Precision::bf16, steady(half.flops() / 90e9)}};
  const DeviceFit fit = fit_device({}, kernels, measures, "made up");
  CHECK(fit.device.peak_flops[static_cast<std::size_t>(Precision::fp32)].value == Approx(50e9));
  CHECK(fit.device.peak_flops[static_cast<std::size_t>(Precision::bf16)].value == Approx(90e9));
  CHECK(fit.device.gemm_efficiency_at[static_cast<std::size_t>(Precision::bf16)].value > 0.9);
  CHECK(fit.device.memory_bandwidth.value == Approx(15e9));
  // Without memory kernels, the fit assumes that they reach the full bandwidth; 4 ns per parameter are the
  // time of 60 bytes.
  Work update;
  update.precision = Precision::fp32;
  update.parameters_updated = 1e6;
  update.optimizer_bytes = 28e6;  // fp32: reads gradient, weight and two moments, writes three of them
  Device device = fit.device;
  device.memory_efficiency.value = 0;
  CHECK(work_time_s(update, device) == Approx(4e-3).epsilon(1e-9));
  CHECK_THROWS_AS(fit_device({}, {}, measures, ""), std::invalid_argument);
  CHECK_THROWS_AS(fit_device({}, kernels, {}, ""), std::invalid_argument);
}

// Bandwidth factors and the definition of size follow nccl-tests, doc/PERFORMANCE.md, and the columns it
// prints.
TEST_CASE("bandwidths are defined as nccl-tests defines them") {
  using enum CollectiveKind;
  struct Case {
    CollectiveKind kind;
    int ranks;
    double bytes;  // as in Collective::bytes
    double size, count, factor;
  };
  const Case cases[] = {{all_reduce, 8, 4096, 4096, 1024, 1.75},
                        {all_reduce, 2, 4096, 4096, 1024, 1},
                        {reduce_scatter, 8, 4096, 4096, 128, 0.875},
                        {all_gather, 4, 4096, 4096, 256, 0.75},
                        {all_to_all, 8, 512, 4096, 128, 0.875},
                        {broadcast, 8, 4096, 4096, 1024, 1},
                        {reduce, 8, 4096, 4096, 1024, 1},
                        {all_reduce, 0, 4096, 4096, 4096, 1}};
  for (const Case& c : cases) {
    CAPTURE(static_cast<int>(c.kind), c.ranks);
    MeasuredLink link;
    link.curve.kind = c.kind;
    link.curve.ranks = c.ranks;
    link.whole = {{c.bytes, steady(1e-6)}};
    const Bandwidth b = bandwidths(link).at(0);
    CHECK(b.bytes == c.size);
    CHECK(b.count == c.count);
    CHECK(b.algorithm == Approx(c.size / 1e-6));
    CHECK(b.bus == Approx(c.factor * c.size / 1e-6));
  }
}

TEST_CASE("profiles are read back as they were written") {
  SECTION("every shipped device") {
    for (const std::string& name : device_names()) {
      CAPTURE(name);
      const Device device = device_preset(name);
      Document document = Document::parse_text(device_profile_text(device, "two\nlines"), "d.toml");
      Section root = document.root();
      const Device back = read_device(root);
      CHECK(back.name == device.name);
      CHECK(back.title == device.title);
      CHECK(back.compute_units == device.compute_units);
      CHECK(back.compute_capability == device.compute_capability);
      const auto same = [](const Sourced& a, const Sourced& b) {
        CHECK(a.value == Approx(b.value).epsilon(1e-5));
        CHECK(a.source == b.source);
        CHECK(a.basis == b.basis);
      };
      same(back.memory_bytes, device.memory_bytes);
      same(back.memory_bandwidth, device.memory_bandwidth);
      for (std::size_t p = 0; p < kPrecisionNames.size(); ++p) {
        if (device.peak_flops[p].value > 0) same(back.peak_flops[p], device.peak_flops[p]);
        if (device.gemm_efficiency_at[p].value > 0)
          same(back.gemm_efficiency_at[p], device.gemm_efficiency_at[p]);
      }
      for (const double k : {1.0, 64.0, 4096.0})
        for (const auto kind : {Kernel::Kind::gemm, Kernel::Kind::convolution, Kernel::Kind::attention}) {
          const Kernel kernel = product(kind, 1000, 768, k, 4, 3);
          CHECK(kernel_time_s(kernel, back, Precision::fp32) ==
                Approx(kernel_time_s(kernel, device, Precision::fp32)).epsilon(1e-4));
        }
    }
  }
  SECTION("links, whose messages take the fitted times") {
    LinkProfile profile;
    profile.title = "a \"title\" with a \\";
    profile.date = "2026-11-21";
    profile.hardware = "none";
    profile.versions = "v1";
    profile.command = "rehearse-run calibrate";
    std::vector<SizedSample> samples;
    for (const double bytes : sizes()) samples.push_back({bytes, steady(kTruths[1].time_s(bytes))});
    profile.curves.resize(2);
    profile.curves[0].ranges = fit_ranges(samples);
    profile.curves[1].ranges = {{0, {1e-6, 1e-6, 2e-6}, {}, {0.8, 0.7, 0.9}, 0.01}};
    profile.curves[1].ranks = 4;
    profile.curves[1].kind = CollectiveKind::all_gather;
    profile.curves[1].reach = Reach::in_node;
    Document document = Document::parse_text(link_profile_text(profile, "a heading"), "l.toml");
    Section root = document.root();
    Protocol protocol = Protocol::measured;
    protocol.links = std::make_shared<LinkProfile>(read_link_profile(root));
    CHECK(protocol.links->title == profile.title);
    CHECK(protocol.links->command == profile.command);
    TransferShape shape;
    shape.nodes = 2;
    shape.ring_bandwidth = 1e12;
    for (const double bytes : sizes()) {
      const TransferCost cost = message_cost(bytes, shape, protocol);
      CHECK(cost.step_latency_s + bytes / (cost.efficiency * 1e12) ==
            Approx(kTruths[1].time_s(bytes)).epsilon(2e-3));
    }
    const LinkCurve& gathered = *protocol.links->collective(CollectiveKind::all_gather, Reach::in_node, 4);
    CHECK(gathered.ranges[0].efficiency.low == Approx(0.7));
    CHECK(gathered.ranges[0].latency_s.high == Approx(2e-6));
  }
}

TEST_CASE("links are fitted from what a function says that they take") {
  struct Case {
    LinkTrial trial;
    double steps, share;  // steps of a collective; its share of bytes in one message
  };
  using enum CollectiveKind;
  const Case cases[] = {{{Reach::between_nodes, 0, all_reduce, {}}, 1, 1},
                        {{Reach::in_node, 4, all_reduce, {}}, 6, 0.25},
                        {{Reach::in_node, 8, all_gather, {}}, 7, 0.125},
                        {{Reach::in_node, 5, reduce_scatter, {}}, 4, 0.2},
                        {{Reach::in_node, 8, all_to_all, {}}, 7, 1}};
  for (const Case& c : cases) {
    CAPTURE(c.trial.ranks, static_cast<int>(c.trial.kind));
    LinkTrial trial = c.trial;
    double most = 0;
    trial.time_s = [&](double bytes) {
      most = std::max(most, bytes);
      return c.steps * kTruths[1].time_s(bytes * c.share);
    };
    int told = 0;
    const MeasuredLink link = measure_link(trial, 10, [&](const std::string&, double done) {
      CHECK(done >= 0);
      CHECK(done <= 1);
      ++told;
    });
    CHECK(told == 41);
    CHECK(link.samples.size() == 41);
    CHECK(most * c.share == Approx(67108864).epsilon(1e-6));
    CHECK(link.curve.ranks == c.trial.ranks);
    CHECK(link.curve.reach == c.trial.reach);
    REQUIRE(link.curve.ranges.size() == 2);
    CHECK(1e6 * link.curve.ranges[0].latency_s.value == Approx(12).epsilon(1e-3));
    CHECK(link.curve.ranges[1].from_bytes == Approx(65536).epsilon(0.01));
    CHECK(1e-9 * link.curve.ranges[1].bandwidth.value == Approx(1.1).epsilon(1e-3));
  }
  LinkTrial small{Reach::in_node, 8, all_to_all, [](double bytes) { return 7e-6 + 7 * bytes / 1e9; }};
  small.most_message_bytes = 1048576;
  CHECK(measure_link(small, 10, [](const std::string&, double) {}).samples.back().bytes == 1048576);
}

// A chain forwards pieces of at most 512 KiB over its edges in turn: the last of k pieces reaches the end of
// n ranks after k + n - 2 times the time of a single piece on an edge.
TEST_CASE("chains are fitted so that what is predicted is what was measured") {
  using enum CollectiveKind;
  const CollectiveKind kind = GENERATE(broadcast, reduce);
  const int ranks = GENERATE(2, 3, 8);
  const Truth& truth = kTruths[GENERATE(0, 1)];
  CAPTURE(static_cast<int>(kind), ranks, truth.what);
  const auto time_s = [&](double bytes) {
    const double pieces = std::ceil(bytes / 524288);
    return (pieces + ranks - 2) * truth.time_s(bytes / pieces);
  };
  const LinkTrial chain{Reach::between_nodes, ranks, kind, time_s};
  const MeasuredLink link = measure_link(chain, 10, [](const std::string&, double) {});
  CHECK(link.curve.ranges.size() == truth.ranges.size());
  Protocol protocol = Protocol::measured;
  auto profile = std::make_shared<LinkProfile>();
  profile->curves = {link.curve};
  protocol.links = profile;
  TransferShape shape;
  shape.ranks = ranks;
  shape.nodes = ranks;
  shape.ring_bandwidth = 1e12;
  for (const double bytes : {1e3, 3e4, 4e5, 1e6, 1e7, 1e8}) {
    CAPTURE(bytes);
    const TransferCost cost = ring_cost(kind, bytes, shape, protocol);
    const double predicted_s = cost.startup_s + cost.filling_s + cost.steps * cost.step_latency_s +
                               cost.bytes_per_edge / (cost.efficiency * 1e12);
    // The prediction counts the latencies of pieces in flight at the same time only once.
    const double hidden_s = (std::ceil(bytes / 524288) - 1) * 80e-6;
    CHECK(predicted_s <= time_s(bytes) * 1.002);
    CHECK(predicted_s >= time_s(bytes) * 0.998 - hidden_s);
  }
}
