#include "gui/models/timeline/rank_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

namespace rehearse::gui {

namespace {

constexpr std::size_t kWindows = 8;
constexpr double kDifference = 0.1;     // share of the time by which ranks of one kind can differ
constexpr std::size_t kManyAlike = 33;  // minimum without a pipeline; with fewer, each rank keeps its own row
constexpr std::size_t kMostListed = 4;

// Shares of the total time, by window and kind.
using Profile = std::array<float, kWindows * kKindNames.size()>;

Profile profile_of(const Timeline& timeline, const Row& row) {
  Profile profile{};
  const double whole = std::max<double>(1, static_cast<double>(timeline.end - timeline.begin));
  // Divides first, because multiplying the times of a broken trace could overflow.
  const Time window_length = (timeline.end - timeline.begin) / Time{kWindows};
  const auto begin_of = [&](std::size_t window) {
    return timeline.begin + window_length * static_cast<Time>(window);
  };
  std::size_t window = 0;
  for (SpanId s = row.first; s < row.last; ++s) {
    Time from = timeline.spans.begin[s];
    const Time to = timeline.spans.end[s];
    const auto kind = static_cast<std::size_t>(timeline.spans.kind[s]);
    while (window + 1 < kWindows && from >= begin_of(window + 1)) ++window;
    for (std::size_t w = window; from < to; ++w) {
      const Time until = w + 1 < kWindows ? std::min(to, begin_of(w + 1)) : to;
      profile[w * kKindNames.size() + kind] += static_cast<float>(static_cast<double>(until - from) / whole);
      from = until;
    }
  }
  return profile;
}

bool alike(const Profile& a, const Profile& b) {
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference += std::abs(a[i] - b[i]);
  return difference <= kDifference;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Splits a name alternately into texts and numbers, beginning with a text.
std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  std::size_t from = 0;
  bool digits = false;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && is_digit(name[i]) == digits) continue;
    parts.push_back(name.substr(from, i - from));
    from = i;
    digits = !digits;
  }
  return parts;
}

std::string numbers_text(std::vector<long> numbers) {
  std::sort(numbers.begin(), numbers.end());
  if (numbers.back() - numbers.front() == std::ssize(numbers) - 1)
    return fmt::format("{}-{}", numbers.front(), numbers.back());
  std::string text;
  for (std::size_t i = 0; i < std::min(numbers.size(), kMostListed); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", numbers[i]);
  return numbers.size() > kMostListed ? text + ", ..." : text;
}

}  // namespace

bool is_pipeline(const Timeline& timeline) {
  const std::string* first = nullptr;
  for (const Process& process : timeline.processes) {
    if (process.stage.empty()) continue;
    if (first != nullptr && process.stage != *first) return true;
    first = &process.stage;
  }
  return false;
}

std::string common_name(const std::vector<std::string_view>& names) {
  if (names.empty()) return {};
  std::vector<std::vector<std::string_view>> parts;
  for (const std::string_view name : names) parts.push_back(parts_of(name));
  // The first difference must be a number that is different in each name.
  const auto& first = parts.front();
  std::vector<std::size_t> differ;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (std::any_of(parts.begin(), parts.end(),
                    [&](const auto& other) { return other.size() != first.size() || other[i] != first[i]; }))
      differ.push_back(i);
  std::vector<long> numbers;
  if (!differ.empty() && differ.front() % 2 == 1)
    for (const auto& other : parts) {
      long number = 0;
      const std::string_view text = differ.front() < other.size() ? other[differ.front()] : "";
      if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) break;
      if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
    }
  if (numbers.size() != names.size()) {
    // Returns the common prefix up to its last comma.
    std::string_view shared = names.front();
    for (const std::string_view name : names)
      shared = shared.substr(
          0,
          static_cast<std::size_t>(
              std::mismatch(shared.begin(), shared.end(), name.begin(), name.end()).first - shared.begin()));
    if (names.size() == 1) return std::string(shared);
    if (const auto comma = shared.rfind(','); comma != std::string_view::npos)
      return std::string(shared.substr(0, comma));
    return fmt::format("{} and {} more", names.front(), names.size() - 1);
  }
  std::string text;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (i > differ.front() && differ.size() > 1) break;  // a later part differs as well
    text += i == differ.front() ? numbers_text(numbers) : first[i];
  }
  return text;
}

void find_kinds(Timeline& timeline) {
  struct Alike {
    Profile profile;
    std::vector<std::size_t> processes;
  };
  using Key = std::tuple<std::string, std::string, bool, std::vector<std::string>>;
  std::map<Key, std::vector<Alike>> kinds;
  for (std::size_t p = 0; p < timeline.processes.size(); ++p) {
    Process& process = timeline.processes[p];
    process.kind.clear();
    if (process.summary_row < 0) continue;
    std::vector<std::string> tracks;
    for (int t = process.first_track; t < process.last_track; ++t)
      tracks.push_back(timeline.tracks[static_cast<std::size_t>(t)].name);
    auto& known = kinds[{process.stage, process.role, process.device, std::move(tracks)}];
    const Profile profile =
        profile_of(timeline, timeline.rows[static_cast<std::size_t>(process.summary_row)]);
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&](const Alike& kind) { return alike(kind.profile, profile); });
    if (at == known.end())
      known.push_back({profile, {p}});
    else
      at->processes.push_back(p);
  }
  const std::size_t least = is_pipeline(timeline) ? 2 : kManyAlike;
  std::set<std::string> used;
  for (const auto& [key, of_key] : kinds)
    for (const Alike& kind : of_key) {
      if (kind.processes.size() < least) continue;
      std::vector<std::string_view> names;
      for (const std::size_t p : kind.processes) names.push_back(timeline.processes[p].name);
      std::string name = common_name(names);
      while (!used.insert(name).second) name += '\'';
      for (const std::size_t p : kind.processes) timeline.processes[p].kind = name;
    }
}

}  // namespace rehearse::gui
