#include "gui/models/tracks/span_details.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gui/models/tracks/area_totals.hpp"
#include "gui/models/tracks/track_layout.hpp"

namespace rehearse::gui {

namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostLinks = 8;  // per type

std::span<const std::int32_t> dependencies_of(const Timeline& timeline, SpanId span) {
  if (span + 1 >= timeline.first_dependency.size()) return {};
  return std::span(timeline.dependencies)
      .subspan(timeline.first_dependency[span],
               timeline.first_dependency[span + 1] - timeline.first_dependency[span]);
}

template <typename F>
void for_spans_of_process(const Timeline& timeline, int process, F&& f) {
  const Process& p = timeline.processes[static_cast<std::size_t>(process)];
  for (int t = p.first_track; t < p.last_track; ++t) {
    const Track& track = timeline.tracks[static_cast<std::size_t>(t)];
    for (int r = track.first_row; r < track.last_row; ++r) {
      const Row& row = timeline.rows[static_cast<std::size_t>(r)];
      for (SpanId s = row.first; s < row.last; ++s) f(s);
    }
  }
}

// Returns, for each op that the span depends on, its last span that ended no later than this span; the latest
// first.
std::vector<SpanId> predecessors(const Timeline& timeline, SpanId span) {
  const auto wanted = dependencies_of(timeline, span);
  if (wanted.empty()) return {};
  const SpanColumns& spans = timeline.spans;
  std::vector<SpanId> found(wanted.size(), kNoSpan);
  for_spans_of_process(timeline, timeline.process_of(span), [&](SpanId s) {
    if (s == span || is_wait(spans.kind[s]) || spans.end[s] > spans.end[span]) return;
    const auto at = std::find(wanted.begin(), wanted.end(), spans.op[s]);
    if (at == wanted.end()) return;
    SpanId& best = found[static_cast<std::size_t>(at - wanted.begin())];
    if (best == kNoSpan || spans.end[s] > spans.end[best]) best = s;
  });
  std::erase(found, kNoSpan);
  std::sort(found.begin(), found.end(), [&](SpanId a, SpanId b) { return spans.end[a] > spans.end[b]; });
  return found;
}

std::vector<SpanId> dependents(const Timeline& timeline, SpanId span) {
  const SpanColumns& spans = timeline.spans;
  const std::int32_t op = spans.op[span];
  std::vector<SpanId> found;
  if (op < 0 || timeline.first_dependency.empty()) return found;
  for_spans_of_process(timeline, timeline.process_of(span), [&](SpanId s) {
    if (s == span || is_wait(spans.kind[s]) || spans.end[s] < spans.end[span] ||
        spans.step[s] > spans.step[span] + 1)
      return;
    const auto after = dependencies_of(timeline, s);
    if (std::find(after.begin(), after.end(), op) != after.end()) found.push_back(s);
  });
  std::sort(found.begin(), found.end(), [&](SpanId a, SpanId b) { return spans.begin[a] < spans.begin[b]; });
  // Dependents in the next step wait for the op's next execution, so keep them only if there are none in this
  // step.
  const auto same_step = [&](SpanId s) { return spans.step[s] == spans.step[span]; };
  if (std::any_of(found.begin(), found.end(), same_step))
    std::erase_if(found, [&](SpanId s) { return !same_step(s); });
  return found;
}

// Returns the nearest earlier span on the row that is not a wait.
SpanId previous_on_row(const Timeline& timeline, const Row& row, SpanId span) {
  for (SpanId s = span; s > row.first;) {
    --s;
    if (!is_wait(timeline.spans.kind[s])) return s;
  }
  return kNoSpan;
}

// Returns what delayed the span, if anything: a later peer, else the dependency or predecessor that ended
// last.
SpanId waited_for(const Timeline& timeline, const std::vector<SpanLink>& links, SpanId span) {
  const SpanColumns& spans = timeline.spans;
  SpanId last = kNoSpan;
  for (const SpanLink& link : links) {
    const bool counts = link.type == SpanLink::Type::dependency || link.type == SpanLink::Type::previous;
    if (counts && (last == kNoSpan || spans.end[link.span] > spans.end[last])) last = link.span;
  }
  // A peer that was ready later than this side.
  for (const SpanLink& link : links) {
    if (link.type != SpanLink::Type::sender && link.type != SpanLink::Type::receiver) continue;
    const Time own = spans.ready[span], other = spans.ready[link.span];
    if (own >= 0 && other > own) return link.span;
    if (own < 0 && link.type == SpanLink::Type::sender) return link.span;
  }
  return last;
}

std::string clipped(std::string text) {
  constexpr std::size_t kMost = 300;
  if (text.size() > kMost) text = text.substr(0, kMost) + " ...";
  return text;
}

// Adds the arguments from the file that have no column.
void add_args(const Json& args, std::vector<SpanDetails::Field>& fields) {
  if (!args.is_object()) return;
  static const std::set<std::string, std::less<>> kShown = {
      "op",        "microbatch", "bytes",    "flops",  "step",       "ready_us",  "deps",  "kind",
      "algorithm", "members",    "critical", "status", "latency_us", "slowed_us", "layer", "External id"};
  if (args.contains("layer"))
    fields.push_back(
        {"Layers", args["layer"].is_string() ? args["layer"].get<std::string>() : args["layer"].dump()});
  const auto add_duration = [&](const char* key, const char* title) {
    if (args.contains(key) && args[key].is_number())
      fields.push_back({title, duration_text(std::llround(args[key].get<double>() * 1e3))});
  };
  add_duration("latency_us", "Latency");
  add_duration("slowed_us", "Slowed by collectives");
  if (args.contains("status") && args["status"] != "done")
    fields.push_back(
        {"Status", args["status"].is_string() ? args["status"].get<std::string>() : args["status"].dump()});
  for (const auto& [key, value] : args.items())
    if (!kShown.contains(key))
      fields.push_back({key, clipped(value.is_string() ? value.get<std::string>() : value.dump())});
}

// Returns the kind of the collective from its `args` or its name.
std::string collective_kind(const Json& args, const std::string& name) {
  if (args.is_object() && args.contains("kind") && args["kind"].is_string()) return args["kind"];
  for (const std::string_view kind : kCollectiveNames)
    if (holds(name, kind)) return std::string(kind);
  if (holds(name, "allreduce")) return "all-reduce";
  if (holds(name, "allgather")) return "all-gather";
  if (holds(name, "reducescatter") || holds(name, "reduce_scatter")) return "reduce-scatter";
  if (holds(name, "alltoall")) return "all-to-all";
  return {};
}

// Adds the tensors that the op reads and writes, if the schedule is known.
void add_tensors(const Run& run, SpanId span, std::vector<SpanDetails::Field>& fields) {
  const Timeline& timeline = *run.timeline;
  const std::int32_t number = timeline.spans.op[span];
  if (!run.judged || number < 0) return;
  const Trace& trace = run.judged->run.trace;
  // Processes of Rehearse's traces are numbered from 1, in the order of the rank classes.
  const auto rank_class = timeline.processes[static_cast<std::size_t>(timeline.process_of(span))].pid - 1;
  for (std::size_t s = 0; s < trace.spans.op.size(); ++s) {
    if (trace.spans.rank_class[s] != rank_class || static_cast<std::int32_t>(trace.spans.op[s]) != number)
      continue;
    const Program& program = trace.program_of(s);
    const Op& op = trace.op_of(s);
    const auto list = [&](const std::vector<int>& tensors) {
      std::string text;
      for (const int t : tensors) {
        const Tensor& tensor = program.tensors[static_cast<std::size_t>(t)];
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", tensor.name,
                            kTensorKindNames[static_cast<std::size_t>(tensor.kind)]);
        if (text.size() > 300) return text + " ...";
      }
      return text;
    };
    if (!op.reads.empty()) fields.push_back({"Reads", list(op.reads)});
    if (!op.writes.empty()) fields.push_back({"Writes", list(op.writes)});
    return;
  }
}

std::string name_of_link(SpanLink::Type type) {
  switch (type) {
    case SpanLink::Type::waited_for:
      return "Waited for";
    case SpanLink::Type::dependency:
      return "Depends on";
    case SpanLink::Type::previous:
      return "Previous on stream";
    case SpanLink::Type::sender:
      return "Sent by";
    case SpanLink::Type::receiver:
      return "Received by";
    case SpanLink::Type::dependent:
      return "Waits for it";
    case SpanLink::Type::next:
      break;
  }
  return "Next on stream";
}

}  // namespace

std::vector<SpanLink> links_of(const Timeline& timeline, SpanId span) {
  using Type = SpanLink::Type;
  std::vector<SpanLink> links;
  const auto add = [&](Type type, const std::vector<SpanId>& spans) {
    for (std::size_t i = 0; i < std::min(spans.size(), kMostLinks); ++i) links.push_back({type, spans[i]});
  };
  const Row& row = timeline.rows[static_cast<std::size_t>(timeline.row_of(span))];
  if (row.track < 0) return links;
  std::vector<SpanId> senders, receivers;
  for (const std::uint32_t flow : timeline.flows_into(span)) senders.push_back(timeline.flows[flow].from);
  for (const Flow& flow : timeline.flows_from(span)) receivers.push_back(flow.to);
  add(Type::dependency, predecessors(timeline, span));
  if (const SpanId before = previous_on_row(timeline, row, span); before != kNoSpan)
    links.push_back({Type::previous, before});
  add(Type::sender, senders);
  add(Type::receiver, receivers);
  add(Type::dependent, dependents(timeline, span));
  if (span + 1 < row.last) links.push_back({Type::next, span + 1});
  if (const SpanId cause = waited_for(timeline, links, span); cause != kNoSpan)
    links.insert(links.begin(), {Type::waited_for, cause});
  return links;
}

SpanId back_from(const Timeline& timeline, SpanId span) {
  const auto into = timeline.flows_into(span);
  if (!into.empty()) return timeline.flows[into.front()].from;
  for (const SpanLink& link : links_of(timeline, span))
    if (link.type == SpanLink::Type::waited_for || link.type == SpanLink::Type::dependency) return link.span;
  return kNoSpan;
}

SpanId forward_from(const Timeline& timeline, SpanId span) {
  const auto from = timeline.flows_from(span);
  if (!from.empty()) return from.front().to;
  for (const SpanLink& link : links_of(timeline, span))
    if (link.type == SpanLink::Type::dependent || link.type == SpanLink::Type::next) return link.span;
  return kNoSpan;
}

double bus_factor(std::string_view kind, int members) {
  if (members < 1) return 1;
  const double n = members;
  if (kind == "all-reduce") return 2 * (n - 1) / n;
  if (kind == "all-gather" || kind == "reduce-scatter" || kind == "all-to-all") return (n - 1) / n;
  return 1;
}

std::string amount_text(double value, std::string_view unit) {
  static constexpr std::array<std::string_view, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.95 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const double size = std::abs(value);
  const int digits = (prefix == 0 && value == std::floor(value)) || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, digits, kPrefixes[prefix], unit);
}

SpanDetails details_of(const Run& run, SpanId span) {
  const Timeline& timeline = *run.timeline;
  const SpanColumns& spans = timeline.spans;
  SpanDetails details{timeline.name_of(span), {}};
  auto& fields = details.fields;
  const Time length = spans.end[span] - spans.begin[span];
  const double seconds = static_cast<double>(length) / 1e9;
  // Resolution: a hundredth of the span's length.
  const auto moment = [&](Time at) {
    return moment_text(at - run.aligned, std::max(1.0, static_cast<double>(length) / 100));
  };
  const Json args = Json::parse(timeline.detail_of(span), nullptr, false);  // discarded if there are none
  const Row& row = timeline.rows[static_cast<std::size_t>(timeline.row_of(span))];

  fields.push_back({"Duration", duration_text(length)});
  fields.push_back({"Begins", moment(spans.begin[span])});
  fields.push_back({"Ends", moment(spans.end[span])});
  std::string kind(kKindNames[static_cast<std::size_t>(spans.kind[span])]);
  if (const Style style = style_of(spans.kind[span], spans.pass[span]); pass_of(style) != Pass::none)
    kind += ", " + style_name(style);
  fields.push_back({"Kind", kind});
  fields.push_back({"Rank", timeline.processes[static_cast<std::size_t>(row.process)].name});
  if (row.track >= 0) fields.push_back({"Stream", timeline.tracks[static_cast<std::size_t>(row.track)].name});
  if (spans.microbatch[span] >= 0)
    fields.push_back({"Micro-batch", fmt::format("{}", spans.microbatch[span])});
  if (spans.step[span] >= 0) fields.push_back({"Step", fmt::format("{}", spans.step[span])});
  if (spans.op[span] >= 0) fields.push_back({"Op", fmt::format("{}", spans.op[span])});
  if (spans.ready[span] >= 0) {
    fields.push_back({"Ready", moment(spans.ready[span])});
    fields.push_back({"Waited", duration_text(std::max<Time>(0, spans.begin[span] - spans.ready[span]))});
  }
  if (spans.critical[span]) fields.push_back({"Critical path", "yes"});

  if (spans.flops[span] > 0) {
    fields.push_back({"Work", amount_text(spans.flops[span], "FLOP")});
    if (seconds > 0) fields.push_back({"Achieved", amount_text(spans.flops[span] / seconds, "FLOP/s")});
  }
  if (spans.algorithm[span] != 0) fields.push_back({"Algorithm", timeline.strings[spans.algorithm[span]]});
  if (spans.members[span] > 0) fields.push_back({"Members", fmt::format("{}", spans.members[span])});
  if (spans.bytes[span] > 0) {
    fields.push_back({"Bytes", amount_text(spans.bytes[span], "B")});
    if (seconds > 0 && spans.members[span] > 1) {
      const double bandwidth = spans.bytes[span] / seconds;
      const double factor = bus_factor(collective_kind(args, details.title), spans.members[span]);
      fields.push_back({"Algorithm bandwidth", amount_text(bandwidth, "B/s")});
      fields.push_back({"Bus bandwidth", amount_text(bandwidth * factor, "B/s")});
    } else if (seconds > 0) {
      fields.push_back({"Bandwidth", amount_text(spans.bytes[span] / seconds, "B/s")});
    }
  }
  add_args(args, fields);
  add_tensors(run, span, fields);

  for (const SpanLink& link : links_of(timeline, span)) {
    const int other = timeline.process_of(link.span);
    std::string text = timeline.name_of(link.span);
    if (is_wait(spans.kind[link.span]))
      text += fmt::format(" ({})", kKindNames[static_cast<std::size_t>(spans.kind[link.span])]);
    if (other != row.process) text += ", " + timeline.processes[static_cast<std::size_t>(other)].name;
    fields.push_back({name_of_link(link.type), text, link.span});
  }
  return details;
}

void SpanDetailsModel::set_details(SpanDetails details) {
  beginResetModel();
  details_ = std::move(details);
  endResetModel();
}

int SpanDetailsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(details_.fields.size());
}

int SpanDetailsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : 2;
}

QVariant SpanDetailsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= static_cast<int>(details_.fields.size())) return {};
  const SpanDetails::Field& field = details_.fields[static_cast<std::size_t>(index.row())];
  if (role == LinkRole) return field.link == kNoSpan ? QVariant() : QVariant(field.link);
  if (role == Qt::DisplayRole || (role == Qt::ToolTipRole && index.column() == 1))
    return QString::fromStdString(index.column() == 0 ? field.label : field.value);
  return {};
}

QVariant SpanDetailsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section < 0 || section > 1) return {};
  return section == 0 ? QStringLiteral("Detail") : QStringLiteral("Value");
}

}  // namespace rehearse::gui
