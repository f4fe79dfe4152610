#include "gui/models/timeline/step_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/text/number_in.hpp"

namespace rehearse::gui {
namespace {

constexpr std::string_view kMark = "ProfilerStep#";

std::optional<int> step_marked(std::string_view name) {
  if (!name.starts_with(kMark)) return std::nullopt;
  return number_in<int>(name.substr(kMark.size()));
}

// Returns "rank 5" for "rank 5, GPU 0" and "rank 5: host"; empty if the name contains no rank.
std::string_view rank_in(std::string_view name) {
  return name.substr(0, name.rfind("rank ", 0) == 0 ? name.find_first_of(",:") : 0);
}

}  // namespace

std::optional<TimeRange> told_step(const Timeline& timeline, std::optional<int> warmup) {
  const SpanColumns& spans = timeline.spans;
  int last = -1;
  for (const std::int32_t step : spans.step) last = std::max(last, step);
  if (last < 0) return std::nullopt;
  const Time zero = std::min<Time>(0, -timeline.origin);  // time 0 of the file, where the first step begins
  std::vector<Time> end(static_cast<std::size_t>(last) + 1, zero);
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans.step[i] >= 0) {
      Time& its = end[static_cast<std::size_t>(spans.step[i])];
      its = std::max(its, spans.end[i]);
    }
  for (std::size_t step = 1; step < end.size(); ++step) end[step] = std::max(end[step], end[step - 1]);
  const auto window = [&](std::size_t step) { return TimeRange{step > 0 ? end[step - 1] : zero, end[step]}; };
  const auto latest = static_cast<std::size_t>(last);
  if (!warmup || *warmup < 0 || *warmup > last) return window(latest);

  std::vector<std::size_t> steps;
  for (auto step = static_cast<std::size_t>(*warmup); step <= latest; ++step) steps.push_back(step);
  std::stable_sort(steps.begin(), steps.end(),
                   [&](std::size_t a, std::size_t b) { return window(a).length() < window(b).length(); });
  return window(steps[(steps.size() - 1) / 2]);
}

AnnotatedSteps annotated_steps(const Timeline& timeline) {
  // A GPU stream can carry the same marks around its own work; the host's mark begins first, so keep the
  // earliest.
  std::vector<std::map<int, TimeRange>> marked(timeline.processes.size());
  std::map<std::uint32_t, std::optional<int>> number_of;  // by string
  for (const Row& row : timeline.rows) {
    if (row.track < 0) continue;
    for (SpanId span = row.first; span < row.last; ++span) {
      if (timeline.spans.kind[span] != Kind::annotation) continue;
      const std::uint32_t name = timeline.spans.name[span];
      const auto [it, is_new] = number_of.try_emplace(name);
      if (is_new) it->second = step_marked(timeline.strings[name]);
      if (!it->second) continue;
      const TimeRange range{timeline.spans.begin[span], timeline.spans.end[span]};
      auto& its = marked[static_cast<std::size_t>(row.process)];
      const auto [known, first] = its.try_emplace(*it->second, range);
      if (!first && range.begin < known->second.begin) known->second = range;
    }
  }
  // The host's mark determines the duration of a step: the GPU's mark already ends with the last kernel.
  for (std::size_t gpu = 0; gpu < marked.size(); ++gpu)
    for (std::size_t host = 0; host < marked.size(); ++host)
      if (timeline.processes[gpu].device && !timeline.processes[host].device && !marked[host].empty() &&
          rank_in(timeline.processes[gpu].name) == rank_in(timeline.processes[host].name))
        marked[gpu] = marked[host];
  std::set<int> numbers;
  for (const auto& its : marked)
    for (const auto& [number, range] : its) numbers.insert(number);
  AnnotatedSteps steps;
  if (numbers.empty()) return steps;
  if (numbers.size() >= 3) {
    steps.left_out = fmt::format("{}{}", kMark, *numbers.begin());
    numbers.erase(numbers.begin());
  }
  steps.steps = static_cast<int>(numbers.size());
  steps.windows.resize(timeline.processes.size());
  for (std::size_t p = 0; p < marked.size(); ++p)
    for (const auto& [number, range] : marked[p]) {
      if (numbers.count(number) == 0) continue;
      for (TimeRange* window : {&steps.windows[p], &steps.whole})
        *window = window->length() <= 0
                      ? range
                      : TimeRange{std::min(window->begin, range.begin), std::max(window->end, range.end)};
    }
  return steps;
}

}  // namespace rehearse::gui
