// Tests times and positions on a line, the round marks of an axis, and the state that all views share.
#include <QSignalSpy>

#include "gui/models/runs/view_state.hpp"
#include "tests/catch.hpp"

using namespace rehearse::gui;

TEST_CASE("A time's place and back") {
  const TimeScale scale{{1000, 3000}, 50, 400};  // 5 ns per pixel
  CHECK(scale.x(1000) == 50);
  CHECK(scale.x(3000) == 450);
  CHECK(scale.x(2000) == 250);
  CHECK(scale.time(50) == 1000);
  CHECK(scale.time(250) == 2000);
  CHECK(scale.time(0) == 750);
}

TEST_CASE("Zooming keeps its centre in its place") {
  const TimeRange whole{0, 1'000'000};
  for (const Time centre : {200'000, 500'000, 700'000})
    for (const double factor : {0.5, 0.1, 1.25}) {
      const TimeRange before{100'000, 900'000};
      const TimeRange after = zoomed(before, factor, centre, whole);
      CAPTURE(centre, factor);
      CHECK(std::abs(after.length() - factor * 800'000) <= 1);
      CHECK(TimeScale{after, 0, 1000}.x(centre) == Approx(TimeScale{before, 0, 1000}.x(centre)).margin(0.01));
    }
  CHECK(zoomed({0, 20}, 1e-3, 10, whole).length() == 10);
  CHECK(zoomed({0, 1'000'000}, 1000, 0, whole).length() == 2'000'000);
}

TEST_CASE("Panning leaves a tenth of what is visible in sight") {
  const TimeRange whole{0, 1000};
  CHECK(panned({200, 400}, 100, whole) == TimeRange{300, 500});
  CHECK(panned({200, 400}, 10'000, whole) == TimeRange{980, 1180});
  CHECK(panned({200, 400}, -10'000, whole) == TimeRange{-180, 20});
}

TEST_CASE("Marks stand at round times, in one unit") {
  struct Case {
    TimeRange range;
    double width;
    std::vector<std::string> texts;
  };
  const std::vector<Case> cases = {
      {{0, 1'000'000'000}, 600, {"0.0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"}},
      {{0, 5'000'000}, 600, {"0 ms", "1 ms", "2 ms", "3 ms", "4 ms", "5 ms"}},
      {{1'000'000, 1'000'400}, 480, {"1.0000 ms", "1.0001 ms", "1.0002 ms", "1.0003 ms", "1.0004 ms"}},
      {{-400'000'000, 400'000'000}, 480, {"-400 ms", "-200 ms", "0 ms", "200 ms", "400 ms"}},
      {{-1, 399'999'999}, 240, {"0 ms", "200 ms"}},
      {{0, 100}, 240, {"0 ns", "50 ns", "100 ns"}},
  };
  for (const Case& c : cases) {
    std::vector<std::string> texts;
    for (const Tick& tick : ticks({c.range, 0, c.width})) texts.push_back(tick.text);
    CHECK(texts == c.texts);
  }
}

TEST_CASE("Durations have four digits") {
  const std::vector<std::pair<Time, std::string>> cases = {{0, "0 ns"},
                                                           {999, "999 ns"},
                                                           {1000, "1.000 us"},
                                                           {12'345'678, "12.35 ms"},
                                                           {1'500'000'000, "1.500 s"},
                                                           {123'456'789'012, "123.5 s"},
                                                           {-2'000'000, "-2.000 ms"}};
  for (const auto& [ns, text] : cases) CHECK(duration_text(ns) == text);
}

TEST_CASE("The visible time can be gone back and forward through") {
  ViewState state;
  QSignalSpy moved(&state, &ViewState::visible_changed);
  state.set_whole({0, 1000});
  CHECK(state.visible() == TimeRange{0, 1000});
  state.set_visible({100, 200});
  state.set_visible({120, 130}, false);  // still in progress: not remembered
  state.set_visible({150, 160});
  CHECK(moved.count() == 4);
  state.back();
  CHECK(state.visible() == TimeRange{100, 200});
  state.back();
  CHECK(state.visible() == TimeRange{0, 1000});
  CHECK_FALSE(state.can_go_back());
  state.forward();
  CHECK(state.visible() == TimeRange{100, 200});
  state.set_visible({1, 2});
  CHECK_FALSE(state.can_go_forward());
  state.set_whole({0, 2000});  // zoomed in: stays
  CHECK(state.visible() == TimeRange{1, 2});
  state.fit();
  CHECK(state.visible() == TimeRange{0, 2000});
}

TEST_CASE("What belongs to a run that is gone is forgotten") {
  ViewState state;
  state.select(SpanRef{1, 5});
  state.set_collapsed({1, 0}, true);
  state.set_collapsed({2, 0}, true);
  state.set_pinned({1, 3}, true);
  state.forget_run(1);
  CHECK_FALSE(state.selected());
  CHECK(state.collapsed() == std::set<ViewState::ProcessRef>{{2, 0}});
  CHECK(state.pinned().empty());
}

TEST_CASE("Moments with the digits that tell them apart") {
  struct Case {
    Time at;
    double distance;
    const char* text;
  };
  const std::vector<Case> cases = {{0, 1, "0 s"},
                                   {14'520'394'123, 1e9, "15 s"},
                                   {14'520'394'123, 1e6, "14.520 s"},
                                   {14'520'394'123, 5e5, "14.5204 s"},
                                   {14'520'394'123, 0.1, "14.520394123 s"},
                                   {-2'500'000, 1e5, "-2.5 ms"},
                                   {37, 1, "37 ns"}};
  for (const Case& c : cases) CHECK(moment_text(c.at, c.distance) == c.text);
}
