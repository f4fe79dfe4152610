#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "models/text/error.hpp"
#include "simulator/profiler/profiler_trace.hpp"
#include "simulator/report/text_stream.hpp"

namespace rehearse {
namespace {

constexpr const char* kAllowed = "a trace of PyTorch's profiler (prof.export_chrome_trace)";

// PyTorch's element types by their names in record_shapes (c10/core/ScalarType.h; typeMeta names).
struct ElementType {
  std::string_view name;
  std::uint8_t bytes;
  bool integer;
};
constexpr ElementType kElementTypes[] = {{"float", 4, false},
                                         {"double", 8, false},
                                         {"c10::Half", 2, false},
                                         {"c10::BFloat16", 2, false},
                                         {"long int", 8, true},
                                         {"long", 8, true},
                                         {"int", 4, true},
                                         {"short int", 2, true},
                                         {"signed char", 1, true},
                                         {"unsigned char", 1, true},
                                         {"bool", 1, true},
                                         {"c10::Float8_e4m3fn", 1, false},
                                         {"c10::Float8_e5m2", 1, false}};

// Accelerators by the numbers of c10::DeviceType (c10/core/DeviceType.h of pytorch/pytorch). CPU is 0, CUDA
// 1, HIP 6.
struct AcceleratorType {
  int number;
  const char* name;
};
constexpr AcceleratorType kAcceleratorTypes[] = {
    {7, "fpga"}, {8, "maia"}, {9, "xla"}, {10, "vulkan"}, {11, "metal"}, {12, "xpu"},
    {13, "mps"}, {15, "hpu"}, {16, "ve"}, {18, "ipu"},    {19, "mtia"},  {20, "privateuse1"}};

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

// What the category of an event says about an accelerator, such as "xpu_runtime" or "mtia_ccp_events".
struct AcceleratorCategory {
  std::string accelerator;  // empty: the category is of no accelerator, or of a GPU of CUDA or HIP
  ProfilerEventKind kind = ProfilerEventKind::launch;
};
AcceleratorCategory accelerator_category(std::string_view category) {
  const std::size_t at = category.find('_');
  if (at == std::string_view::npos) return {};
  const std::string name = in_lower_case(category.substr(0, at));
  if (is_one_of(name, {"cpu", "gpu", "cuda", "hip", "user", "python"})) return {};
  const std::string_view what = category.substr(at + 1);
  if (is_one_of(what, {"runtime", "driver"})) return {name, ProfilerEventKind::launch};
  if (is_one_of(what, {"op", "kernel", "memcpy", "memset", "ccp_events"}))
    return {name, ProfilerEventKind::kernel};
  return {};
}

// Tracks the parser's position in the file by levels of brackets, counted from the outermost.
class TraceHandler : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit TraceHandler(ProfilerTrace& trace) : trace_(trace) {}

  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value), static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    const bool whole = std::abs(value) < 9e18;
    return number(value, whole ? static_cast<std::int64_t>(value) : 0);
  }
  bool string(string_t& value) override {
    if (in_event_ && level_ == event_level_) {
      text_field(value);
    } else if (in_args_ && level_ == event_level_ + 1 && arg_ == "Device Type") {
      name_accelerator(in_lower_case(value));
    } else if (in_args_ && level_ == event_level_ + 2 && arg_ == "Input type" && item_ == 0) {
      for (const ElementType& type : kElementTypes)
        if (type.name == value) {
          event_.element_bytes = type.bytes;
          event_.integers = type.integer;
        }
    } else if (level_ == 3 && top_ == "deviceProperties" && key_ == "name" && trace_.gpu.empty()) {
      trace_.gpu = value;
    } else if (level_ == 2 && top_ == "distributedInfo" && key_ == "backend") {
      trace_.communication = value;
    }
    return scalar();
  }
  bool binary(binary_t&) override { return scalar(); }
  bool key(string_t& value) override {
    if (level_ == 1) top_ = value;
    if (level_ == 2 && top_ == "otherData" && (value == "scenario_text" || value == "result")) ours_ = true;
    if (in_args_ && level_ == event_level_ + 1)
      arg_ = value;
    else
      key_ = value;
    return true;
  }
  bool start_object(std::size_t) override {
    ++level_;
    if (in_events_ && !in_event_) {
      in_event_ = true;
      event_level_ = level_;
      event_ = {};
      event_.name = kNoName;
      phase_ = '\0';
      name_.clear();
      group_.clear();
      duration_us_ = time_us_ = -1;
      pid_ = tid_ = "";
    } else if (in_event_ && level_ == event_level_ + 1 && key_ == "args") {
      in_args_ = true;
      arg_.clear();
    }
    return true;
  }
  bool end_object() override {
    if (in_event_ && level_ == event_level_) {
      if (!keep_event()) return false;
      in_event_ = false;
    }
    if (in_args_ && level_ == event_level_ + 1) in_args_ = false;
    --level_;
    next_item();
    return true;
  }
  bool start_array(std::size_t) override {
    ++level_;
    if (!in_events_ && ((level_ == 2 && top_ == "traceEvents") || level_ == 1)) {
      in_events_ = is_trace_ = true;
      events_level_ = level_;
    }
    if (in_args_ && level_ == event_level_ + 2) item_ = 0;
    if (in_dims() && level_ == event_level_ + 3) {
      event_.elements = 1;
      dimension_ = 0;
    }
    if (in_dims() && level_ == event_level_ + 4) event_.elements = -1;  // a list of tensors
    return true;
  }
  bool end_array() override {
    if (in_events_ && level_ == events_level_) in_events_ = false;
    --level_;
    next_item();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    constexpr int kNumberOutOfRange = 406;
    error_at_ = position;
    number_too_large_ = error.id == kNumberOutOfRange;
    return false;
  }

  bool is_trace() const { return is_trace_; }
  bool ours() const { return ours_; }
  bool too_many() const { return too_many_; }
  bool number_too_large() const { return number_too_large_; }
  std::size_t error_at() const { return error_at_; }

private:
  static constexpr std::uint32_t kNoName = 0xffffffff;

  // Returns whether the parser is in the dimensions of the first input.
  bool in_dims() const { return in_args_ && item_ == 0 && arg_ == "Input Dims"; }

  void next_item() {
    if (in_args_ && level_ == event_level_ + 2) ++item_;
  }
  bool scalar() {
    next_item();
    return true;
  }
  bool number(double value, std::int64_t whole) {
    if (in_event_ && level_ == event_level_) {
      if (key_ == "ts") time_us_ = value;
      if (key_ == "dur") duration_us_ = value;
      if (key_ == "tid") tid_ = std::to_string(whole);
      if (key_ == "pid") pid_ = std::to_string(whole);
    } else if (in_args_ && level_ == event_level_ + 1) {
      if (arg_ == "Sequence number") event_.sequence = whole;
      for (const AcceleratorType& type : kAcceleratorTypes)
        if (arg_ == "Device Type" && whole == type.number) name_accelerator(type.name);
      if (arg_ == "Fwd thread id") event_.backward = whole > 0;
      if (arg_ == "correlation" && whole > 0) event_.correlation = static_cast<std::uint32_t>(whole);
    } else if (in_dims() && level_ == event_level_ + 3 && event_.elements >= 0) {
      event_.elements *= value;
      if (dimension_++ == 0) event_.leading = value;
    } else if (in_args_ && item_ == 1 && arg_ == "Input Dims" && level_ == event_level_ + 3 &&
               event_.second_leading == 0) {
      event_.second_leading = value;
    } else if (level_ == 2 && top_ == "distributedInfo" && key_ == "world_size" && whole > 0) {
      trace_.ranks = static_cast<int>(std::min<std::int64_t>(whole, 1'000'000));
    }
    return scalar();
  }
  void text_field(const std::string& value) {
    if (key_ == "ph") phase_ = value.size() == 1 ? value[0] : '\0';
    if (key_ == "name") name_ = value;
    if (key_ == "cat") group_ = value;
    if (key_ == "tid") tid_ = value;
    if (key_ == "pid") pid_ = value;
  }

  // Names the accelerator that the trace is of, unless it is a GPU of CUDA or HIP.
  void name_accelerator(const std::string& name) {
    if (trace_.accelerator.empty() && !is_one_of(name, {"", "cpu", "cuda", "hip", "gpu"}))
      trace_.accelerator = name;
  }

  // Sets the event's kind; returns false for events that are not retained. Categories:
  // libkineto/src/ActivityType.cpp of pytorch/kineto; until 2022 operators had the category "Operator" and
  // runtime calls "Runtime". Those of other
  // accelerators begin with their names.
  bool sort_event() {
    if (phase_ != 'X' || time_us_ < 0 || duration_us_ < 0) return false;
    if (group_ == "cpu_op" || group_ == "Operator") {
      event_.kind = name_.rfind("ProfilerStep#", 0) == 0 || name_.rfind("Optimizer.", 0) == 0
                        ? ProfilerEventKind::annotation
                        : ProfilerEventKind::op;
    } else if (group_ == "user_annotation") {
      event_.kind = ProfilerEventKind::annotation;
    } else if (group_ == "python_function") {
      if (name_.rfind("nn.Module: ", 0) != 0) return false;
      event_.kind = ProfilerEventKind::module;
    } else if (group_ == "cuda_runtime" || group_ == "cuda_driver" || group_ == "hip_runtime" ||
               group_ == "hip_driver" || group_ == "Runtime") {
      event_.kind = ProfilerEventKind::launch;
    } else if (group_ == "kernel" || group_ == "gpu_memcpy" || group_ == "gpu_memset" || group_ == "Kernel" ||
               group_ == "Memcpy" || group_ == "Memset") {
      event_.kind = ProfilerEventKind::kernel;
      trace_.has_kernels = true;
    } else {
      const AcceleratorCategory category = accelerator_category(group_);
      if (category.accelerator.empty()) return false;
      name_accelerator(category.accelerator);
      event_.kind = category.kind;
      if (category.kind == ProfilerEventKind::kernel) trace_.has_kernels = true;
    }
    return true;
  }
  bool keep_event() {
    if (!sort_event()) return true;
    if (trace_.events.size() == kMostProfilerEvents) {
      too_many_ = true;
      return false;
    }
    event_.begin_us = time_us_;
    event_.end_us = time_us_ + duration_us_;
    const auto [name, fresh] = names_.try_emplace(name_, static_cast<std::uint32_t>(trace_.names.size()));
    if (fresh) trace_.names.push_back(name_);
    event_.name = name->second;
    event_.thread =
        threads_.try_emplace({pid_, tid_}, static_cast<std::uint32_t>(threads_.size())).first->second;
    trace_.events.push_back(event_);
    return true;
  }

  ProfilerTrace& trace_;
  int level_ = 0, events_level_ = 0, event_level_ = 0, item_ = 0, dimension_ = 0;
  bool in_events_ = false, in_event_ = false, in_args_ = false;
  bool is_trace_ = false, ours_ = false, too_many_ = false, number_too_large_ = false;
  std::size_t error_at_ = 0;
  std::string top_, key_, arg_;  // the keys that lead to the parser's position
  ProfilerEvent event_;          // the event being parsed
  std::string name_, group_, pid_, tid_;
  char phase_ = '\0';
  double time_us_ = -1, duration_us_ = -1;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> threads_;
};

}  // namespace

ProfilerTrace read_profiler_trace(const std::string& path) {
  ProfilerTrace trace;
  trace.file = path;
  TraceHandler handler(trace);
  const auto refuse = [&](const std::string& found) {
    throw InputError({path, 0, 0}, fmt::format("{}; allowed: {}", found, kAllowed));
  };
  TextStream text(path, "trace of PyTorch's profiler");
  if (text.at_end()) refuse("is empty");
  const bool whole = nlohmann::json::sax_parse(TextCharacters(text), TextCharacters(), &handler);
  if (handler.number_too_large()) refuse("holds a number that is too large for a double");
  if (handler.too_many()) refuse(fmt::format("has more than {} events", kMostProfilerEvents));
  if (!whole)
    refuse(text.at_end() ? fmt::format("the JSON ends too early, after byte {}", handler.error_at())
                         : fmt::format("not JSON from byte {} on", handler.error_at()));
  if (!handler.is_trace()) refuse("JSON without traceEvents");
  if (handler.ours())
    refuse("is a trace that Rehearse wrote, which `rehearse validate` and `rehearse-gui` read");
  return trace;
}

}  // namespace rehearse
