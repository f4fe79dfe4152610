// Checks that the form of a scenario covers every key of the reader and shows what defaults amount to.
#include <QtTest>

#include <QComboBox>
#include <QLabel>
#include <QToolButton>

#include "gui/models/scenario/further_fields.hpp"
#include "gui/views/scenario/choice_box.hpp"
#include "gui/views/scenario/number_field.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"
#include "gui/views/scenario/setting_finder.hpp"
#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

const char* const kText =
    "[model]\npreset = \"resnet50\"\n[training]\nglobal_batch = 2048\nmicro_batch = 64\n"
    "[cluster]\npreset = \"dgx-a100\"\nnodes = 4\n[strategy]\nall_reduce = \"ring\"\n";

struct Form {
  explicit Form(const QString& text = kText) {
    shown(window);
    window.activateWindow();
    REQUIRE(QTest::qWaitForWindowActive(&window, rehearse::test::kPatienceMs));
    view.set_text(text, "mine");
    REQUIRE(wait_for([&] { return form.knows_keys(); }));
  }
  bool wait_until_told(const QString& text) {
    return wait_for([&] {
      for (const QLabel* label : view.findChildren<QLabel*>())
        if (label->accessibleName() == "Whether the scenario can be run" && label->text().contains(text))
          return true;
      return false;
    });
  }
  template <class Widget>
  Widget& field(const QString& key) {
    auto* found = qobject_cast<Widget*>(form.field(key));
    CAPTURE(key.toStdString());
    REQUIRE(found);
    return *found;
  }
  QStringList found() {
    QStringList all;
    for (int i = 0; i < form.finder().further().count(); ++i) all << form.finder().further().item(i)->text();
    return all;
  }
  void choose(const QString& key, const QString& value) {
    auto& box = field<QComboBox>(key);
    const int row = box.findData(value);
    REQUIRE(row >= 0);
    box.setCurrentIndex(row);
    emit box.activated(row);
  }

  MainWindow window;
  ScenarioView& view = *static_cast<ScenarioView*>(window.view("scenario"));
  ScenarioForm& form = view.form();
};

}  // namespace

TEST_CASE("The form finds every key that the reader knows", "[release]") {
  Form f;
  const auto keys = scenario_keys();
  REQUIRE(keys->size() > 250);
  for (const ScenarioKey& key : *keys) {
    CAPTURE(key.path.toStdString());
    f.form.finder().line().setText(key.path);
    const QString path = first_path(key.path, *keys);
    if (!key.value) {  // a section is found by its keys
      bool any = !f.found().isEmpty();
      for (const QWidget* field : f.form.findChildren<QWidget*>())
        any = any || (field->objectName().startsWith(key.path + '.') && field->isVisible());
      CHECK(any);
    } else if (f.found().contains(path)) {
      emit f.form.finder().chosen(path);
      CHECK(f.form.field(path));
    } else {
      QWidget* field = f.form.field(path);
      if (path == "strategy.parameter_server.servers") field = f.form.field("servers");
      REQUIRE(field);
      CHECK(field->isVisible());
    }
  }
}

TEST_CASE("A key that has no field is found, gets one, and is written to the text") {
  Form f;
  QLineEdit& line = f.form.finder().line();
  QTest::keyClick(&f.window, Qt::Key_F, Qt::ControlModifier | Qt::ShiftModifier);
  REQUIRE(line.hasFocus());
  QTest::keyClicks(&line, "zig");
  CHECK(f.found() == QStringList{"strategy.zigzag"});
  CHECK_FALSE(f.field<QComboBox>("model.preset").isVisible());
  QTest::keyClick(&line, Qt::Key_Return);
  CHECK(line.text().isEmpty());
  CHECK(f.field<QComboBox>("model.preset").isVisible());
  auto& zigzag = f.field<QComboBox>("strategy.zigzag");
  CHECK(zigzag.hasFocus());
  CHECK_FALSE(zigzag.accessibleName().isEmpty());
  CHECK(f.view.draft().text() == kText);
  f.choose("strategy.zigzag", "false");
  CHECK(f.view.draft().text().contains("zigzag = false\n"));
  f.choose("strategy.zigzag", "");
  CHECK(f.view.draft().text() == kText);
  CHECK(f.form.field("strategy.zigzag"));  // its field stays

  // A key in an array of tables, chosen with the arrow keys; a number with a fraction, and a text.
  line.setFocus();
  QTest::keyClicks(&line, "cluster slow");
  REQUIRE(f.found() ==
          QStringList{"cluster.slow[0].device", "cluster.slow[0].factor", "cluster.slow[0].link"});
  QTest::keyClick(&line, Qt::Key_Down);
  QTest::keyClick(&line, Qt::Key_Return);
  auto& factor = f.field<NumberField>("cluster.slow[0].factor");
  REQUIRE(factor.hasFocus());
  QTest::keyClicks(&factor, ".5");
  QTest::keyClick(&factor, Qt::Key_Return);
  CHECK(f.view.draft().text().contains("\n[[cluster.slow]]\nfactor = 0.5\n"));
  emit f.form.finder().chosen("cluster.slow[0].link");
  auto& link = f.field<QLineEdit>("cluster.slow[0].link");
  QTest::keyClicks(&link, "nic");
  QTest::keyClick(&link, Qt::Key_Tab);
  CHECK(f.view.draft().text().contains("factor = 0.5\nlink = \"nic\"\n"));
  REQUIRE(QApplication::focusWidget());
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Z, Qt::ControlModifier);
  CHECK_FALSE(f.view.draft().text().contains("link ="));

  // Enter goes to an existing field, first to one that is named exactly; Esc cancels.
  line.setFocus();
  QTest::keyClicks(&line, "micro_batch");
  CHECK(f.found() == QStringList{"strategy.microbatch_group"});  // its words match, too
  QTest::keyClick(&line, Qt::Key_Return);
  CHECK(f.field<NumberField>("training.micro_batch").hasFocus());
  line.setFocus();
  QTest::keyClicks(&line, "global batch");
  CHECK(f.found().isEmpty());
  QTest::keyClick(&line, Qt::Key_Return);
  CHECK(f.field<NumberField>("training.global_batch").hasFocus());
  line.setFocus();
  QTest::keyClicks(&line, "nothing of that kind");
  QTest::keyClick(&line, Qt::Key_Escape);
  CHECK(line.text().isEmpty());
}

TEST_CASE("What the text sets has a field, common or not") {
  Form f(QString(kText) +
         "zigzag = true\nstage_layers = [3, 4]\n[strategy.local_sgd]\nevery = 4\n"
         "[[cluster.slow]]\ndevice = 1\nfactor = 0.5\n[[cluster.slow]]\ndevice = 2\nfactor = 0.25\n");
  CHECK(f.field<QComboBox>("strategy.zigzag").currentText() == "true");
  CHECK(f.field<NumberField>("strategy.local_sgd.every").value() == "4");
  CHECK(f.field<NumberField>("cluster.slow[1].factor").value() == "0.25");
  auto& layers = f.field<QLineEdit>("strategy.stage_layers");
  CHECK(layers.text() == "[3, 4]");
  layers.setFocus();
  layers.selectAll();
  QTest::keyClicks(&layers, "[1, 6]");
  QTest::keyClick(&layers, Qt::Key_Return);
  CHECK(f.view.draft().text().contains("stage_layers = [1, 6]\n"));
  // A field that the user did not add disappears with its key.
  f.view.draft().remove("strategy.zigzag");
  CHECK(wait_for([&] { return !f.form.field("strategy.zigzag"); }));
}

TEST_CASE("A default is told as what it comes to, in the colour of what is given") {
  Form f;
  REQUIRE(f.wait_until_told("32 devices"));
  auto& precision = f.field<QComboBox>("training.precision");
  CHECK(precision.currentText() == "bf16 (default)");
  CHECK(precision.palette().color(QPalette::ButtonText) == f.form.palette().color(QPalette::ButtonText));
  auto& tensor = f.field<NumberField>("strategy.tensor");
  CHECK(tensor.value().isEmpty());
  CHECK(tensor.shown_default() == "1 (default)");
  const auto* line = tensor.findChild<QLineEdit*>();
  CHECK(line->palette().color(QPalette::PlaceholderText) == line->palette().color(QPalette::Text));
  f.window.set_theme(Theme::dark);
  CHECK(line->palette().color(QPalette::PlaceholderText) == line->palette().color(QPalette::Text));
  f.window.set_theme(Theme::light);
  CHECK(f.field<NumberField>("cluster.nic_gbps").shown_default() == "200 (default)");
  CHECK(f.field<NumberField>("training.tokens").shown_default() == "not given");
  // A value that is set can be reset.
  const auto reset_of = [&](const char* label) {
    for (auto* button : f.form.findChildren<QToolButton*>())
      if (button->accessibleName() == QString("Reset %1 to its default").arg(label)) return button;
    FAIL("no button");
    return static_cast<QToolButton*>(nullptr);
  };
  CHECK_FALSE(reset_of("Tensor parallel")->isVisible());
  REQUIRE(reset_of("Micro-batch")->isVisible());
  QTest::mouseClick(reset_of("Micro-batch"), Qt::LeftButton);
  CHECK_FALSE(f.view.draft().value("training.micro_batch"));
  CHECK_FALSE(reset_of("Micro-batch")->isVisible());
  // Only fields that make no difference are disabled.
  CHECK_FALSE(f.field<NumberField>("servers").isEnabled());
  CHECK(
      f.field<NumberField>("servers").toolTip().contains("Only when gradients go through parameter servers"));
  CHECK_FALSE(f.field<NumberField>("training.tokens").isEnabled());
  CHECK(f.field<NumberField>("training.samples").isEnabled());
  CHECK(precision.isEnabled());
}

TEST_CASE("Parameter servers behind aggregators get server nodes, as those without do") {
  Form f;
  for (const char* gradients : {"parameter-server", "hierarchical-parameter-server"}) {
    CAPTURE(gradients);
    f.choose("strategy.gradients", gradients);
    REQUIRE(f.wait_until_told("1 parameter server"));
    auto& nodes = f.field<NumberField>("cluster.server_nodes");
    CHECK(wait_for([&] { return nodes.isEnabled() && nodes.shown_default() == "1 (default)"; }));
    auto& servers = f.field<NumberField>("servers");
    servers.setFocus();
    QTest::keyClicks(&servers, "3");
    QTest::keyClick(&servers, Qt::Key_Return);
    REQUIRE(f.wait_until_told("3 parameter servers"));
    CHECK(wait_for([&] { return nodes.shown_default() == "3 (default)"; }));
    nodes.setFocus();
    QTest::keyClicks(&nodes, "4");
    QTest::keyClick(&nodes, Qt::Key_Return);
    CHECK(f.view.draft().value("cluster.server_nodes") == "4");
    f.view.draft().remove("cluster.server_nodes");
  }
}

TEST_CASE("The length of a training is given in one way") {
  Form f;
  for (const auto& [key, value] : std::vector<std::pair<const char*, const char*>>{
           {"training.samples", "1e9"}, {"training.epochs", "90"}, {"training.dataset_samples", "1281167"}}) {
    auto& field = f.field<NumberField>(key);
    field.setFocus();
    QTest::keyClicks(&field, value);
    QTest::keyClick(&field, Qt::Key_Return);
    CHECK(f.view.draft().value(key) == value);
  }
  CHECK_FALSE(f.view.draft().value("training.samples"));
  REQUIRE(f.wait_until_told("32 devices"));
}

TEST_CASE("A choice that does not fit is shortened with an ellipsis") {
  const QString name = "hierarchical-parameter-server (default)";
  const auto painted = [](const QString& text) {
    ChoiceBox box;
    box.addItem(text);
    box.setFixedSize(140, 24);
    return box.grab().toImage();
  };
  const QImage image = painted(name);
  bool is_shortened = false;
  for (int kept = 5; kept < name.size() && !is_shortened; ++kept)
    is_shortened = painted(name.left(kept) + QChar(0x2026)) == image;
  CHECK(is_shortened);
}

TEST_CASE("The buttons that reset settings are whole in the narrowest form") {
  Form f;
  f.window.resize(1024, 700);
  f.window.show_view("scaling");
  QCoreApplication::processEvents();
  int seen = 0;
  for (const QToolButton* button : f.form.findChildren<QToolButton*>()) {
    if (!button->accessibleName().startsWith("Reset ") || !button->isVisible()) continue;
    const QWidget* body = button->parentWidget();
    CAPTURE(button->accessibleName().toStdString(), body->parentWidget()->width());
    CHECK(button->geometry().right() < body->parentWidget()->width());
    ++seen;
  }
  CHECK(seen >= 4);
}
