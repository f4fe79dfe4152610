// Provides a timeline in a window of its own, driven by mouse and keys.
#pragma once

#include <QApplication>
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <memory>

#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_view.hpp"
#include "tests/catch.hpp"
#include "tests/gui_application.hpp"
#include "tests/gui_timeline_builder.hpp"

namespace rehearse::gui {

inline constexpr Time us = 1000;

// A timeline of two stages, shown and ready.
struct Shown {
  Session session;
  ViewState state;
  TimelineView view{session, state};
  int run = 0;

  explicit Shown(std::shared_ptr<const Timeline> timeline = two_stages()) {
    run = session.add(run_of(std::move(timeline)));
    view.resize(1230, 600);
    view.show();
    REQUIRE(QTest::qWaitForWindowExposed(&view, rehearse::test::kPatienceMs));
    view.canvas().setFocus();
    settle();
    key(Qt::Key_E, Qt::ShiftModifier);  // all tracks
  }
  void settle() {
    REQUIRE(QTest::qWaitFor([this] { return view.scene().ready(); }, rehearse::test::kPatienceMs));
  }
  QWidget* canvas() { return &view.canvas(); }
  void key(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(canvas(), key, modifiers); }
  void wheel(QPoint at, int steps, Qt::KeyboardModifiers modifiers = {}) {
    QWheelEvent event(at, canvas()->mapToGlobal(at), {}, {0, 120 * steps}, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(canvas(), &event);
  }
  void drag(QPoint from, QPoint to, Qt::MouseButton button = Qt::LeftButton,
            Qt::KeyboardModifiers modifiers = {}) {
    QTest::mousePress(canvas(), button, modifiers, from);
    // Qt Test's moves hold no button, so send events that do.
    for (const QPoint at : {(from + to) / 2, to}) {
      QMouseEvent move(QEvent::MouseMove, at, canvas()->mapToGlobal(at), Qt::NoButton, button, modifiers);
      QApplication::sendEvent(canvas(), &move);
    }
    QTest::mouseRelease(canvas(), button, modifiers, to);
  }
  // Returns the middle of a row of the timeline at a time of the axis.
  QPoint at(int row, Time time) {
    for (const Line& line : view.scene().lines())
      if (line.type == Line::Type::row && line.row == row)
        return {static_cast<int>(std::lround(view.scene().scale().x(time))),
                line.y - view.scene().scroll() + line.height / 2};
    FAIL("row " << row << " is not shown");
    return {};
  }
  SpanId selected() const { return state.selected() ? state.selected()->span : kNoSpan; }
  int rows_shown() {
    return static_cast<int>(std::count_if(view.scene().lines().begin(), view.scene().lines().end(),
                                          [](const Line& line) { return line.type == Line::Type::row; }));
  }
};

}  // namespace rehearse::gui
