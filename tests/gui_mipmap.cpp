// Tests mipmap buckets against sums computed by hand, and what a row shows at a given scale.
#include "gui/models/timeline/mipmap.hpp"

#include <map>
#include <random>

#include "tests/catch.hpp"
#include "tests/gui_timeline_builder.hpp"

using namespace rehearse::gui;

namespace {

// Returns `count` spans of two kinds with random gaps between them.
std::shared_ptr<const Timeline> many(int count, unsigned seed) {
  std::mt19937 random(seed);
  TimelineBuilder b;
  b.process("rank 0").track("compute");
  Time at = 1000;
  for (int i = 0; i < count; ++i) {
    at += static_cast<Time>(random() % 40);
    const Time length = static_cast<Time>(random() % 60);
    const bool waits = random() % 3 == 0;
    b.span(waits ? "wait" : "work", at, at + length, waits ? Kind::waiting : Kind::compute,
           waits ? rehearse::gui::Pass::none : rehearse::gui::Pass::forward);
    at += length;
  }
  return b.build();
}

// Returns the nanoseconds of each style in [begin, end).
std::map<Style, double> by_hand(const Timeline& timeline, Time begin, Time end) {
  std::map<Style, double> sums;
  for (SpanId s = 0; s < timeline.spans.size(); ++s) {
    const Time inside = std::min(end, timeline.spans.end[s]) - std::max(begin, timeline.spans.begin[s]);
    if (inside > 0)
      sums[style_of(timeline.spans.kind[s], timeline.spans.pass[s])] += static_cast<double>(inside);
  }
  return sums;
}

}  // namespace

TEST_CASE("Every style is its kind's and pass's") {
  for (std::size_t k = 0; k < kKindNames.size(); ++k)
    for (const rehearse::gui::Pass pass : {rehearse::gui::Pass::none, rehearse::gui::Pass::forward,
                                           rehearse::gui::Pass::backward, rehearse::gui::Pass::optimizer}) {
      const auto kind = static_cast<Kind>(k);
      const Style style = style_of(kind, pass);
      CHECK(style < kStyles);
      CHECK(kind_of(style) == kind);
      CHECK(pass_of(style) == (kind == Kind::compute ? pass : rehearse::gui::Pass::none));
    }
}

TEST_CASE("A mipmap's buckets hold what fills them, on every level") {
  const auto timeline = many(5000, 7);
  const RowMipmap mipmap(*timeline, timeline->rows[0]);
  REQUIRE(!mipmap.empty());
  CHECK(mipmap.buckets() <= 2 * timeline->spans.size());
  const Time first = timeline->spans.begin[0];
  for (Time length = mipmap.shortest(); first + length <= timeline->end; length *= 2)
    for (const Time number :
         {Time{0}, Time{1}, (timeline->end - first) / length / 2, (timeline->end - first) / length - 1}) {
      const Time begin = first + std::max<Time>(0, number) * length, end = begin + length;
      const auto sums = by_hand(*timeline, begin, end);
      double all = 0, most = 0;
      for (const auto& [style, sum] : sums) {
        all += sum;
        most = std::max(most, sum);
      }
      const Bucket bucket = mipmap.at(begin, end);
      CAPTURE(length, number);
      CHECK(bucket.busy / 255.0 == Approx(all / static_cast<double>(length)).margin(0.5 / 255 + 1e-9));
      CHECK(sums.at(bucket.style) == most);
    }
}

TEST_CASE("A mipmap between its buckets is near what is there") {
  const auto timeline = many(4000, 11);
  const RowMipmap mipmap(*timeline, timeline->rows[0]);
  const Time first = timeline->spans.begin[0];
  for (const double factor : {1.0, 1.3, 1.7, 2.9, 5.5, 40.0}) {
    const auto length = static_cast<Time>(static_cast<double>(mipmap.shortest()) * 16 * factor);
    for (Time begin = first; begin + length < timeline->end; begin += length * 3 / 2) {
      double all = 0;
      for (const auto& [style, sum] : by_hand(*timeline, begin, begin + length)) all += sum;
      CAPTURE(factor, begin);
      CHECK(mipmap.at(begin, begin + length).busy / 255.0 ==
            Approx(all / static_cast<double>(length)).margin(0.2));
    }
  }
}

TEST_CASE("Mipmaps know what occurs and what is critical") {
  const auto timeline = two_stages();
  const auto made = make_mipmaps(*timeline, false);
  REQUIRE(made);
  CHECK(made->rows.size() == timeline->rows.size());
  CHECK(made->rows[0].empty());
  for (const Style style : {style_of(Kind::compute, rehearse::gui::Pass::forward),
                            style_of(Kind::compute, rehearse::gui::Pass::backward),
                            style_of(Kind::communication, rehearse::gui::Pass::none),
                            style_of(Kind::bubble, rehearse::gui::Pass::none)})
    CHECK(made->styles[style]);
  CHECK(made->styles.count() == 4);  // summaries have none
  CHECK(made->critical == std::vector<SpanId>{0, 1, 3});
  CHECK(made->greatest == std::vector<double>{3e9, 1e11});
  CHECK(make_mipmaps(*timeline, true) == nullptr);
}

TEST_CASE("Spans wide enough stand alone, others share a pixel") {
  TimelineBuilder b;
  b.process("rank 0").track("compute");
  b.span("wide", 0, 100)
      .span("narrow", 100, 103, Kind::waiting)
      .span("narrow", 103, 108)
      .span("wide", 150, 200);
  const auto timeline = b.build();
  std::vector<Piece> pieces;
  pieces_of(*timeline, timeline->rows[0], nullptr, {{0, 200}, 0, 20}, pieces);  // 10 ns per pixel
  REQUIRE(pieces.size() == 3);
  CHECK((pieces[0].span == 0 && pieces[0].left == 0 && pieces[0].right == 10));
  CHECK((pieces[1].span == kNoSpan && pieces[1].left == 10 && pieces[1].right == 11));
  CHECK(pieces[1].style == style_of(Kind::compute, rehearse::gui::Pass::none));
  CHECK(pieces[1].busy == Approx(0.8).margin(1 / 255.0));
  CHECK((pieces[2].span == 3 && pieces[2].left == 15 && pieces[2].right == 20));
  // Pieces are cut at the ends of the scale.
  pieces.clear();
  pieces_of(*timeline, timeline->rows[0], nullptr, {{50, 160}, 0, 110}, pieces);
  REQUIRE(pieces.size() == 4);
  CHECK((pieces[0].left == 0 && pieces[0].right == 50));
  CHECK((pieces[3].left == 100 && pieces[3].right == 110));
}

TEST_CASE("From spans, mipmap or samples, the same share of a row is filled") {
  const auto timeline = many(20'000, 3);
  const Row& row = timeline->rows[0];
  const RowMipmap mipmap(*timeline, row);
  const TimeScale scale{{timeline->begin, timeline->end}, 0, 500};
  const auto filled = [](const std::vector<Piece>& pieces) {
    double sum = 0;
    for (const Piece& piece : pieces) sum += (piece.right - piece.left) * piece.busy;
    return sum;
  };
  double all = 0;
  for (const auto& [style, sum] : by_hand(*timeline, timeline->begin, timeline->end)) all += sum;
  const double wanted = all * scale.pixels_per_ns();
  std::vector<Piece> pieces;
  pieces_of(*timeline, row, &mipmap, scale, pieces);
  CHECK(pieces.size() == 500);
  CHECK(filled(pieces) == Approx(wanted).epsilon(0.02));
  pieces.clear();
  pieces_of(*timeline, row, nullptr, scale, pieces);  // sampled: something in every pixel
  CHECK(pieces.size() == 500);
  // Spans few enough to be painted individually: exact, except that shares are in 255ths.
  pieces.clear();
  const TimeScale fine{{timeline->begin, timeline->end}, 0, 20'000};
  pieces_of(*timeline, row, &mipmap, fine, pieces);
  CHECK(filled(pieces) == Approx(all * fine.pixels_per_ns()).epsilon(0.01));
}

TEST_CASE("A long span among short ones is named though the row comes from its mipmap") {
  TimelineBuilder b;
  b.process("rank 0").track("compute");
  Time at = 0;
  for (int i = 0; i < 5000; ++i, at += 10) b.span("short", at, at + 9);
  b.span("long", at, at + 50'000);
  const auto timeline = b.build();
  const RowMipmap mipmap(*timeline, timeline->rows[0]);
  std::vector<Piece> pieces;
  pieces_of(*timeline, timeline->rows[0], &mipmap, {{0, 100'000}, 0, 100}, pieces);
  REQUIRE(!pieces.empty());
  CHECK(pieces.back().span == 5000);
  CHECK(pieces.back().right - pieces.back().left == Approx(50).margin(1));
}
