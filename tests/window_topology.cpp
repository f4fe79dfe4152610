// Drives the topology and memory views by mouse and keys.
#include <QAbstractItemModel>
#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>
#include <numeric>

#include "gui/views/memory/memory_bars.hpp"
#include "gui/views/memory/memory_view.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/export.hpp"
#include "gui/views/parts/table_view.hpp"
#include "gui/views/topology/topology_canvas.hpp"
#include "gui/views/topology/topology_view.hpp"
#include "tests/catch.hpp"
#include "tests/gui_application.hpp"
#include "tests/gui_runs.hpp"

using namespace rehearse::gui;
using rehearse::test::kPatienceMs;

namespace {

template <class T>
T* named(QWidget& view, const QString& name) {
  for (T* const child : view.findChildren<T*>())
    if (child->accessibleName() == name) return child;
  return nullptr;
}

struct TopologyWindow {
  Session session;
  ViewState state;
  TopologyView view{session, state};

  explicit TopologyWindow(const std::string& name) {
    view.resize(1280, 800);
    view.show();
    QSignalSpy ready(&view, &TopologyView::ready);
    Run run = judged_run(recorded(name), name);
    state.set_whole({0, run.timeline->end});
    session.add(std::move(run));
    REQUIRE((view.is_ready() || ready.wait(kPatienceMs)));
  }
  TopologyCanvas& canvas() { return *view.canvas(); }
  QString summary() { return named<QLabel>(view, "Summary of the topology")->toolTip(); }
  QTableView& users() { return *named<QTableView>(view, "Transfers on the link"); }
  QTableView& links() { return *named<QTableView>(view, "Busiest links"); }
  const Judged& judged() { return *session.current()->judged; }
  // Returns the line of the picture that contains the link.
  const SceneEdge& line(rehearse::LinkId link) {
    for (const SceneEdge& edge : canvas().scene().edges)
      for (const auto* links : {&edge.there, &edge.back})
        if (std::find(links->begin(), links->end(), link) != links->end()) return edge;
    FAIL("the link is not drawn");
    return canvas().scene().edges.front();
  }
};

void click(QTableView& table, int row, bool twice = false) {
  const QModelIndex index = table.model()->index(row, 0);
  table.scrollTo(index);
  const QPoint at = table.visualRect(index).center();
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, at);
  if (twice) QTest::mouseDClick(table.viewport(), Qt::LeftButton, {}, at);
}

}  // namespace

TEST_CASE("A click on a link shows who uses it when, a click on one of them selects it") {
  TopologyWindow window("star-4-16mb-pipeline");
  CHECK(window.summary().contains("x 4"));
  CHECK(window.summary().contains("busiest: "));
  CHECK(window.links().isVisible());
  const rehearse::LinkId link = window.judged().run.scenario.cluster->find_links("node1.nic0.out").front();
  const SceneEdge& line = window.line(link);
  QTest::mouseClick(window.view.canvas(), Qt::LeftButton, {}, line.at(0.5).toPoint());
  REQUIRE(window.users().isVisible());
  CHECK(named<QComboBox>(window.view, "Link")->count() == 2);  // both directions
  REQUIRE(window.users().model()->rowCount() > 0);
  QSignalSpy selected(&window.state, &ViewState::selection_changed);
  click(window.users(), 0);
  CHECK(selected.count() == 1);
  REQUIRE(window.state.selected());
  const Timeline& timeline = *window.session.current()->timeline;
  const SpanId span = window.state.selected()->span;
  CHECK(timeline.spans.kind[span] == Kind::communication);
  const TimeRange before = window.state.visible();
  click(window.users(), 0, true);
  CHECK(window.state.visible().length() < before.length());
  CHECK(window.state.visible().contains(timeline.spans.begin[span]));
  QTest::mouseClick(window.view.canvas(), Qt::LeftButton, {}, QPoint(8, 40));
  CHECK(window.links().isVisible());
}

TEST_CASE("The picture changes with what it shows, and lines stay lines in a drawing of lines") {
  TopologyWindow window("star-4-16mb-pipeline");
  TopologyCanvas& canvas = window.canvas();
  const auto picture = [&] { return canvas.grab().toImage(); };
  const QImage first = picture();
  CHECK(picture() == first);
  const rehearse::LinkId link = window.judged().run.scenario.cluster->find_links("node1.nic0.out").front();
  canvas.select_link(link);
  const QImage selected = picture();
  CHECK(selected != first);
  canvas.select_link({});
  CHECK(picture() == first);
  canvas.zoom_by(1.5, canvas.rect().center());
  CHECK(picture() != first);
  canvas.fit();
  CHECK(picture() == first);
  const QPalette before = canvas.palette();
  canvas.setPalette(palette_of(is_dark(before) ? Theme::light : Theme::dark));
  CHECK(picture() != first);
  canvas.setPalette(before);
  CHECK(picture() == first);
  // At twice the scale, there are twice as many pixels in each direction.
  CHECK(picture_of(canvas, 2).size() == 2 * canvas.size());
  const QTemporaryDir folder;
  const QString path = folder.filePath("topology.svg");
  write_picture(canvas, path);
  QFile file(path);
  REQUIRE(file.open(QIODevice::ReadOnly));
  const QByteArray svg = file.readAll();
  CHECK_FALSE(svg.contains("<image"));
  CHECK(svg.count("<path") + svg.count("<polyline") >= static_cast<int>(canvas.scene().edges.size()));
}

TEST_CASE("The use follows the visible time") {
  TopologyWindow window("star-4-16mb-ring");
  const QString all = window.summary();
  const QVariant use = window.links().model()->index(0, BusiestLinksModel::use).data(kLinkSortRole);
  CHECK(use.toDouble() > 0);
  // Before the first transfer.
  const rehearse::Trace& trace = window.judged().run.trace;
  double first = trace.end_s;
  for (std::size_t row = 0; row < trace.spans.size(); ++row)
    if (rehearse::is_transfer(trace.op_of(row))) first = std::min(first, trace.spans.begin_s[row]);
  window.state.set_visible({0, static_cast<Time>(first * 1e9) - 1000});
  CHECK(window.links().model()->rowCount() == 0);
  CHECK(window.summary().contains("no link is used"));
  window.state.fit();
  CHECK(window.summary() == all);
  // A hidden view does not update; it catches up when it is shown again.
  window.view.hide();
  window.state.set_visible({0, static_cast<Time>(first * 1e9) - 1000});
  CHECK(window.summary() == all);
  window.view.show();
  CHECK(window.summary().contains("no link is used"));
}

TEST_CASE("Keys go through the links by their use, open nodes and go back") {
  TopologyWindow window("tree-2to1-8-16mb-ring");
  TopologyCanvas& canvas = window.canvas();
  canvas.setFocus();
  const QAbstractItemModel& busiest = *window.links().model();
  REQUIRE(busiest.rowCount() > 2);
  auto* const which = named<QComboBox>(window.view, "Link");
  const auto current = [&] { return which->currentText().section("  ", 0, 0); };
  QStringList stepped;
  for (int i = 0; i < 3; ++i) {
    QTest::keyClick(&canvas, i == 0 ? Qt::Key_Tab : Qt::Key_Down);
    stepped << current();
  }
  QTest::keyClick(&canvas, Qt::Key_Up);
  CHECK(current() == stepped[1]);
  for (int i = 0; i < 3; ++i) CHECK(busiest.index(i, 0).data().toString().section(' ', 0, 0) == stepped[i]);
  QTest::keyClick(&canvas, Qt::Key_Escape);
  CHECK(window.links().isVisible());
  const std::size_t before = canvas.scene().frames.size();
  window.view.select_link(window.judged().run.scenario.cluster->find_links("node2.nic0.out").front());
  QTest::keyClick(&canvas, Qt::Key_Return);
  CHECK(canvas.scene().frames.size() == before + 1);
  QTest::keyClick(&canvas, Qt::Key_F, Qt::ShiftModifier);
  QCoreApplication::processEvents();
  CHECK(canvas.scene().frames.empty());
}

TEST_CASE("A click opens a node, wheel and drag move the picture, F fits it again") {
  TopologyWindow window("star-4-16mb-ring");
  TopologyCanvas& canvas = window.canvas();
  REQUIRE_FALSE(canvas.scene().vertices.empty());
  const QRectF home = canvas.scene().vertices[0].box;
  QTest::mouseClick(&canvas, Qt::LeftButton, {}, home.center().toPoint());
  REQUIRE(canvas.scene().frames.size() == 1);
  for (const SceneVertex& vertex : canvas.scene().vertices)
    if (vertex.part >= 0) CHECK(canvas.scene().frames[0].contains(vertex.box));
  QTest::mouseClick(&canvas, Qt::LeftButton, {}, canvas.scene().vertices[0].box.center().toPoint());
  CHECK(canvas.scene().frames.empty());
  CHECK(canvas.scene().vertices[0].box == home);
  const QPoint centre = canvas.rect().center();
  QWheelEvent wheel(centre, canvas.mapToGlobal(centre), {}, {0, 120}, Qt::NoButton, Qt::NoModifier,
                    Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(&canvas, &wheel);
  CHECK(canvas.scene().vertices[0].box.center() != home.center());
  QTest::mousePress(&canvas, Qt::LeftButton, {}, QPoint(10, 300));
  QTest::mouseMove(&canvas, QPoint(60, 320));
  QTest::mouseRelease(&canvas, Qt::LeftButton, {}, QPoint(60, 320));
  CHECK(canvas.scene().frames.empty());
  canvas.setFocus();
  QTest::keyClick(&canvas, Qt::Key_F);
  CHECK(canvas.scene().vertices[0].box == home);
}

TEST_CASE("The links that the selected transfer crosses are highlighted") {
  TopologyWindow window("star-4-16mb-pipeline");
  const rehearse::Trace& trace = window.judged().run.trace;
  const rehearse::Cluster& cluster = *window.judged().run.scenario.cluster;
  const Timeline& timeline = *window.session.current()->timeline;
  const RowSpans spans(trace, timeline);
  bool sent = false, computed = false;
  for (std::size_t row = 0; row < trace.spans.size() && !(sent && computed); ++row) {
    const rehearse::Op& op = trace.op_of(row);
    const bool sends = op.kind == rehearse::OpKind::exchange &&
                       op.messages.front().direction == rehearse::Message::Direction::send;
    if (!sends && op.kind != rehearse::OpKind::compute) continue;
    window.state.select(SpanRef{window.session.current()->id, spans.span_of(row)});
    if (!sends) {
      computed = true;
      CHECK(window.canvas().highlighted().empty());
      continue;
    }
    sent = true;
    const int rank = trace.classes[trace.spans.rank_class[row]].ranks.front();
    const std::vector<int>& endpoints = trace.run.jobs[0].endpoints;
    std::vector<rehearse::LinkId> out, highlighted = window.canvas().highlighted();
    cluster.route(endpoints[rank], endpoints[(rank + 1) % 4], -1, out);
    std::vector<rehearse::LinkId> back;
    if (rank > 0) cluster.route(endpoints[rank], endpoints[rank - 1], -1, back);
    std::sort(out.begin(), out.end());
    std::sort(back.begin(), back.end());
    CHECK((highlighted == out || highlighted == back));
    CHECK_FALSE(highlighted.empty());
  }
  CHECK(sent);
  CHECK(computed);
  window.state.clear_selection();
  CHECK(window.canvas().highlighted().empty());
}

TEST_CASE("What has no topology says so") {
  Session session;
  ViewState state;
  TopologyView view(session, state);
  CHECK(view.canvas()->message.startsWith("No run yet"));
  Run profiler;
  profiler.source = Run::Source::profiler;
  profiler.timeline = std::make_shared<const Timeline>();
  const int id = session.add(profiler);
  CHECK(view.canvas()->message.contains("is unknown"));
  Run other;
  other.timeline = std::make_shared<const Timeline>();
  session.add(other);
  CHECK(view.canvas()->message.contains("being read"));
  other.id = session.current()->id;
  other.not_judged = "it has several jobs";
  session.replace(other);
  CHECK(view.canvas()->message.contains("it has several jobs"));
  session.set_current(id);
  CHECK(view.canvas()->message.contains("another program"));
}

TEST_CASE("Actions of both views can be put into menus") {
  Session session;
  ViewState state;
  TopologyView topology(session, state);
  MemoryView memory(session, state);
  for (QWidget* const view : {static_cast<QWidget*>(&topology), static_cast<QWidget*>(&memory)}) {
    CHECK(view->actions().size() >= 3);
    for (const QAction* const action : view->actions()) {
      CHECK_FALSE(action->text().isEmpty());
      CHECK_FALSE(action->toolTip().isEmpty());
      CHECK(action->property("menu").toString().startsWith("&View"));
      CHECK(action->shortcutContext() == Qt::WidgetWithChildrenShortcut);
    }
  }
}

TEST_CASE("Bars stand for stages, as high as their memory, and choose what is shown over time") {
  Session session;
  ViewState state;
  MemoryView view(session, state);
  view.resize(1280, 800);
  view.show();
  QSignalSpy ready(&view, &MemoryView::ready);
  for (const char* const name : {"star-4-16mb-pipeline", "star-4-16mb-ring"}) {
    Run run = judged_run(recorded(name), name);
    state.set_whole({0, run.timeline->end});
    session.add(std::move(run));
  }
  REQUIRE(QTest::qWaitFor(
      [&] {
        return ready.count() > 0 && view.memory().size() == 2 && view.bars()->chosen_run() == 1 &&
               view.memory()[0].stages.size() == 4 && view.memory()[1].stages.size() == 1;
      },
      kPatienceMs));
  const auto height = [&](int run, int stage) {
    return view.bars()->bar(run, stage).height() / view.memory()[run].stages[stage].total;
  };
  for (int stage = 1; stage < 4; ++stage) CHECK(height(0, stage) == Approx(height(0, 0)));
  CHECK(height(1, 0) == Approx(height(0, 0)));
  const QRectF third = view.bars()->bar(0, 2);
  QTest::mouseClick(view.bars(), Qt::LeftButton, {}, third.center().toPoint());
  CHECK(view.bars()->chosen_run() == 0);
  CHECK(view.bars()->chosen_stage() == 2);
  view.bars()->setFocus();
  QTest::keyClick(view.bars(), Qt::Key_Right);
  CHECK(view.bars()->chosen_stage() == 3);
  QTest::keyClick(view.bars(), Qt::Key_Right);
  CHECK(view.bars()->chosen_run() == 1);
  session.remove(session.runs().front()->id);
  CHECK(view.memory().size() == 1);
}

TEST_CASE("The memory view lists the tensors at the peak, and at the cursor where there is one") {
  Session session;
  ViewState state;
  MemoryView view(session, state);
  view.resize(1280, 800);
  view.show();
  CHECK(view.tensors().table().rowCount() == 0);
  CHECK(view.moment().text().isEmpty());
  Run run = judged_run(recorded("star-4-16mb-pipeline"), "pipeline");
  const Time end = run.timeline->end;
  state.set_whole({0, end});
  session.add(std::move(run));
  const auto wait = [](const std::function<bool()>& done) { return QTest::qWaitFor(done, kPatienceMs); };
  REQUIRE(wait([&] { return view.tensors().table().rowCount() > 0; }));
  CHECK(view.moment().text().startsWith("Peak: "));
  const QString peak = view.moment().text();
  CHECK(view.tensors().table().table().rows[0][0].text.startsWith("weights"));
  state.set_cursor(end / 2);
  REQUIRE(wait([&] { return view.moment().text().startsWith("At the cursor: "); }));
  CHECK(view.tensors().table().rowCount() > 0);
  state.set_cursor({});
  REQUIRE(wait([&] { return view.moment().text() == peak; }));
  view.choose(0, 2);
  REQUIRE(wait([&] { return view.moment().text() != peak; }));
  session.remove(session.runs().front()->id);
  CHECK(view.tensors().table().rowCount() == 0);
  CHECK(view.moment().text().isEmpty());
}
