// Tests running scenarios with the command-line program as a child process: finished, refused, cancelled,
// queued.
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gui/models/scenario/command_runner.hpp"
#include "tests/gui_application.hpp"
//
#include "tests/catch.hpp"

using namespace rehearse::gui;
using rehearse::test::kPatienceMs;
using Ending = RunOutcome::Kind;

namespace {

QString shipped_text(const std::string& name) {
  std::stringstream text;
  text
      << std::ifstream(std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/" + name + ".toml").rdbuf();
  return QString::fromStdString(text.str());
}

// Returns a data-parallel scenario simulated without folding, chunk by chunk, which takes far longer than any
// test waits.
QString long_scenario() {
  return shipped_text("resnet50-ring").replace("nodes = 8", "nodes = 64").replace("= 2048", "= 16384") +
         "\n[simulation]\nfidelity = \"chunk\"\nfold = false\nsteps = 70\n";
}

struct Runs {
  Runs() {
    rehearse::test::need_application();
    runner.set_program(REHEARSE_BIN_DIR "/rehearse");
    QObject::connect(&runner, &CommandRunner::finished,
                     [this](const RunOutcome& outcome) { outcomes.push_back(outcome); });
  }
  bool wait_for(std::size_t count) {
    return QTest::qWaitFor([&] { return outcomes.size() >= count; }, kPatienceMs);
  }
  CommandRunner runner;
  std::vector<RunOutcome> outcomes;
};

}  // namespace

TEST_CASE("A run gives its trace and its figures") {
  Runs runs;
  QSignalSpy progressed(&runs.runner, &CommandRunner::progressed);
  const int id = runs.runner.start({shipped_text("mlp-ring"), "mlp/ring", ""});
  CHECK(runs.runner.queued() == 1);
  REQUIRE(runs.wait_for(1));
  const RunOutcome& outcome = runs.outcomes[0];
  CHECK(outcome.error.toStdString() == "");
  REQUIRE(outcome.kind == Ending::done);
  CHECK(outcome.id == id);
  CHECK(outcome.name == "mlp/ring");
  CHECK(outcome.exit_status == 0);
  CHECK(outcome.seconds > 0);
  CHECK(progressed.count() >= 2);
  CHECK(QFileInfo(outcome.path).fileName() == "mlp_ring.json.gz");
  CHECK(QFileInfo(outcome.path).size() > 1000);
  const auto json = nlohmann::json::parse(outcome.json.toStdString());
  CHECK(json["devices"] == 4);
  CHECK(json["step_time_s"].get<double>() > 0);
}

TEST_CASE("A scenario that is refused gives the place and the words") {
  Runs runs;
  runs.runner.start({shipped_text("mlp-ring").replace("global_batch = 64 ", "global_batch = 63 "), "x", ""});
  runs.runner.start({"", "empty", ""});
  REQUIRE(runs.wait_for(2));
  CHECK(runs.outcomes[0].kind == Ending::failed);
  CHECK(runs.outcomes[0].exit_status == 2);
  CHECK(runs.outcomes[0].line == 6);
  CHECK(runs.outcomes[0].column == 16);
  CHECK(runs.outcomes[0].error.startsWith("training.global_batch is 63; allowed: "));
  CHECK(runs.outcomes[0].path.isEmpty());
  CHECK(runs.outcomes[1].line == 0);
  CHECK(runs.outcomes[1].error.startsWith("no model is described"));
}

TEST_CASE("A search gives the file of its plans, and tells how far it is") {
  qputenv("REAL_REHEARSE", REHEARSE_BIN_DIR "/rehearse");
  QStringList lines;
  Runs runs;
  runs.runner.set_program(REHEARSE_TESTS_DIR "/plans/rehearse");
  QObject::connect(&runs.runner, &CommandRunner::progressed, &runs.runner, [&] {
    if (runs.runner.running_task() == Task::plan) lines << runs.runner.last_line();
  });
  runs.runner.start({shipped_text("mlp-ring"), "mlp/ring", "", Task::plan});
  runs.runner.start({shipped_text("mlp-ring"), "then", ""});
  REQUIRE(runs.wait_for(2));
  CHECK_FALSE(lines.filter("plan: bounded").isEmpty());
  const RunOutcome& outcome = runs.outcomes[0];
  CHECK(outcome.error.toStdString() == "");
  REQUIRE(outcome.kind == Ending::done);
  CHECK(outcome.task == Task::plan);
  CHECK(QFileInfo(outcome.path).fileName() == "plan.json");
  CHECK(QFileInfo(outcome.path).dir().exists("plan-14.toml"));
  CHECK(nlohmann::json::parse(outcome.json.toStdString())["plans"].size() == 16);
  CHECK(runs.outcomes[1].task == Task::predict);
  CHECK(runs.outcomes[1].path.endsWith("then.json.gz"));
}

TEST_CASE("A program that cannot be started says so") {
  Runs runs;
  runs.runner.set_program("/nowhere/rehearse");
  runs.runner.start({shipped_text("mlp-ring"), "x", ""});
  REQUIRE(runs.wait_for(1));
  CHECK(runs.outcomes[0].kind == Ending::failed);
  CHECK(runs.outcomes[0].exit_status == -1);
  CHECK(runs.outcomes[0].error.startsWith("/nowhere/rehearse cannot be started"));
  CHECK_FALSE(runs.runner.busy());
}

TEST_CASE("A run is ended, and the next one of the queue begins") {
  Runs runs;
  const int first = runs.runner.start({long_scenario(), "long", ""});
  const int second = runs.runner.start({shipped_text("mlp-ring"), "second", ""});
  const int third = runs.runner.start({shipped_text("mlp-ring"), "third", ""});
  REQUIRE(QTest::qWaitFor([&] { return runs.runner.elapsed_s() > 0.7; }, kPatienceMs));
  CHECK(runs.runner.running_name() == "long");
  CHECK(runs.runner.queued() == 2);
  CHECK(runs.outcomes.empty());
  runs.runner.cancel(third);  // not yet started
  REQUIRE(runs.outcomes.size() == 1);
  CHECK(runs.outcomes[0].id == third);
  runs.runner.cancel(first);
  REQUIRE(runs.wait_for(2));
  CHECK(runs.outcomes[1].id == first);
  CHECK(runs.outcomes[1].kind == Ending::cancelled);
  REQUIRE(runs.wait_for(3));
  CHECK(runs.outcomes[2].id == second);
  CHECK(runs.outcomes[2].kind == Ending::done);
  CHECK_FALSE(runs.runner.busy());
}

TEST_CASE("A child that does not listen is killed, with its own children") {
  QTemporaryDir folder;
  const QString program = folder.filePath("deaf");
  QFile file(program);
  REQUIRE(file.open(QIODevice::WriteOnly));
  file.write(
      "#!/bin/sh\ntrap '' TERM\necho working >&2\necho $$ > pid\nsleep 60 & echo $! > child\nwait\nwait\n");
  file.close();
  file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  Runs runs;
  runs.runner.set_program(program);
  const int id = runs.runner.start({"", "deaf", folder.path()});
  REQUIRE(QTest::qWaitFor([&] { return QFile::exists(folder.filePath("child")); }, kPatienceMs));
  REQUIRE(QTest::qWaitFor([&] { return runs.runner.last_line() == "working"; }, kPatienceMs));
  QElapsedTimer clock;
  clock.start();
  runs.runner.cancel(id);
  REQUIRE(runs.wait_for(1));
  CHECK(clock.elapsed() >= CommandRunner::kKillAfterMs - 50);
  CHECK(runs.outcomes[0].kind == Ending::cancelled);
  QFile child(folder.filePath("child"));
  REQUIRE(child.open(QIODevice::ReadOnly));
  const QByteArray pid = child.readAll().trimmed();
  REQUIRE(pid.toInt() > 0);
  const auto is_gone = [&] {  // or an unreaped zombie
    QFile stat("/proc/" + pid + "/stat");
    return !stat.open(QIODevice::ReadOnly) || stat.readAll().contains(") Z ");
  };
  CHECK(QTest::qWaitFor(is_gone, kPatienceMs));
}

TEST_CASE("The program is looked for beside the window's own") {
  CHECK(CommandRunner::find_program(REHEARSE_BIN_DIR) == QDir(REHEARSE_BIN_DIR).filePath("rehearse"));
  const QByteArray path = qgetenv("PATH");
  qputenv("PATH", REHEARSE_BIN_DIR);
  CHECK(CommandRunner::find_program("/nowhere") == QDir(REHEARSE_BIN_DIR).filePath("rehearse"));
  qputenv("PATH", "/nowhere");
  CHECK(CommandRunner::find_program("/nowhere").isEmpty());
  qputenv("PATH", path);
}

TEST_CASE("How far a child is, is no part of its error") {
  Runs runs;
  const QTemporaryDir folder;
  const std::string path = folder.filePath("fails").toStdString();
  std::ofstream(path) << "#!/bin/sh\ncat > /dev/null\necho 'building the network ...' >&2\n"
                         "echo 'simulating: 42 %' >&2\necho 'rehearse: out of memory' >&2\nexit 1\n";
  QFile::setPermissions(QString::fromStdString(path), QFile::ReadOwner | QFile::ExeOwner);
  runs.runner.set_program(QString::fromStdString(path));
  runs.runner.start({"text", "x", ""});
  REQUIRE(runs.wait_for(1));
  CHECK(runs.outcomes[0].kind == Ending::failed);
  CHECK(runs.outcomes[0].error == "rehearse: out of memory");
}
