// Tests that arrows never point backward in time.
#include "gui/models/timeline/arrow_times.hpp"

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

TEST_CASE("Bytes leave where the transfer begins and are there where it ends") {
  const auto timeline = two_stages();
  for (const Flow& flow : timeline->flows) {
    const ArrowTimes times = arrow_times(*timeline, flow.from, flow.to);
    CHECK(times.leaves == timeline->spans.begin[flow.from]);
    CHECK(times.arrives == timeline->spans.end[flow.to]);
  }
}

TEST_CASE("What a launch or a dependency leads to begins behind it") {
  TimelineBuilder b;
  b.process("host").track("thread").span("launch", 0, 100, Kind::host).span("next", 300, 400, Kind::host);
  b.track("stream").span("kernel", 50, 200).span("later", 450, 500);
  const auto timeline = b.build();
  const ArrowTimes under_way = arrow_times(*timeline, 0, 2), behind = arrow_times(*timeline, 1, 3);
  CHECK((under_way.leaves == 50 && under_way.arrives == 50));
  CHECK((behind.leaves == 400 && behind.arrives == 450));
}
