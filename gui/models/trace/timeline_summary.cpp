// Computes the summary row of a process, in which each instant counts once.
#include <algorithm>
#include <array>
#include <cctype>
#include <queue>

#include "gui/models/trace/timeline_layout.hpp"

namespace rehearse::gui {
namespace {

// The activity of a row or of all rows of a thread; the state with the highest value takes precedence.
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
  Sweep(const Timeline& timeline, int first_row, int last_row, const SummaryRules& rules, bool pipeline)
      : timeline_(timeline), rules_(rules), pipeline_(pipeline) {
    bool on_gpu = false;
    for (int row = first_row; row < last_row; ++row)
      on_gpu = on_gpu || rules.gpu_track[timeline.rows[row].track] != 0;
    by_thread_ = rules.profiled && !on_gpu;
    for (int row = first_row; row < last_row; ++row) {
      if (on_gpu && rules.gpu_track[timeline.rows[row].track] == 0) continue;
      rows_.push_back({row, timeline.rows[row].first, false, State::nothing});
    }
  }

  Summary run() {
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
    // Nothing follows the last span.
    auto& spans = result_.spans;
    if (!spans.empty()) {
      result_.end = spans.back().begin;
      spans.pop_back();
    }
    // Drops idle time before the first and after the last span that counts.
    const auto idle = [&](const SummarySpan& span) {
      return span.name == rules_.idle || span.name == rules_.pipeline_idle;
    };
    if (!spans.empty() && idle(spans.back())) {
      result_.end = spans.back().begin;
      spans.pop_back();
    }
    if (!spans.empty() && idle(spans.front())) spans.erase(spans.begin());
    spans.shrink_to_fit();
    return std::move(result_);
  }

private:
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

  // Handles the begin of the row's next span or the end of its current one.
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

  // Returns the state of all rows together. A thread within a collective communicates, whichever host op
  // called it.
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
  // On a process without GPU, host ops count as computing unless one of its threads loads data or
  // communicates.
  bool host_before(std::size_t state) const {
    return count_[static_cast<std::size_t>(State::host)] > 0 && state < static_cast<std::size_t>(State::data);
  }

  void tell(Time now_is) {
    SummarySpan span{now_is, rules_.other, Kind::other};
    const auto set_to = [&](Kind kind, std::uint32_t name) {
      span.kind = kind;
      span.name = name;
    };
    switch (now()) {
      case State::compute:
        set_to(Kind::compute, rules_.compute);
        if (rules_.by_pass) tell_pass(span);
        break;
      case State::host:
        rules_.has_gpus ? set_to(Kind::host, rules_.host) : set_to(Kind::compute, rules_.compute);
        break;
      case State::communication:
        set_to(Kind::communication, exposed());
        break;
      case State::data:
        set_to(Kind::data, rules_.data);
        break;
      case State::checkpoint:
        set_to(Kind::checkpoint, rules_.checkpoint);
        break;
      case State::copy:
        set_to(Kind::copy, rules_.copy);
        break;
      case State::bubble:
        set_to(Kind::bubble, rules_.bubble);
        break;
      case State::waiting:
        set_to(Kind::waiting, rules_.waiting);
        break;
      case State::other:
        break;
      case State::nothing:
        pipeline_ ? set_to(Kind::bubble, rules_.pipeline_idle) : set_to(Kind::waiting, rules_.idle);
        break;
    }
    if (!next_.empty() && !result_.spans.empty() && span.continues(result_.spans.back())) return;
    result_.spans.push_back(span);
  }

  // Takes the pass from the first row that computes.
  void tell_pass(SummarySpan& span) const {
    for (const RowState& row : rows_) {
      if (row.state != State::compute) continue;
      span.pass = timeline_.spans.pass[row.span];
      span.microbatch = timeline_.spans.microbatch[row.span];
      span.critical = timeline_.spans.critical[row.span];
      span.name = rules_.passes[static_cast<std::size_t>(span.pass)];
      return;
    }
  }

  std::uint32_t exposed() const {
    for (const RowState& row : rows_)
      if (row.state == State::communication) return rules_.exposed[timeline_.spans.name[row.span]];
    return rules_.other;
  }

  const Timeline& timeline_;
  const SummaryRules& rules_;
  bool pipeline_ = false, by_thread_ = false;
  std::vector<RowState> rows_;
  std::array<int, kStates> count_{};
  using Boundary = std::pair<Time, std::size_t>;
  std::priority_queue<Boundary, std::vector<Boundary>, std::greater<>> next_;
  Summary result_;
};

}  // namespace

Summary summary_of(const Timeline& timeline, int first_row, int last_row, const SummaryRules& rules,
                   bool pipeline) {
  return Sweep(timeline, first_row, last_row, rules, pipeline).run();
}

std::string exposed_name(std::string_view name) {
  std::string lower;  // only letters: all_reduce, AllReduce and all-reduce become equal
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
