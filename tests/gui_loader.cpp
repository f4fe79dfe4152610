// Tests files that are read outside the GUI thread: the results, their order, and their names.
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "gui/models/session/loader.hpp"
#include "tests/catch.hpp"
#include "tests/gui_application.hpp"

using namespace rehearse::gui;
using rehearse::test::need_application;

namespace {

const QString kTraces = REHEARSE_TESTS_DIR "/traces/";
const QString kRecorded = REHEARSE_TESTS_DIR "/../benchmarks/recorded/emulated/star-4-1mb-ring.json.gz";

struct Opened {
  explicit Opened(Session& session) : loader(session) {
    QObject::connect(&loader, &Loader::finished, [this](int, const std::vector<int>& runs) { ids = runs; });
    QObject::connect(&loader, &Loader::failed,
                     [this](const QString&, const QString& message) { failures << message; });
  }
  void wait() {
    while (loader.busy()) QTest::qWait(5);
  }
  Loader loader;
  std::vector<int> ids;
  QStringList failures;
};

// Writes a trace of `spans` spans of 1 us, one after the other on two ranks.
void write_long_trace(const QString& path, std::size_t spans) {
  std::ofstream file(path.toStdString());
  file << "{\"traceEvents\":[";
  for (std::size_t i = 0; i < spans; ++i)
    file << (i == 0 ? "" : ",\n") << R"({"ph":"X","name":"a","tid":1,"dur":1,"pid":)" << 2 * i / spans
         << R"(,"ts":)" << i % (spans / 2) << "}";
  file << "]}";
}

}  // namespace

TEST_CASE("A measured run is read, and then judged") {
  need_application();
  Session session;
  Opened opened(session);
  std::vector<std::string> order;
  QObject::connect(&opened.loader, &Loader::opened, [&](int) { order.push_back("opened"); });
  QObject::connect(&opened.loader, &Loader::judged, [&](int) { order.push_back("judged"); });
  opened.loader.open({kRecorded});
  CHECK(opened.loader.busy());
  opened.wait();
  CHECK(order == std::vector<std::string>{"opened", "judged"});
  REQUIRE(session.runs().size() == 1);
  const rehearse::gui::Run& run = *session.current();
  CHECK(run.name == "star-4-1mb-ring");
  CHECK(run.source == rehearse::gui::Run::Source::measured);
  CHECK(run.judged);
  CHECK(run.not_judged.empty());
  CHECK(run.scenario_text.find("[model") != std::string::npos);
  CHECK(run.aligned == run.figures.step.begin);
  CHECK(opened.loader.share() == 1);
  REQUIRE(run.nodes.size() == run.timeline->processes.size());  // four ranks on four nodes, plus the links
  for (int rank = 0; rank < 4; ++rank) {
    const auto named = std::find_if(run.timeline->processes.begin(), run.timeline->processes.end(),
                                    [&](const Process& process) { return process.pid == rank + 1; });
    CHECK(run.nodes[static_cast<std::size_t>(named - run.timeline->processes.begin())] ==
          "node" + std::to_string(rank));
  }
}

TEST_CASE("Ranks of one job that are opened together are one run") {
  need_application();
  Session session;
  Opened opened(session);
  const QString first = kTraces + "ddp-gloo-rank0.json.gz", second = kTraces + "ddp-gloo-rank1.json.gz";
  opened.loader.open({first, kRecorded, second}, {"", "measured", ""});
  opened.wait();
  REQUIRE(session.runs().size() == 2);
  REQUIRE(opened.ids.size() == 3);
  CHECK(opened.ids[2] == 0);
  CHECK(session.run(opened.ids[0])->name == "ddp-gloo (2 ranks)");
  CHECK(session.run(opened.ids[0])->source == rehearse::gui::Run::Source::profiler);
  CHECK_FALSE(session.run(opened.ids[0])->not_judged.empty());
  CHECK(session.run(opened.ids[1])->name == "measured");

  // The same rank twice gives two runs.
  Session other;
  Opened again(other);
  again.loader.open({first, first});
  again.wait();
  CHECK(other.runs().size() == 2);
}

TEST_CASE("What cannot be read is told, and the others are read all the same") {
  need_application();
  const QTemporaryDir folder;
  const QString broken = folder.filePath("broken.json");
  std::ofstream(broken.toStdString()) << "no trace";
  Session session;
  Opened opened(session);
  opened.loader.open({folder.filePath("none.json"), broken, kRecorded});
  opened.wait();
  CHECK(opened.failures.size() == 2);
  CHECK(opened.failures.join("\n").contains("none.json"));
  CHECK(opened.failures.join("\n").contains("broken.json"));
  REQUIRE(opened.ids.size() == 3);
  CHECK(opened.ids[0] == 0);
  CHECK(opened.ids[1] == 0);
  CHECK(session.run(opened.ids[2]));
}

TEST_CASE("A run whose file has gone stays as it is") {
  need_application();
  const QTemporaryDir folder;
  const QString path = folder.filePath("run.json.gz");
  QFile::copy(kRecorded, path);
  Session session;
  Opened opened(session);
  opened.loader.open({path});
  opened.wait();
  const Session::RunPointer before = session.current();
  QFile::remove(path);
  opened.loader.reload(before->id);
  opened.wait();
  CHECK(session.current() == before);
  CHECK(opened.failures.size() == 1);
}

TEST_CASE("What is being read can be given up") {
  need_application();
  const QTemporaryDir folder;
  const std::string path = folder.filePath("large.json").toStdString();
  {
    std::ofstream file(path);
    file << "{\"traceEvents\": [\n";
    for (int i = 0; i < 300'000; ++i)
      file << R"({"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": )" << i << R"(, "dur": 1},)"
           << "\n";
    file << R"({"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 300000, "dur": 1}]})";
  }
  Session session;
  Opened opened(session);
  opened.loader.open({QString::fromStdString(path)});
  opened.loader.cancel();
  opened.wait();
  CHECK(session.runs().empty());
  CHECK(opened.failures.isEmpty());
}

TEST_CASE("The first part of a long trace is shown while the rest is read") {
  need_application();
  const QTemporaryDir folder;
  const QString path = folder.filePath("long.json");
  constexpr std::size_t kSpans = 3 * kFirstSpans;
  write_long_trace(path, kSpans);
  enum class Then { nothing, cancel, close };
  for (const Then then : {Then::nothing, Then::cancel, Then::close}) {
    CAPTURE(static_cast<int>(then));
    Session session;
    Opened opened(session);
    int begun = 0, complete = 0;
    std::size_t first_spans = 0;
    QObject::connect(&opened.loader, &Loader::begun, [&](int run) {
      begun = run;
      first_spans = session.run(run)->timeline->spans.size();
      CHECK_FALSE(session.run(run)->not_judged.empty());
      if (then == Then::cancel) opened.loader.cancel();
      if (then == Then::close) session.remove(run);
    });
    QObject::connect(&opened.loader, &Loader::opened, [&](int run) { complete = run; });
    opened.loader.open({path});
    opened.wait();
    CHECK(begun != 0);
    CHECK((first_spans >= kFirstSpans && first_spans < kSpans));
    CHECK(complete == (then == Then::nothing ? begun : 0));
    CHECK(session.runs().size() == (then == Then::nothing ? 1 : 0));
    if (then != Then::nothing) continue;
    const auto& timeline = *session.run(complete)->timeline;
    CHECK(timeline.processes.size() == 2);
    CHECK(timeline.rows[0].last - timeline.rows[0].first == kSpans / 2);
    CHECK(opened.ids == std::vector<int>{complete});
    CHECK(session.run(complete)->notes.empty());
  }
}
