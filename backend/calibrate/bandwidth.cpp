#include "backend/calibrate/bandwidth.hpp"

#include <fmt/format.h>

namespace rehearse {
namespace {

// Returns the share of the buffer that is passed to an operation.
double share_of_call(CollectiveKind kind, int ranks) {
  const bool parts = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather;
  return parts ? 1.0 / ranks : 1;
}

bool adds_up(const LinkCurve& curve) {
  using enum CollectiveKind;
  return curve.ranks > 0 &&
         (curve.kind == all_reduce || curve.kind == reduce_scatter || curve.kind == reduce);
}

std::string name_of(const LinkCurve& curve) {
  return curve.ranks == 0 ? "message" : std::string(kCollectiveNames[static_cast<std::size_t>(curve.kind)]);
}

const char* type_of(const LinkCurve& curve) {
  return curve.ranks == 0 ? "uint8" : "float";
}

const char* operation_of(const LinkCurve& curve) {
  return adds_up(curve) ? "sum" : "none";
}

}  // namespace

double bus_factor(CollectiveKind kind, int ranks) {
  if (ranks == 0) return 1;
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      break;
  }
  return 1;
}

std::vector<Bandwidth> bandwidths(const MeasuredLink& link) {
  const LinkCurve& curve = link.curve;
  std::vector<Bandwidth> all;
  for (const SizedSample& s : link.whole) {
    Bandwidth& b = all.emplace_back();
    const bool pairs = curve.ranks > 0 && curve.kind == CollectiveKind::all_to_all;
    b.bytes = pairs ? s.bytes * curve.ranks : s.bytes;
    b.count = curve.ranks == 0 ? s.bytes : s.bytes / 4 * share_of_call(curve.kind, curve.ranks);
    b.time = s.time;
    b.algorithm = b.bytes / s.time.median_s;
    b.bus = b.algorithm * bus_factor(curve.kind, curve.ranks);
  }
  return all;
}

std::string bandwidth_text(const MeasuredLink& link) {
  const LinkCurve& curve = link.curve;
  std::string text = fmt::format(
      "\n  {}{}, {}\n  {:>12}{:>12}{:>8}{:>8}{:>11}{:>9}{:>9}\n  {:>12}{:>12}{:>8}{:>8}{:>11}{:>9}{:>9}\n",
      name_of(curve), curve.ranks == 0 ? "" : fmt::format(" of {}", curve.ranks),
      kReachNames[static_cast<std::size_t>(curve.reach)], "size", "count", "type", "redop", "time", "algbw",
      "busbw", "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)");
  for (const Bandwidth& b : bandwidths(link))
    text += fmt::format("  {:>12.0f}{:>12.0f}{:>8}{:>8}{:>11.2f}{:>9.2f}{:>9.2f}\n", b.bytes, b.count,
                        type_of(curve), operation_of(curve), 1e6 * b.time.median_s, b.algorithm / 1e9,
                        b.bus / 1e9);
  return text;
}

std::string bandwidth_csv(const MeasuredLink& link, const std::string& algorithm,
                          const std::string& protocol) {
  const LinkCurve& curve = link.curve;
  std::string text;
  for (const Bandwidth& b : bandwidths(link))
    text += fmt::format("{},{},{},{},{},{:.0f},{:.0f},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g}\n",
                        name_of(curve), kReachNames[static_cast<std::size_t>(curve.reach)],
                        curve.ranks == 0 ? 2 : curve.ranks, algorithm, protocol, b.bytes, b.count,
                        type_of(curve), operation_of(curve), 1e6 * b.time.median_s, 1e6 * b.time.low_s,
                        1e6 * b.time.high_s, b.algorithm / 1e9, b.bus / 1e9);
  return text;
}

}  // namespace rehearse
