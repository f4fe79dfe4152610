// Holds the state that the parts of the timeline share: lines and scrolling, mipmaps, and search results.
#pragma once

#include <QObject>
#include <QPointF>
#include <QSize>
#include <map>
#include <memory>

#include "gui/models/runs/session.hpp"
#include "gui/models/timeline/mipmap.hpp"
#include "gui/models/tracks/group_summaries.hpp"
#include "gui/models/tracks/span_search.hpp"
#include "gui/models/tracks/track_layout.hpp"
#include "gui/models/work/background.hpp"

namespace rehearse::gui {

class TimelineScene : public QObject {
  Q_OBJECT
public:
  TimelineScene(Session& session, ViewState& state, QObject* parent = nullptr);

  Session& session() const { return session_; }
  ViewState& state() const { return state_; }

  // ----- lines
  const std::vector<Line>& lines() const { return lines_; }
  int row_height() const { return row_height_; }
  void set_row_height(int height);  // also stops fitting the height to the window
  // Resets the rows: a height at which all are visible if possible, and nothing collapsed or expanded by the
  // user.
  void fit_rows();
  // Scrolls the run to the top unless all of it is visible.
  void reveal_run(int run);
  int scroll() const { return scroll_; }
  void set_scroll(int y);
  int greatest_scroll() const { return std::max(0, height_of(lines_) - canvas_.height()); }
  QSize canvas() const { return canvas_; }  // size in pixels
  void set_canvas(QSize size);
  TimeScale scale() const { return {state_.visible(), 0, static_cast<double>(canvas_.width())}; }
  TimeScale scale_of(const Run& run) const;  // in times of the run's own timeline

  // ----- hit testing
  struct Place {
    Time time = 0;  // on the shared axis
    int line = -1;
    SpanRef span;  // kNoSpan for none
    std::pair<int, int> row = {0, -1};
    std::optional<ViewState::ProcessRef> process;
    std::shared_ptr<const RankGroup> group;  // set if the line is the group's header
    bool collapsed = false;                  // the lines below the header
  };
  Place at(QPointF pixel) const;
  // Returns the span's rectangle on the canvas, possibly outside the visible part; empty if no line shows it.
  QRectF rect_of(SpanRef span) const;
  TimeRange range_of(SpanRef span) const;  // on the shared axis
  bool knows(SpanRef span) const;
  // Scrolls and pans to the span if it is not visible.
  void reveal(SpanRef span);
  void reveal_range(TimeRange range);
  // Scrolls to the rank, and expands the group that contains it.
  void reveal_rank(int run, int process);

  // ----- background results
  const Mipmaps* mipmaps(int run) const;
  const PathRow* path_of(int run) const;                    // null until its critical path is known
  const GroupSummaries& groups() const { return groups_; }  // of the collapsed groups
  std::bitset<kStyles> styles() const;                      // used by any of the shown runs
  bool ready() const;

  // ----- search
  const Hits* hits(int run) const;
  std::size_t hit_count() const;
  bool searching() const { return searching_; }
  std::size_t hit_number() const { return hit_number_; }  // from 1; 0 before the first go_to_hit()
  const std::string& search_problem() const { return query_.problem; }
  void go_to_hit(int by);  // 1: next, -1: previous, by time

signals:
  void lines_changed();
  void scrolled();
  void content_changed();  // for instance, mipmaps are ready
  void hits_changed();

private:
  void shown_changed();
  void lay_out_again();
  void make(const Session::RunPointer& run);
  void search();

  Session& session_;
  ViewState& state_;
  std::vector<Line> lines_;
  int row_height_ = 20, scroll_ = 0;
  bool fit_rows_ = true, path_shown_ = false;
  QSize canvas_{1, 1};
  struct Made {
    std::weak_ptr<const Timeline> of;
    std::shared_ptr<const Mipmaps> mipmaps;
    std::unique_ptr<Latest> work;
  };
  std::map<int, Made> made_;
  GroupSummaries groups_;
  SearchQuery query_;
  Latest search_work_{this};
  std::map<int, Hits> hits_;
  bool searching_ = false;
  std::size_t hit_number_ = 0;
};

}  // namespace rehearse::gui
