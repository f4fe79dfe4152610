#include "gui/models/timeline/event_kinds.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "simulator/schedule/op.hpp"

namespace rehearse::gui {
namespace {

bool starts(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}
bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The first matching rule applies. `name` is a pattern: "x*" matches names that begin with x, "*x*" those
// that contain it, "" all.
struct Rule {
  std::string_view category, name;
  Kind kind;
  Pass pass;
};
bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return true;
  if (pattern.front() == '*') return contains(name, pattern.substr(1, pattern.size() - 2));
  return starts(name, pattern.substr(0, pattern.size() - 1));
}

using enum Kind;
constexpr Pass kNone = Pass::none, kForward = Pass::forward, kBackward = Pass::backward,
               kOptimizer = Pass::optimizer;
constexpr std::array kRules = {
    Rule{"kernel", "nccl*", communication, kNone},
    Rule{"kernel", "*ncclDevKernel*", communication, kNone},
    Rule{"kernel", "*ncclKernel*", communication, kNone},
    Rule{"kernel", "rccl*", communication, kNone},
    Rule{"kernel", "*nvshmem*", communication, kNone},
    Rule{"kernel", "*multi_tensor_apply*", compute, kOptimizer},
    Rule{"kernel", "*adam*", compute, kOptimizer},
    Rule{"kernel", "*Adam*", compute, kOptimizer},
    Rule{"kernel", "*backward*", compute, kBackward},
    Rule{"kernel", "*_bwd*", compute, kBackward},
    Rule{"kernel", "*dgrad*", compute, kBackward},
    Rule{"kernel", "*wgrad*", compute, kBackward},
    Rule{"kernel", "*_fwd*", compute, kForward},
    Rule{"kernel", "", compute, kNone},
    Rule{"memcpy", "", copy, kNone},
    Rule{"memset", "", copy, kNone},
    // Ops on the CPU. If the trace has GPUs, they only launch the collectives.
    Rule{"cpu_op", "gloo:*", communication, kNone},
    Rule{"cpu_op", "nccl:*", communication, kNone},
    Rule{"cpu_op", "mpi:*", communication, kNone},
    Rule{"cpu_op", "c10d::*", communication, kNone},
    Rule{"cpu_op", "_c10d_functional::*", communication, kNone},
    Rule{"cpu_op", "record_param_comms*", communication, kNone},
    Rule{"user_annotation", "gloo:*", communication, kNone},
    Rule{"user_annotation", "nccl:*", communication, kNone},
    Rule{"user_annotation", "mpi:*", communication, kNone},
    Rule{"user_annotation", "c10d::*", communication, kNone},
    Rule{"user_annotation", "enumerate(DataLoader)*", data, kNone},
    Rule{"cpu_op", "enumerate(DataLoader)*", data, kNone},
    Rule{"cpu_op", "autograd::engine::evaluate_function*", host, kBackward},
    Rule{"cpu_op", "*Backward*", host, kBackward},
    Rule{"cpu_op", "*_backward*", host, kBackward},
    Rule{"cpu_op", "torch::autograd::AccumulateGrad*", host, kBackward},
    Rule{"cpu_op", "Optimizer.*", host, kOptimizer},
    Rule{"cpu_op", "", host, kNone},
    Rule{"annotation", "Optimizer.*", annotation, kOptimizer},
    Rule{"annotation", "*backward*", annotation, kBackward},
    Rule{"annotation", "*Backward*", annotation, kBackward},
    Rule{"annotation", "*forward*", annotation, kForward},
    Rule{"annotation", "", annotation, kNone},
    Rule{"host", "", host, kNone},
};

// The category names of different profiler versions and vendors.
struct Category {
  std::string_view name, rules;
  bool gpu;
};
constexpr std::array kCategories = {
    Category{"kernel", "kernel", true},
    Category{"Kernel", "kernel", true},
    Category{"gpu_memcpy", "memcpy", true},
    Category{"Memcpy", "memcpy", true},
    Category{"gpu_memset", "memset", true},
    Category{"Memset", "memset", true},
    Category{"gpu_user_annotation", "annotation", true},
    Category{"user_annotation", "user_annotation", false},
    Category{"Trace", "annotation", false},
    Category{"cpu_op", "cpu_op", false},
    Category{"Operator", "cpu_op", false},
    Category{"cuda_runtime", "host", false},
    Category{"cuda_driver", "host", false},
    Category{"Runtime", "host", false},
    Category{"privateuse1_runtime", "host", false},
    Category{"xpu_runtime", "host", false},
    Category{"python_function", "host", false},
    Category{"Python function", "host", false},
    Category{"python_gc", "host", false},
    Category{"overhead", "host", false},
    Category{"cuda_sync", "host", false},
};

const Category* category_of(std::string_view name) {
  const auto* const it =
      std::find_if(kCategories.begin(), kCategories.end(), [&](const Category& c) { return c.name == name; });
  return it == kCategories.end() ? nullptr : it;
}

}  // namespace

Sorted sorted_op(std::string_view category, std::string_view kind, std::string_view host_action) {
  if (kind == "compute") {
    if (category == "forward") return {compute, kForward};
    if (category == "recompute") return {compute, Pass::recompute};
    if (category == "backward_weight") return {compute, Pass::weights};
    if (starts(category, "backward")) return {compute, kBackward};
    return {compute, category == "optimizer" ? kOptimizer : kNone};
  }
  if (kind == "exchange" && category == "data") return {data, kNone};
  if (kind == "exchange" ||
      std::find(kCollectiveNames.begin(), kCollectiveNames.end(), kind) != kCollectiveNames.end())
    return {communication, kNone};
  if (kind == "host") {
    const auto is = [&](HostAction action) {
      return host_action == kHostActionNames[static_cast<std::size_t>(action)];
    };
    if (is(HostAction::write_checkpoint)) return {checkpoint, kNone};
    if (is(HostAction::update)) return {host, kOptimizer};
    for (const HostAction moved : {HostAction::copy_to_host, HostAction::copy_to_device,
                                   HostAction::read_nvme, HostAction::write_nvme})
      if (is(moved)) return {copy, kNone};
    return {is(HostAction::load_batch) ? data : waiting, kNone};
  }
  return {kind == "wait_until" ? waiting : other, kNone};
}

std::optional<Sorted> sorted_profiled(std::string_view category, std::string_view name) {
  const Category* const known = category_of(category);
  if (known == nullptr) return std::nullopt;
  for (const std::string_view rules : {known->rules, std::string_view("annotation")}) {
    for (const Rule& rule : kRules)
      if (rule.category == rules && fits(rule.name, name)) return Sorted{rule.kind, rule.pass};
  }
  return Sorted{};
}

bool is_on_gpu(std::string_view category) {
  const Category* const known = category_of(category);
  return known != nullptr && known->gpu;
}

int bytes_of_type(std::string_view type) {
  if (starts(type, "c10::")) type.remove_prefix(5);
  struct Size {
    std::string_view name;
    int bytes;
  };
  constexpr std::array kSizes = {
      Size{"double", 8}, Size{"long", 8},        Size{"int64", 8},        Size{"float64", 8},
      Size{"float8", 1}, Size{"float16", 2},     Size{"float", 4},        Size{"int8", 1},
      Size{"int16", 2},  Size{"int", 4},         Size{"uint8", 1},        Size{"half", 2},
      Size{"bfloat", 2}, Size{"short", 2},       Size{"byte", 1},         Size{"char", 1},
      Size{"bool", 1},   Size{"signed char", 1}, Size{"unsigned char", 1}};
  std::string lower(type);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Size& size : kSizes)
    if (starts(lower, size.name)) return size.bytes;
  return 0;
}

}  // namespace rehearse::gui
