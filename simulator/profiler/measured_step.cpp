#include "simulator/profiler/measured_step.hpp"

#include <algorithm>

namespace rehearse {
namespace {

// An embedding's first input is its table; the second holds the indices.
bool looks_up(std::string_view name) {
  return name.starts_with("aten::embedding");
}

// Indices of the outer operators that begin in `window`.
struct Range {
  std::size_t first = 0, end = 0;
};
Range within(const std::vector<OuterOp>& ops, Interval window) {
  const auto before = [](const OuterOp& op, double time) { return op.begin < time; };
  const auto first = std::lower_bound(ops.begin(), ops.end(), window.begin, before);
  const auto end = std::lower_bound(first, ops.end(), window.end, before);
  return {static_cast<std::size_t>(first - ops.begin()), static_cast<std::size_t>(end - ops.begin())};
}

// One forward pass and the backward pass after it.
struct PassOps {
  std::vector<std::size_t> forward;   // of the main thread
  std::vector<std::size_t> backward;  // of HostOps::backward()
};

class StepReader {
public:
  StepReader(const StepSource& source, std::size_t window)
      : s_(source),
        number_(window),
        window_(source.windows[window]),
        main_(source.ops.of_thread(source.main_thread)) {}

  MeasuredStep read() {
    find_updates();
    find_passes();
    for (const PassOps& pass : passes_) name_layers(pass);
    step_.passes = static_cast<int>(passes_.size());
    if (passes_.empty()) return step_;
    if (s_.on_device)
      time_kernels();
    else
      time_host();
    return step_;
  }

private:
  const ProfilerEvent& event(const OuterOp& op) const { return s_.trace.events[op.event]; }
  const std::string& name(const OuterOp& op) const { return s_.trace.names[event(op).name]; }

  void find_updates() {
    for (const HostOps::Annotation& one : s_.ops.annotations()) {
      if (one.time.begin < window_.begin || one.time.begin >= window_.end) continue;
      if (one.thread != s_.main_thread || !s_.trace.names[one.name].starts_with("Optimizer.step#")) continue;
      updates_.push_back(one.time);
      step_.optimizer_name = one.name;
    }
    const Range all = within(main_, window_);
    for (std::size_t i = all.first; i < all.end; ++i)
      if (in_update(main_[i].begin) &&
          (name(main_[i]) == "aten::mul_" || name(main_[i]) == "aten::_foreach_mul_" ||
           name(main_[i]) == "aten::_fused_sgd_"))
        step_.momentum = true;
  }
  bool in_update(double time) const {
    return std::any_of(updates_.begin(), updates_.end(),
                       [&](const Interval& update) { return time >= update.begin && time < update.end; });
  }

  // An operator belongs to the forward pass if it is between two that created nodes of the backward pass.
  void find_passes() {
    const std::vector<OuterOp>& backward = s_.ops.backward();
    const Range range = within(backward, window_);
    std::vector<std::size_t> makers;  // of the main thread, by time
    for (std::size_t b = range.first; b < range.end; ++b) {
      const std::int64_t sequence = event(backward[b]).sequence;
      const int maker = sequence < 0 ? -1 : s_.ops.maker_of(s_.main_thread, sequence);
      const bool here = maker >= 0 && main_[static_cast<std::size_t>(maker)].begin >= window_.begin &&
                        main_[static_cast<std::size_t>(maker)].begin < backward[b].begin;
      maker_[b] = here ? maker : -1;
      if (here) makers.push_back(static_cast<std::size_t>(maker));
    }
    std::sort(makers.begin(), makers.end());
    makers.erase(std::unique(makers.begin(), makers.end()), makers.end());
    std::size_t next = 0;
    for (std::size_t b = range.first; b < range.end; ++b) {
      const std::size_t first = next;
      while (next < makers.size() && main_[makers[next]].begin < backward[b].begin) ++next;
      if (next > first) {
        PassOps pass;
        for (std::size_t i = makers[first]; i <= makers[next - 1]; ++i)
          if (!main_[i].is_backward && !in_update(main_[i].begin)) pass.forward.push_back(i);
        passes_.push_back(std::move(pass));
      }
      if (!passes_.empty()) passes_.back().backward.push_back(b);
    }
  }

  // Assigns each operator of a pass to a layer.
  void name_layers(const PassOps& pass) {
    const std::vector<OuterOp>& backward = s_.ops.backward();
    std::unordered_map<std::size_t, MeasuredLayer> of_unit;    // accumulated by an operator's nodes
    std::vector<std::pair<std::size_t, std::size_t>> unit_of;  // backward operator, forward one
    std::size_t unit = pass.forward.back();
    for (const std::size_t b : pass.backward) {
      if (maker_.at(b) >= 0) unit = static_cast<std::size_t>(maker_.at(b));
      unit_of.emplace_back(b, unit);
      if (!backward[b].accumulates) continue;
      MeasuredLayer& its = of_unit[unit];
      its.parameters += backward[b].parameters;
      its.gradient_bytes += backward[b].gradient_bytes;
    }
    std::vector<MeasuredLayer> layers;
    bool owns = false;
    for (const std::size_t i : pass.forward) {
      const auto owned = of_unit.find(i);
      if (layers.empty() || (owned != of_unit.end() && owns)) layers.emplace_back().head = main_[i].event;
      if (owned != of_unit.end()) {
        if (!owns) layers.back().head = main_[i].event;  // operators before it belong to the first layer
        owns = true;
        layers.back().parameters += owned->second.parameters;
        layers.back().gradient_bytes += owned->second.gradient_bytes;
      }
      layer_of_[main_[i].event] = static_cast<int>(layers.size()) - 1;
    }
    std::vector<int> ready;
    for (const auto& [b, its_unit] : unit_of) {
      const auto its_layer = layer_of_.find(main_[its_unit].event);
      const int layer = its_layer == layer_of_.end() ? 0 : its_layer->second;
      layer_of_[backward[b].event] = layer;
      if (!backward[b].accumulates) continue;
      std::erase(ready, layer);
      ready.push_back(layer);
    }
    if (step_.layers.empty()) {
      tell_shapes(pass, layers);
      step_.layers = std::move(layers);
      step_.ready = std::move(ready);
    }
  }

  // Determines batch size, element type and the output bytes of layers, if the trace has shapes.
  void tell_shapes(const PassOps& pass, std::vector<MeasuredLayer>& layers) {
    std::vector<double> input_bytes(layers.size(), 0);
    for (const std::size_t i : pass.forward) {
      const ProfilerEvent& op = event(main_[i]);
      if (op.elements < 0) continue;
      const bool table = looks_up(name(main_[i]));
      if (step_.micro_batch == 0) step_.micro_batch = table ? op.second_leading : op.leading;
      double& bytes = input_bytes[static_cast<std::size_t>(layer_of_.at(main_[i].event))];
      if (bytes == 0 && !table && !op.integers) bytes = op.elements * op.element_bytes;
    }
    double handed_on = 0;
    for (std::size_t i = layers.size(); i-- > 0;) {
      layers[i].output_bytes = handed_on;
      const bool table = looks_up(s_.trace.names[s_.trace.events[layers[i].head].name]);
      if (!table && input_bytes[i] > 0) handed_on = input_bytes[i];
    }
    double elements = 0, bytes = 0;
    for (const MeasuredLayer& layer : layers) {
      elements += layer.parameters;
      bytes += layer.gradient_bytes;
    }
    if (elements > 0) step_.element_bytes = bytes / elements;
  }

  MeasuredLayer* layer_of(const OuterOp& op) {
    const auto it = layer_of_.find(op.event);
    if (it == layer_of_.end()) return nullptr;
    return &step_.layers[std::min(static_cast<std::size_t>(it->second), step_.layers.size() - 1)];
  }

  // ----- on processors: each interval of the main thread is attributed
  struct Taken {
    double own = 0, communication = 0;
  };
  // Splits the time from `from` to the end of `op`: waiting for collectives and issuing them count as
  // communication.
  Taken taken(double from, const OuterOp& op) const {
    const Interval gap{from, op.begin}, inside{std::max(from, op.begin), op.end};
    const double waited = covered(gap, s_.ops.collectives());
    const double called = covered(inside, s_.ops.collective_calls());
    return {gap.length() - waited + inside.length() - called, waited + called};
  }

  // Adds the time of these operators, which run one after the other, to `field` of their layers; returns the
  // interval in which they ran.
  Interval time_pass(const std::vector<OuterOp>& ops, const std::vector<std::size_t>& numbers,
                     double MeasuredLayer::*field) {
    Interval pass{ops[numbers.front()].begin, ops[numbers.front()].begin};
    for (const std::size_t i : numbers) {
      const Taken its = taken(pass.end, ops[i]);
      layer_of(ops[i])->*field += its.own;
      step_.communication += its.communication;
      pass.end = std::max(pass.end, ops[i].end);
    }
    return pass;
  }

  void time_host() {
    std::vector<Interval> passes = updates_;
    for (const PassOps& pass : passes_) {
      passes.push_back(time_pass(main_, pass.forward, &MeasuredLayer::forward));
      passes.push_back(time_pass(s_.ops.backward(), pass.backward, &MeasuredLayer::backward));
    }
    for (const Interval& update : updates_) {
      const double called = covered(update, s_.ops.collective_calls());
      step_.optimizer += update.length() - called;
      step_.communication += called;
    }
    step_.step = window_.length();
    step_.collective = covered(window_, s_.ops.collectives());
    double from = window_.begin;
    for (const Interval& pass : united(std::move(passes))) {
      outside({from, pass.begin});
      from = pass.end;
    }
    outside({from, window_.end});
  }

  // Attributes time outside of passes and updates.
  void outside(Interval piece) {
    if (piece.length() == 0) return;
    const Range range = within(main_, piece);
    double from = piece.begin;
    for (std::size_t i = range.first; i < range.end; ++i) {
      const Taken its = taken(from, main_[i]);
      step_.other += its.own;
      step_.communication += its.communication;
      from = std::max(from, main_[i].end);
    }
    const Interval rest{from, piece.end};
    const double waited = covered(rest, s_.ops.collectives());
    step_.other += rest.length() - waited;
    step_.communication += waited;
  }

  // ----- on a GPU: at each time it runs a kernel or a collective, or is idle
  struct StepKernels {
    std::vector<PlacedKernel> all;
    double begin = 0;    // time of the first kernel of the first layer
    PlacedKernel first;  // that kernel
    bool found = false;
  };
  StepKernels kernels_of(Interval window) const {
    StepKernels result;
    const auto before = [](const PlacedKernel& kernel, double time) { return kernel.launched < time; };
    const auto first = std::lower_bound(s_.kernels.begin(), s_.kernels.end(), window.begin, before);
    const auto end = std::lower_bound(first, s_.kernels.end(), window.end, before);
    result.all.assign(first, end);
    std::sort(result.all.begin(), result.all.end(),
              [](const PlacedKernel& a, const PlacedKernel& b) { return a.time.begin < b.time.begin; });
    // Copies of the batch can run ahead: the step begins with the first kernel of an operator that creates a
    // node.
    for (const PlacedKernel& kernel : result.all) {
      const OuterOp* op = s_.ops.at(kernel.thread, kernel.launched);
      if (kernel.collective || !op || event(*op).sequence < 0) continue;
      result.begin = kernel.time.begin;
      result.first = kernel;
      result.found = true;
      break;
    }
    return result;
  }

  void time_kernels() {
    const StepKernels its = kernels_of(window_);
    StepKernels next;
    if (number_ + 1 < s_.windows.size()) next = kernels_of(s_.windows[number_ + 1]);
    const double end = next.found ? next.begin : its.begin;
    std::vector<Interval> computing, collectives = overlapping({its.begin, end}, s_.ops.host_collectives());
    for (const PlacedKernel& kernel : its.all)
      (kernel.collective ? collectives : computing).push_back(kernel.time);
    collectives = united(std::move(collectives));
    double cursor = its.begin;
    for (const PlacedKernel& kernel : its.all) {
      if (kernel.collective) continue;
      const KernelShare share = share_of(kernel);
      const Interval gap{cursor, std::min(kernel.time.begin, end)};
      if (gap.length() > 0) {
        *share.idle += add_idle(gap, kernel, collectives).without_data();
        if (share.idle == &step_.other_idle) add_outside({gap.begin, std::min(gap.end, kernel.launched)});
      }
      *share.busy += Interval{std::max(cursor, kernel.time.begin), kernel.time.end}.length();
      cursor = std::max(cursor, kernel.time.end);
    }
    add_outside({end_of_kernels_before(), std::min(its.begin, its.first.launched)});
    count_launches();
    computing = united(std::move(computing));
    for (const Interval& one : collectives) {
      step_.collective += one.length();
      step_.communication += one.length() - covered(one, computing);
    }
    if (!its.found || !next.found) return;
    step_.step = next.begin - its.begin;
    time_between({cursor, next.begin}, next, collectives);
  }

  void add_outside(Interval idle) {
    if (idle.length() > 0) outside_.push_back(idle);
  }

  // Returns when the GPU had run the kernels of the step before this one; if there is none, the begin of the
  // window.
  double end_of_kernels_before() const {
    if (number_ == 0) return window_.begin;
    double end = 0;
    for (const PlacedKernel& kernel : kernels_of(s_.windows[number_ - 1]).all)
      if (!kernel.collective) end = std::max(end, kernel.time.end);
    return end;
  }

  // Idle time of the GPU, and the part of it in which the process loads data.
  struct Idle {
    double time = 0, data = 0;
    double without_data() const { return time - data; }
  };

  // Adds the part of `gap` without collectives, after which the GPU runs `next`, to the step's idle time.
  Idle add_idle(Interval gap, const PlacedKernel& next, const std::vector<Interval>& collectives) {
    Idle idle;
    for (const Interval& piece : without(gap, collectives)) {
      idle.time += piece.length();
      idle.data += s_.host.add_gap(piece, next, s_.main_thread, step_.idle_causes);
    }
    step_.idle += idle.time;
    step_.data += idle.data;
    return idle;
  }

  // Attributes the time after the step's last kernel, during which kernels of the next step can run ahead of
  // its first layer, such as copies of its batch.
  void time_between(Interval gap, const StepKernels& next, const std::vector<Interval>& collectives) {
    double cursor = gap.begin;
    for (const PlacedKernel& kernel : next.all) {
      if (kernel.collective || kernel.time.begin >= gap.end) continue;
      if (kernel.time.begin > cursor) add_between({cursor, kernel.time.begin}, kernel, collectives);
      const Interval copying{std::max(cursor, kernel.time.begin), std::min(kernel.time.end, gap.end)};
      for (const Interval& piece : without(copying, collectives)) {
        step_.idle_causes[static_cast<std::size_t>(IdleCause::copies)].time += piece.length();
        step_.between += piece.length();
        step_.idle += piece.length();
      }
      cursor = std::max(cursor, std::min(kernel.time.end, gap.end));
    }
    add_between({cursor, gap.end}, next.first, collectives);
  }
  void add_between(Interval gap, const PlacedKernel& next, const std::vector<Interval>& collectives) {
    const Idle idle = add_idle(gap, next, collectives);
    step_.between += idle.time;
    step_.between_data += idle.data;
  }

  // What a kernel's time, and the idle time before it, belong to.
  struct KernelShare {
    double* busy;
    double* idle;
  };
  KernelShare share_of(const PlacedKernel& kernel) {
    if (kernel.thread == s_.main_thread && in_update(kernel.launched)) {
      ++step_.optimizer_kernels;
      return {&step_.optimizer, &step_.optimizer_idle};
    }
    const OuterOp* op = s_.ops.at(kernel.thread, kernel.launched);
    MeasuredLayer* layer = op ? layer_of(*op) : nullptr;
    if (!layer) return {&step_.other, &step_.other_idle};
    ++(op->is_backward ? layer->backward_kernels : layer->forward_kernels);
    if (op->is_backward) return {&layer->backward, &layer->backward_idle};
    return {&layer->forward, &layer->forward_idle};
  }

  // Computes how long the host issues kernels of passes and updates, without its waits for the device. While
  // the device idles outside of them, this time is already part of the step.
  void count_launches() {
    std::vector<Interval> issuing = updates_;
    const std::vector<OuterOp>& backward = s_.ops.backward();
    for (const PassOps& pass : passes_) {
      issuing.push_back({main_[pass.forward.front()].begin, main_[pass.forward.back()].end});
      issuing.push_back({backward[pass.backward.front()].begin, backward[pass.backward.back()].end});
    }
    std::vector<Interval> not_issuing = outside_;
    const std::vector<Interval> waits = overlapping(window_, s_.waits);
    not_issuing.insert(not_issuing.end(), waits.begin(), waits.end());
    not_issuing = united(std::move(not_issuing));
    for (const Interval& one : united(std::move(issuing)))
      step_.issuing += one.length() - covered(one, not_issuing);
    step_.issued_kernels = step_.optimizer_kernels;
    for (const MeasuredLayer& layer : step_.layers)
      step_.issued_kernels += layer.forward_kernels + layer.backward_kernels;
  }

  const StepSource& s_;
  const std::size_t number_;
  const Interval window_;
  const std::vector<OuterOp>& main_;
  MeasuredStep step_;
  std::vector<Interval> updates_;
  std::vector<PassOps> passes_;
  // When the GPU idles outside of passes and updates, up to the launch of the next kernel.
  std::vector<Interval> outside_;
  std::unordered_map<std::size_t, int> maker_;       // by backward operator: its node's creator
  std::unordered_map<std::uint32_t, int> layer_of_;  // by event of an outer operator
};

}  // namespace

MeasuredStep measure_step(const StepSource& source, std::size_t window) {
  return StepReader(source, window).read();
}

}  // namespace rehearse
