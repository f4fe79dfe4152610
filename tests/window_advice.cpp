// Checks advice in the real window: it is simulated before it is shown, tried by a click, and compared.
#include <QtTest>

#include <QLabel>
#include <QPushButton>

#include "gui/views/comparison/advice_rows.hpp"
#include "gui/views/comparison/why_view.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;
using rehearse::test::kPatienceMs;

namespace {

struct Advising {
  Advising() {
    shown(window);
    why.set_tries_advice(true);
  }
  ~Advising() { why.set_tries_advice(false); }  // a stored setting, so it must be restored
  // `advice`: whether the trace tells changes that were simulated when it was made.
  void open(const QString& name, const QStringList& settings = {}, const QString& advice = "never") {
    window.open_files({trace_of("advice-" + advice + '-' + name + settings.join('-'), name, settings,
                                {"--advice", advice})});
    settle(window);
    REQUIRE(window.session().current());
  }
  std::vector<QPushButton*> buttons(const QString& text = "Try it") const {
    std::vector<QPushButton*> shown;
    for (QPushButton* button : rows.findChildren<QPushButton*>())
      if (button->isVisible() && button->text() == text) shown.push_back(button);
    return shown;
  }
  QString told() const {
    QString text;
    for (const QLabel* label : rows.findChildren<QLabel*>())
      if (label->isVisible()) text += label->text() + '\n';
    return text;
  }

  MainWindow window;
  WhyView& why = *static_cast<WhyView*>(window.view("why"));
  AdviceRows& rows = *why.findChild<AdviceRows*>();
};

}  // namespace

TEST_CASE("Advice is simulated before it is shown, and a click compares it with its base") {
  Advising a;
  a.open("small-gpt");
  const int base = a.window.session().current()->id;
  REQUIRE(a.why.isVisible());
  const std::vector<QPushButton*> buttons = a.buttons();
  REQUIRE_FALSE(buttons.empty());
  CHECK(buttons[0]->accessibleName() == "Try it: tensor parallel 1, pipeline 2, sequence parallel off");
  CHECK(
      a.told().contains("Inside a node it would not cross the network: <b>18.42 ms a step, 63.6 % less</b>"));
  CHECK_FALSE(a.told().contains("being simulated"));

  const auto trial = a.why.trials().of(base)[0];
  QTest::mouseClick(buttons[0], Qt::LeftButton);
  settle(a.window);
  CHECK(a.window.failures() == 0);
  REQUIRE(a.window.session().runs().size() == 2);
  const Session::RunPointer tried = a.window.session().runs()[1];
  CHECK(a.window.session().shown()[0]->id == base);
  CHECK(
      QString::fromStdString(tried->name).endsWith(", tensor parallel 1, pipeline 2, sequence parallel off"));
  CHECK(tried->path == trial.trace.toStdString());  // nothing was simulated again
  CHECK(tried->figures.step_time_s == Approx(trial.step_time_s));
  CHECK(a.window.view("compare")->isVisible());
  CHECK(a.window.session().current()->id == tried->id);

  // Another click shows the run that is already there.
  a.window.session().set_current(base);
  a.window.show_view("why");
  settle(a.window);
  REQUIRE_FALSE(a.buttons().empty());
  a.buttons()[0]->setFocus();
  QTest::keyClick(a.buttons()[0], Qt::Key_Return);
  settle(a.window);
  CHECK(a.window.session().runs().size() == 2);
  CHECK(a.window.session().current()->id == tried->id);
  CHECK(a.window.view("compare")->isVisible());
}

TEST_CASE("What is advised to a step that does not fit makes it fit, by key too") {
  Advising a;
  a.open("resnet50-ring", {"training.micro_batch=512", "training.global_batch=16384"});
  CHECK_FALSE(a.window.session().current()->figures.memory.fits);
  CHECK(a.told().contains("Smaller micro-batches store fewer activations"));
  CHECK(a.told().contains("; fits: "));
  QTest::keyClick(&a.window, Qt::Key_T, Qt::ControlModifier | Qt::AltModifier);
  settle(a.window);
  REQUIRE(a.window.session().runs().size() == 2);
  CHECK(QString::fromStdString(a.window.session().runs()[1]->name).endsWith(", micro-batch 128"));
  CHECK(a.window.session().runs()[1]->figures.memory.fits);
}

TEST_CASE("Advice that does not help, or cannot be followed, is told as such") {
  Advising a;
  a.open("mlp-ring");
  Run run = *a.window.session().current();
  run.figures.advice = {{"smaller micro-batches would help", {"training.micro_batch=1"}},
                        {"none at all too", {"training.micro_batch=0"}}};
  a.window.session().replace(run);
  settle(a.window);
  CHECK(a.told().contains("Smaller micro-batches would help. Tried: "));
  CHECK(a.told().contains(" more."));
  CHECK(a.told().contains("None at all too. Tried: cannot be simulated: "));
  CHECK(a.told().contains("training.micro_batch is 0"));
  CHECK(a.buttons().size() == 1);
}

TEST_CASE("Advice that is not simulated unasked is, on a click") {
  Advising a;
  a.why.set_tries_advice(false);
  a.open("resnet50-ring");
  CHECK(a.told().contains("Fp16 computes 1.4 times as fast."));
  CHECK_FALSE(a.why.trials().busy());
  REQUIRE(a.buttons().size() == 1);
  QTest::mouseClick(a.buttons()[0], Qt::LeftButton);
  settle(a.window);
  REQUIRE(a.window.session().runs().size() == 2);
  CHECK(QString::fromStdString(a.window.session().runs()[1]->name).endsWith(", precision fp16"));
  CHECK(a.window.session().runs()[1]->figures.step_time_s <
        a.window.session().runs()[0]->figures.step_time_s);
  CHECK(a.window.view("compare")->isVisible());
}

TEST_CASE("A run that is asked for does not wait for advice, which ends with the window") {
  auto a = std::make_unique<Advising>();
  a->open("resnet50-ring");
  Run run = *a->window.session().current();
  // Simulates every rank separately, chunk by chunk, which takes far longer than any test waits.
  run.figures.advice = {{"never known",
                         {"cluster.nodes=64", "training.global_batch=16384", "simulation.fidelity=chunk",
                          "simulation.fold=false", "simulation.steps=70"}}};
  a->window.session().replace(run);
  REQUIRE(wait_for([&] { return a->why.trials().runner().elapsed_s() > 0.1; }));
  CHECK(a->told().contains("One change that may help is being simulated..."));
  CHECK(a->buttons().empty());

  auto& scenario = *static_cast<ScenarioView*>(a->window.view("scenario"));
  QFile file(REHEARSE_TESTS_DIR "/../simulator/scenarios/mlp-ring.toml");
  REQUIRE(file.open(QIODevice::ReadOnly));
  scenario.run_text(QString::fromUtf8(file.readAll()), "asked for", {});
  REQUIRE(wait_for([&] { return a->window.session().runs().size() == 2; }));
  CHECK(a->why.trials().busy());
  QElapsedTimer clock;
  clock.start();
  a.reset();
  CHECK(clock.elapsed() < kPatienceMs / 2);
}

TEST_CASE("Changes that the trace says were simulated are listed at once, and can be put into the form") {
  Advising a;
  a.why.set_tries_advice(false);
  a.open("small-gpt", {}, "always");
  const Run run = *a.window.session().current();
  REQUIRE_FALSE(run.remedies.empty());
  const rehearse::TriedRemedy best = run.remedies.front();
  QStringList settings;
  for (const std::string& set : best.sets) settings << QString::fromStdString(set);
  REQUIRE_FALSE(a.buttons("Put in form").empty());
  CHECK(a.told().contains(QString("%1 % less").arg(QString::number(100 * best.gain, 'f', 1))));
  CHECK(a.why.trials().of(run.id)[0].settings == settings);
  a.buttons("Put in form")[0]->click();
  auto& scenario = *static_cast<ScenarioView*>(a.window.view("scenario"));
  CHECK(scenario.draft().run() == run.id);
  CHECK_FALSE(scenario.draft().is_as_run());
  for (const QString& setting : settings) {
    CAPTURE(setting.toStdString());
    CHECK(scenario.draft().value(setting.section('=', 0, 0)).value_or("") == setting.section('=', 1));
  }
  // One undo takes all of it back.
  scenario.draft().document().undo();
  CHECK(scenario.draft().is_as_run());
  // The first "Try it" simulates the change; the next one shows the run that exists already.
  for (int i = 0; i < 2; ++i) {
    a.window.session().set_current(a.window.session().runs()[0]->id);
    a.window.show_view("why");
    settle(a.window);
    a.buttons()[0]->click();
    settle(a.window);
    REQUIRE(a.window.session().runs().size() == 2);
    const auto tried = a.window.session().runs()[1];
    CHECK(a.window.session().current()->id == tried->id);
    CHECK(tried->figures.step_time_s == Approx(best.step_time_s).epsilon(0.02));
  }
}

TEST_CASE("The note of a framework that would fit is told") {
  Advising a;
  a.why.set_tries_advice(false);
  a.window.open_files({pipeline_trace()});
  settle(a.window);
  QString told;
  for (const QLabel* label : a.why.findChildren<QLabel*>()) told += label->text();
  CHECK(told.contains("No framework's costs are counted: with --set training.framework="));
  CHECK(a.why.as_text().contains("Note: No framework's costs are counted"));
}
