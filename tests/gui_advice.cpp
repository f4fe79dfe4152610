// Tests the advice for runs: which advice there is, how the results of its trials are worded, and that trials
// end with their run.
#include <QFileInfo>
#include <QProcess>
#include <QTemporaryDir>
#include <fstream>
#include <sstream>

#include "gui/models/comparison/advice_trials.hpp"
#include "gui/models/scenario/scenario_difference.hpp"
#include "tests/gui_application.hpp"
#include "tests/gui_recorded.hpp"
//
#include "tests/catch.hpp"

using namespace rehearse::gui;
using rehearse::Advice;
using rehearse::test::kPatienceMs;
using State = AdviceTrial::State;

namespace {

std::string scenario(const std::string& name) {
  std::stringstream text;
  text
      << std::ifstream(std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios/" + name + ".toml").rdbuf();
  return text.str();
}

// Returns a run of the MLP, whose step takes 14.8 ms and trains 64 samples.
Run small_run(std::vector<Advice> advice) {
  Run run;
  run.name = "mlp";
  run.scenario_text = scenario("mlp-ring");
  run.figures.step_time_s = 0.014842173623964089;
  run.figures.samples_per_s = 64 / run.figures.step_time_s;
  run.figures.advice = std::move(advice);
  return run;
}

// Returns a data-parallel run simulated without folding, chunk by chunk, which takes far longer than any test
// waits.
Run long_run() {
  Run run = small_run({{"never known", {"training.precision=fp16"}}});
  run.scenario_text = QString::fromStdString(scenario("resnet50-ring"))
                          .replace("nodes = 8", "nodes = 64")
                          .replace("= 2048", "= 16384")
                          .toStdString() +
                      "\n[simulation]\nfidelity = \"chunk\"\nfold = false\nsteps = 70\n";
  return run;
}

AdviceTrial done(double step_s, double samples, bool fits = true) {
  AdviceTrial trial;
  trial.state = State::done;
  trial.step_time_s = step_s;
  trial.samples_per_s = samples / step_s;
  trial.memory.total = fits ? 5e9 : 20e9;
  trial.memory.capacity = 16e9;
  trial.memory.fits = fits;
  return trial;
}

struct Trials {
  Trials() {
    rehearse::test::need_application();
    trials.runner().set_program(REHEARSE_BIN_DIR "/rehearse");
  }
  bool wait() {
    return QTest::qWaitFor([&] { return !trials.busy(); }, kPatienceMs);
  }
  Session session;
  AdviceTrials trials{session};
};

}  // namespace

TEST_CASE("A judged prediction has the advice that its report tells, and the sentence is without it") {
  QTemporaryDir folder;
  const QString trace = folder.filePath("small.json.gz");
  QProcess process;
  process.start(REHEARSE_BIN_DIR "/rehearse",
                {"simulate", REHEARSE_TESTS_DIR "/../simulator/scenarios/small-gpt.toml", "--advice", "never",
                 "--trace", trace});
  REQUIRE(process.waitForFinished(kPatienceMs));
  const QString report = QString::fromUtf8(process.readAllStandardOutput()).simplified();
  const Run run = test::run_of(trace.toStdString(), "small");
  REQUIRE_FALSE(run.figures.advice.empty());
  const Advice& first = run.figures.advice.front();
  CHECK(first.why == "inside a node it would not cross the network");
  QString told = QString::fromStdString("; " + first.why + " (try");
  for (const std::string& set : first.sets) told += " --set " + QString::fromStdString(set);
  CAPTURE(report.toStdString(), told.toStdString());
  // The sentence without its full stop, then the advice, then the full stop.
  CHECK(report.contains(QString::fromStdString(run.figures.bottleneck).chopped(1) + told + ")."));
  CHECK(run.figures.bottleneck.find("--set") == std::string::npos);
  // Other losses of the run also have advice, and each is listed only once.
  for (std::size_t i = 0; i < run.figures.advice.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) CHECK(run.figures.advice[i].sets != run.figures.advice[k].sets);
  CHECK(AdviceTrials::can_try(run));
}

TEST_CASE("What was measured keeps its advice in the sentence, and is not tried") {
  const Run run = test::run_of(test::recorded("nodes-2x4-8mb-ring"), "ring");
  REQUIRE(run.source == Run::Source::measured);
  CHECK(run.figures.advice.empty());
  CHECK_FALSE(AdviceTrials::can_try(run));
}

TEST_CASE("Settings are called as in the form") {
  CHECK(settings_name({"strategy.schedule=interleaved", "strategy.virtual_stages=2"}) ==
        "schedule interleaved, virtual stages 2");
  CHECK(settings_name({"training.precision=fp16"}) == "precision fp16");
  CHECK(settings_name({"strategy.zero_stage=1"}) == "ZeRO stage 1");
  CHECK(settings_name({"cluster.slow=[]"}) == "no slow parts");
  CHECK(settings_name({"strategy.sequence_parallel=true", "training.cuda_graphs=false"}) ==
        "sequence parallel on, cuda graphs off");
  CHECK(settings_name({"strategy.gradients=\"all-reduce\""}) == "gradients all-reduce");
}

TEST_CASE("A trial is told against its run: better, worse, the same, per sample, and whether it fits") {
  Run run = small_run({});
  run.figures.step_time_s = 0.1;
  run.figures.samples_per_s = 640;
  CHECK(outcome_text(run, AdviceTrial{}) == "");
  CHECK(verdict_on(run, AdviceTrial{}) == Verdict::unknown);
  CHECK(outcome_text(run, done(0.08, 64)) == "80.00 ms a step, 20.0 % less");
  CHECK(verdict_on(run, done(0.08, 64)) == Verdict::better);
  CHECK(outcome_text(run, done(0.103, 64)) == "103.0 ms a step, 3.0 % more");
  CHECK(verdict_on(run, done(0.103, 64)) == Verdict::worse);
  CHECK(outcome_text(run, done(0.1, 64)) == "100.0 ms a step, unchanged");
  CHECK(verdict_on(run, done(0.1, 64)) == Verdict::same);
  CHECK(outcome_text(run, done(0.16, 128)) == "160.0 ms a step, 20.0 % less per sample");
  CHECK(outcome_text(run, done(0.08, 64, false)) ==
        "80.00 ms a step, 20.0 % less; does not fit: 18.6 of 14.9 GiB");
  CHECK(verdict_on(run, done(0.08, 64, false)) == Verdict::worse);
  run.figures.memory.fits = false;
  CHECK(outcome_text(run, done(0.12, 64)) == "120.0 ms a step, 20.0 % more; fits: 4.66 of 14.9 GiB");
  CHECK(verdict_on(run, done(0.12, 64)) == Verdict::better);
  AdviceTrial failed;
  failed.state = State::failed;
  failed.error = "training.micro_batch is 0";
  CHECK(outcome_text(run, failed) == "cannot be simulated: training.micro_batch is 0");
}

TEST_CASE("Advice is simulated with its settings, and what is refused says why") {
  Trials t;
  const int run = t.session.add(small_run(
      {{"twice the batch", {"training.global_batch=128"}}, {"nonsense", {"training.micro_batch=0"}}}));
  REQUIRE(t.trials.of(run).size() == 2);
  CHECK(t.trials.of(run)[0].state == State::untried);
  CHECK_FALSE(t.trials.busy());
  t.trials.try_all(run);
  CHECK(t.trials.of(run)[0].state == State::waiting);
  REQUIRE(t.wait());
  const AdviceTrial& twice = t.trials.of(run)[0];
  REQUIRE(twice.state == State::done);
  CHECK(twice.samples_per_s * twice.step_time_s == Approx(128));
  CHECK(verdict_on(*t.session.run(run), twice) == Verdict::better);
  CHECK(QFileInfo(twice.trace).size() > 1000);
  const Run opened = test::run_of(twice.trace.toStdString(), "twice");
  CHECK(opened.figures.step_time_s == Approx(twice.step_time_s));
  CHECK(opened.scenario_text.find("128") != std::string::npos);  // can be run again as tried
  const AdviceTrial& nonsense = t.trials.of(run)[1];
  CHECK(nonsense.state == State::failed);
  CHECK(nonsense.error.contains("training.micro_batch is 0; allowed: "));
  // A second request does not repeat trials.
  t.trials.try_all(run);
  CHECK_FALSE(t.trials.busy());
}

TEST_CASE("Trials end when their run goes, and those of the next run begin") {
  Trials t;
  const int longest = t.session.add(long_run());
  const int next = t.session.add(small_run({{"twice the batch", {"training.global_batch=128"}}}));
  t.trials.try_all(longest);
  t.trials.try_all(next);
  REQUIRE(QTest::qWaitFor([&] { return t.trials.runner().elapsed_s() > 0.2; }, kPatienceMs));
  t.session.remove(longest);
  REQUIRE(t.wait());
  CHECK(t.trials.of(longest).empty());
  CHECK(t.trials.of(next)[0].state == State::done);
}

TEST_CASE("Trials give way to other programs") {
  QTemporaryDir folder;
  const QString program = folder.filePath("nice");
  QFile file(program);
  REQUIRE(file.open(QIODevice::WriteOnly));
  file.write("#!/bin/sh\nnice > " + folder.filePath("told").toUtf8() + "\necho '{}'\n");
  file.close();
  file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  Trials t;
  t.trials.runner().set_program(program);
  const int run = t.session.add(small_run({{"x", {"training.precision=fp16"}}}));
  t.trials.try_all(run);
  REQUIRE(t.wait());
  QFile told(folder.filePath("told"));
  REQUIRE(told.open(QIODevice::ReadOnly));
  CHECK(told.readAll().trimmed() == "19");
}
