// Tests which ranks count as doing the same, and how they are named together.
#include "gui/models/timeline/rank_kinds.hpp"

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

namespace {

// Builds one rank per entry: its stage, and how long it computes in a step of 1000 ns.
Timeline ranks(const std::vector<std::pair<std::string, Time>>& each) {
  TimelineBuilder b;
  int number = 0;
  for (const auto& [stage, computes] : each) {
    b.process("rank " + std::to_string(number++), 1, stage).track("compute").span("x", 0, computes);
    b.summary().span("compute", 0, computes).span("waiting", computes, 1000, Kind::waiting);
  }
  Timeline timeline = *b.build();
  find_kinds(timeline);
  return timeline;
}

std::vector<std::string> kinds_of(const Timeline& timeline) {
  std::vector<std::string> kinds;
  for (const Process& process : timeline.processes) kinds.push_back(process.kind);
  return kinds;
}

}  // namespace

TEST_CASE("Ranks of a stage that spend their time alike are of one kind") {
  using Kinds = std::vector<std::string>;
  CHECK(kinds_of(ranks({{"0", 800}, {"0", 790}, {"1", 800}, {"1", 805}})) ==
        Kinds{"rank 0-1", "rank 0-1", "rank 2-3", "rank 2-3"});
  // A straggler stays separate, and so do the ranks if they are few and not a pipeline.
  CHECK(kinds_of(ranks({{"0", 800}, {"0", 640}, {"0", 805}, {"1", 800}})) ==
        Kinds{"rank 0, 2", "", "rank 0, 2", ""});
  CHECK(kinds_of(ranks({{"", 800}, {"", 800}, {"", 800}})) == Kinds{"", "", ""});
  CHECK(kinds_of(ranks(std::vector<std::pair<std::string, Time>>(64, {"", 800}))) == Kinds(64, "rank 0-63"));
}

TEST_CASE("A pipeline has stages that differ") {
  CHECK(is_pipeline(ranks({{"0", 800}, {"1", 800}})));
  CHECK_FALSE(is_pipeline(ranks({{"0", 800}, {"0", 800}})));
  CHECK_FALSE(is_pipeline(ranks({{"", 800}, {"", 800}})));
}

TEST_CASE("Names of several ranks tell the numbers in which they differ") {
  struct Case {
    std::vector<std::string_view> names;
    const char* told;
  };
  for (const Case& c :
       {Case{{"stage 3, data 0", "stage 3, data 1", "stage 3, data 2"}, "stage 3, data 0-2"},
        Case{{"rank 0", "rank 8", "rank 16"}, "rank 0, 8, 16"},
        Case{{"r1", "r3", "r5", "r7", "r9"}, "r1, 3, 5, 7, ..."},
        Case{{"data 0 (rank 4)", "data 1 (rank 5)"}, "data 0-1"}, Case{{"left", "right"}, "left and 1 more"},
        Case{{"stage 0, tensor 0-7, data 0", "stage 0, tensor 0-7, data 1-15 (120 ranks)"},
             "stage 0, tensor 0-7"},
        Case{{"alone 7"}, "alone 7"}, Case{{}, ""}})
    CHECK(common_name(c.names) == c.told);
}
