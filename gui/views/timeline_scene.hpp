// What the timeline's parts share: the lines and how far they are scrolled, mipmaps, and what a search found.
#pragma once

#include <QObject>
#include <QPointF>
#include <QSize>
#include <map>
#include <memory>

#include "gui/models/background.hpp"
#include "gui/models/group_summaries.hpp"
#include "gui/models/mipmap.hpp"
#include "gui/models/session.hpp"
#include "gui/models/span_search.hpp"
#include "gui/models/track_layout.hpp"

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
  void set_row_height(int height);  // and no longer what fits
  // All as at first: rows as high as lets all be seen, and nothing collapsed or expanded by hand.
  void fit_rows();
  // Scrolls so that the run begins at the top, if it is not in sight as a whole.
  void reveal_run(int run);
  int scroll() const { return scroll_; }
  void set_scroll(int y);
  int greatest_scroll() const { return std::max(0, height_of(lines_) - canvas_.height()); }
  QSize canvas() const { return canvas_; }  // its size
  void set_canvas(QSize size);
  TimeScale scale() const { return {state_.visible(), 0, static_cast<double>(canvas_.width())}; }
  TimeScale scale_of(const Run& run) const;  // of its timeline's time

  // ----- what is where
  struct Place {
    Time time = 0;  // of the axis
    int line = -1;
    SpanRef span;  // kNoSpan: none
    std::pair<int, int> row = {0, -1};
    std::optional<ViewState::ProcessRef> process;
    std::shared_ptr<const RankGroup> group;  // whose header it is
    bool collapsed = false;                  // what stands under the header
  };
  Place at(QPointF pixel) const;
  // Where it is painted on the canvas, cut at its sides; empty: it is left out, or not in the visible time.
  QRectF rect_of(SpanRef span) const;
  TimeRange range_of(SpanRef span) const;  // on the axis
  bool knows(SpanRef span) const;
  // Scrolls and pans as little as it takes to see it.
  void reveal(SpanRef span);
  void reveal_range(TimeRange range);
  // Scrolls to the rank, and opens the group that it is collapsed into.
  void reveal_rank(int run, int process);

  // ----- made in the background
  const Mipmaps* mipmaps(int run) const;
  const PathRow* path_of(int run) const;                    // null: its critical path is not known
  const GroupSummaries& groups() const { return groups_; }  // of those that are collapsed
  std::bitset<kStyles> styles() const;                      // of all shown runs
  bool ready() const;

  // ----- search
  const Hits* hits(int run) const;
  std::size_t hit_count() const;
  bool searching() const { return searching_; }
  std::size_t hit_number() const { return hit_number_; }  // from 1; 0: none was gone to
  const std::string& search_problem() const { return query_.problem; }
  void go_to_hit(int by);  // 1: next, -1: previous, by time

signals:
  void lines_changed();
  void scrolled();
  void content_changed();  // mipmaps are there
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
