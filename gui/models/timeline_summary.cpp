// The summary row of a process: each instant once.
#include <algorithm>
#include <array>
#include <cctype>
#include <queue>

#include "gui/models/timeline_layout.hpp"

namespace rehearse::gui {
namespace {

// What a row, or a thread with all its rows, is doing, the most telling last.
enum class State : std::uint8_t {
  nothing,
  other,
  waiting,
  bubble,
  host,
  copy,
  checkpoint,
  data,
  communication,
  compute
};
constexpr std::size_t kStates = 10;

State state_of(Kind kind) {
  switch (kind) {
    case Kind::compute:
      return State::compute;
    case Kind::communication:
      return State::communication;
    case Kind::waiting:
      return State::waiting;
    case Kind::bubble:
      return State::bubble;
    case Kind::data:
      return State::data;
    case Kind::checkpoint:
      return State::checkpoint;
    case Kind::copy:
      return State::copy;
    case Kind::host:
      return State::host;
    case Kind::annotation:
      return State::nothing;
    case Kind::other:
      return State::other;
  }
  return State::nothing;
}

class Sweep {
public:
  Sweep(const Timeline& timeline, int first_row, int last_row, const SummaryRules& rules)
      : timeline_(timeline), rules_(rules) {
    bool on_gpu = false;
    for (int row = first_row; row < last_row; ++row)
      on_gpu = on_gpu || rules.gpu_track[timeline.rows[row].track] != 0;
    by_thread_ = rules.profiled && !on_gpu;
    for (int row = first_row; row < last_row; ++row) {
      if (on_gpu && rules.gpu_track[timeline.rows[row].track] == 0) continue;
      rows_.push_back({row, timeline.rows[row].first, false, State::nothing});
    }
  }

  std::vector<SummarySpan> run() {
    for (std::size_t r = 0; r < rows_.size(); ++r) push(r);
    while (!next_.empty()) {
      const Time now = next_.top().first;
      while (!next_.empty() && next_.top().first == now) {
        const std::size_t r = next_.top().second;
        next_.pop();
        step(r);
        push(r);
      }
      tell(now);
    }
    // The ends are those of what counts.
    const auto idle = [](const SummarySpan& span) { return span.name == kIdle || span.name == kBubble; };
    while (!result_.empty() && idle(result_.back())) result_.pop_back();
    const auto first = std::find_if_not(result_.begin(), result_.end(), idle);
    result_.erase(result_.begin(), first);
    return std::move(result_);
  }

private:
  static constexpr std::string_view kIdle = "idle", kBubble = "pipeline bubble";
  struct RowState {
    int row = 0;
    SpanId span = 0;
    bool inside = false;
    State state = State::nothing;
  };

  void push(std::size_t r) {
    const RowState& row = rows_[r];
    if (row.span < timeline_.rows[row.row].last)
      next_.emplace(row.inside ? timeline_.spans.end[row.span] : timeline_.spans.begin[row.span], r);
  }

  // The row's next span begins or the present one ends.
  void step(std::size_t r) {
    RowState& row = rows_[r];
    set(r, row.inside ? State::nothing : state_of(timeline_.spans.kind[row.span]));
    if (row.inside) ++row.span;
    row.inside = !row.inside;
  }

  void set(std::size_t r, State state) {
    --count_[static_cast<std::size_t>(rows_[r].state)];
    rows_[r].state = state;
    ++count_[static_cast<std::size_t>(state)];
  }

  // Of all rows together. A thread inside a collective communicates, whatever called it.
  State now() const {
    if (!by_thread_ || count_[static_cast<std::size_t>(State::communication)] == 0 ||
        count_[static_cast<std::size_t>(State::host)] == 0) {
      for (std::size_t s = kStates; s-- > 1;)
        if (s == static_cast<std::size_t>(State::host) && by_thread_)
          continue;
        else if (count_[s] > 0)
          return by_thread_ && host_before(s) ? State::host : static_cast<State>(s);
      return by_thread_ && count_[static_cast<std::size_t>(State::host)] > 0 ? State::host : State::nothing;
    }
    bool computes = false;
    for (std::size_t r = 0; r < rows_.size() && !computes;) {
      const int track = timeline_.rows[rows_[r].row].track;
      State most = State::nothing;
      for (; r < rows_.size() && timeline_.rows[rows_[r].row].track == track; ++r)
        most = std::max(most, rows_[r].state);
      computes = most == State::host;
    }
    return computes ? State::host : State::communication;
  }
  // What the host does is its computing, unless one of its threads loads or communicates.
  bool host_before(std::size_t state) const {
    return count_[static_cast<std::size_t>(State::host)] > 0 && state < static_cast<std::size_t>(State::data);
  }

  void tell(Time now_is) {
    if (!result_.empty()) result_.back().end = now_is;
    if (!result_.empty() && result_.back().begin == now_is) result_.pop_back();
    SummarySpan span{now_is, now_is, Kind::other, "other"};
    switch (now()) {
      case State::compute:
        span.kind = Kind::compute, span.name = "compute";
        break;
      case State::host:
        span.kind = rules_.has_gpus ? Kind::host : Kind::compute;
        span.name = rules_.has_gpus ? "host" : "compute";
        break;
      case State::communication:
        span.kind = Kind::communication, span.name = exposed();
        break;
      case State::data:
        span.kind = Kind::data, span.name = "data";
        break;
      case State::checkpoint:
        span.kind = Kind::checkpoint, span.name = "checkpoint";
        break;
      case State::copy:
        span.kind = Kind::copy, span.name = "copy";
        break;
      case State::bubble:
        span.kind = Kind::bubble, span.name = "waiting for the pipeline";
        break;
      case State::waiting:
        span.kind = Kind::waiting, span.name = "waiting for a peer";
        break;
      case State::other:
        break;
      case State::nothing:
        span.kind = rules_.pipeline ? Kind::bubble : Kind::waiting;
        span.name = rules_.pipeline ? kBubble : kIdle;
        break;
    }
    if (!result_.empty() && result_.back().kind == span.kind && result_.back().name == span.name) return;
    result_.push_back(span);
  }

  std::string_view exposed() const {
    for (const RowState& row : rows_)
      if (row.state == State::communication) return rules_.exposed[timeline_.spans.name[row.span]];
    return "exposed communication";
  }

  const Timeline& timeline_;
  const SummaryRules& rules_;
  bool by_thread_ = false;
  std::vector<RowState> rows_;
  std::array<int, kStates> count_{};
  using Boundary = std::pair<Time, std::size_t>;
  std::priority_queue<Boundary, std::vector<Boundary>, std::greater<>> next_;
  std::vector<SummarySpan> result_;
};

}  // namespace

std::vector<SummarySpan> summary_of(const Timeline& timeline, int first_row, int last_row,
                                    const SummaryRules& rules) {
  return Sweep(timeline, first_row, last_row, rules).run();
}

std::string exposed_name(std::string_view name, Draft::Moves moves) {
  if (moves == Draft::Moves::gradients) return "exposed gradient sync";
  if (moves == Draft::Moves::pipeline) return "exposed pipeline transfer";
  std::string lower;  // letters only: all_reduce, AllReduce, all-reduce
  for (const char c : name)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  struct Word {
    std::string_view part, name;
  };
  constexpr std::array kWords = {Word{"allreduce", "all-reduce"},
                                 Word{"reducescatter", "reduce-scatter"},
                                 Word{"allgather", "all-gather"},
                                 Word{"alltoall", "all-to-all"},
                                 Word{"broadcast", "broadcast"},
                                 Word{"barrier", "barrier"},
                                 Word{"sendrecv", "sends and receives"},
                                 Word{"send", "sends and receives"},
                                 Word{"recv", "sends and receives"},
                                 Word{"receive", "sends and receives"},
                                 Word{"reduce", "reduce"}};
  for (const Word& word : kWords)
    if (lower.find(word.part) != std::string::npos) return "exposed " + std::string(word.name);
  return "exposed communication";
}

}  // namespace rehearse::gui
