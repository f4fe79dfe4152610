#include "simulator/costs/link_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

constexpr std::size_t kMostRanges = 64, kMostCurves = 1000;

// Parses a TOML table such as {value = 20, low = 18, high = 25}, whose numbers are in `unit`.
Spread read_spread(Section& section, std::string_view key, Range range, double unit) {
  Section table = section.section(key);
  if (!table.present()) section.refuse(key, "missing", "a table {value, low, high}");
  const double value = table.number("value", range);
  const double low = table.number("low", range, value), high = table.number("high", range, value);
  if (low > value) table.refuse("low", fmt::format("{}", low), fmt::format("at most the value, {}", value));
  if (high < value)
    table.refuse("high", fmt::format("{}", high), fmt::format("at least the value, {}", value));
  table.finish();
  return {value * unit, low * unit, high * unit};
}

SizeRange read_range(Section& section) {
  constexpr Range kLatency{0, 1e9}, kBandwidth{1e-9, 1e9};
  SizeRange range;
  range.from_bytes = section.number("from_bytes", kNotNegative);
  range.latency_s = read_spread(section, "latency_us", kLatency, 1e-6);
  const bool bandwidth = section.has("gb_per_s"), efficiency = section.has("efficiency");
  if (bandwidth && efficiency)
    section.refuse("efficiency", "given with gb_per_s", "one of gb_per_s, efficiency");
  if (efficiency)
    range.efficiency = read_spread(section, "efficiency", kFraction, 1);
  else
    range.bandwidth = read_spread(section, "gb_per_s", kBandwidth, 1e9);
  range.error = section.number("error", kNotNegative, 0);
  section.finish();
  return range;
}

LinkCurve read_curve(Section& section, bool collective) {
  section.expect({"where", "range"});
  if (collective) section.expect({"kind", "ranks"});
  LinkCurve curve;
  curve.reach = static_cast<Reach>(section.choice("where", kReachNames));
  if (collective) {
    curve.kind = static_cast<CollectiveKind>(section.choice("kind", kCollectiveNames));
    curve.ranks = static_cast<int>(section.integer("ranks", 2, 1'000'000));
  }
  for (Section& range : section.sections("range")) {
    if (curve.ranges.size() == kMostRanges)
      section.refuse("range", fmt::format("more than {} ranges", kMostRanges),
                     fmt::format("at most {}", kMostRanges));
    curve.ranges.push_back(read_range(range));
    const double from = curve.ranges.back().from_bytes;
    if (curve.ranges.size() == 1 && from != 0)
      range.refuse("from_bytes", fmt::format("{}", from), "0 in the first range");
    if (curve.ranges.size() > 1 && from <= curve.ranges.end()[-2].from_bytes)
      range.refuse("from_bytes", fmt::format("{}", from),
                   fmt::format("more than {}, because ranges ascend", curve.ranges.end()[-2].from_bytes));
  }
  if (curve.ranges.empty()) section.refuse("range", "missing", "tables [[range]], the first from 0 bytes");
  section.finish();
  return curve;
}

bool same(const LinkCurve& a, const LinkCurve& b) {
  return a.reach == b.reach && a.ranks == b.ranks && (a.ranks == 0 || a.kind == b.kind);
}

}  // namespace

const SizeRange& LinkCurve::range_of(double bytes) const {
  const auto behind = std::upper_bound(ranges.begin() + 1, ranges.end(), bytes,
                                       [](double b, const SizeRange& range) { return b < range.from_bytes; });
  return behind[-1];
}

const LinkCurve* LinkProfile::messages(Reach reach) const {
  for (const LinkCurve& curve : curves)
    if (curve.ranks == 0 && curve.reach == reach) return &curve;
  return nullptr;
}

const LinkCurve* LinkProfile::collective(CollectiveKind kind, Reach reach, int ranks) const {
  const LinkCurve* nearest = nullptr;
  double distance = 0;
  for (const LinkCurve& curve : curves) {
    if (curve.ranks == 0 || curve.kind != kind || curve.reach != reach) continue;
    const double far = std::abs(std::log(static_cast<double>(curve.ranks) / ranks));
    const bool nearer =
        nearest == nullptr || far < distance || (far == distance && curve.ranks > nearest->ranks);
    if (!nearer) continue;
    nearest = &curve;
    distance = far;
  }
  return nearest != nullptr ? nearest : messages(reach);
}

LinkProfile read_link_profile(Section& root) {
  root.expect({"title", "date", "hardware", "versions", "command", "basis", "message", "collective"});
  LinkProfile profile;
  profile.title = root.text("title");
  profile.date = root.text("date");
  profile.hardware = root.text("hardware");
  profile.versions = root.text("versions");
  profile.command = root.text("command", "");
  profile.basis =
      static_cast<Basis>(root.choice("basis", kBasisNames, static_cast<std::size_t>(Basis::measured)));
  for (const bool collective : {false, true}) {
    const std::string_view key = collective ? "collective" : "message";
    for (Section& section : root.sections(key)) {
      if (profile.curves.size() == kMostCurves)
        root.refuse(key, fmt::format("more than {} tables", kMostCurves),
                    fmt::format("at most {}", kMostCurves));
      LinkCurve curve = read_curve(section, collective);
      for (const LinkCurve& other : profile.curves)
        if (same(other, curve))
          section.refuse("where", "described twice", "one table for each place, kind and number of ranks");
      profile.curves.push_back(std::move(curve));
    }
  }
  if (!profile.messages(Reach::in_node) && !profile.messages(Reach::between_nodes))
    root.refuse("message", "missing", "tables [[message]] with where = \"in-node\" or \"between-nodes\"");
  root.finish();
  return profile;
}

LinkProfile read_link_profile_file(const std::string& path) {
  Document document = Document::parse_file(path);
  Section root = document.root();
  return read_link_profile(root);
}

}  // namespace rehearse
