// Checks tables of published measurements in the window, and messages about files that could not be opened.
#include <QtTest>

#include <QLabel>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QTemporaryDir>
#include <QToolButton>
#include <fstream>

#include "gui/views/tables/accuracy_view.hpp"
#include "gui/views/window/message_bar.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

// Writes the output of `rehearse validate TABLES --format csv` to a file and returns its path.
QString validation_of(const QTemporaryDir& folder, const QStringList& tables) {
  QProcess process;
  process.start(REHEARSE_BIN_DIR "/rehearse",
                QStringList{"validate"} + tables + QStringList{"--format", "csv"});
  REQUIRE(process.waitForFinished(rehearse::test::kPatienceMs));
  REQUIRE(process.exitCode() == 0);
  const QString path = folder.filePath("validation.csv");
  QFile file(path);
  REQUIRE(file.open(QIODevice::WriteOnly));
  file.write(process.readAllStandardOutput());
  return path;
}

}  // namespace

TEST_CASE("Published tables that were validated open beside each other") {
  const QTemporaryDir folder;
  MainWindow window;
  shown(window);
  window.open_files({validation_of(folder, {"flash-attention-h100", "horovod-2018"})});
  settle(window);
  CHECK(window.failures() == 0);
  CHECK(window.messages().text().isEmpty());
  auto* accuracy = static_cast<AccuracyView*>(window.view("accuracy"));
  REQUIRE(accuracy->isVisible());
  const QAbstractItemModel& rows = *accuracy->findChild<TableView*>()->model();
  CHECK(rows.rowCount() == 97);  // 97 of 102 rows; five have only an efficiency
  CHECK(rows.index(0, 5).data().toString() == "flash-attention-h100");
  CHECK(rows.headerData(5, Qt::Horizontal).toString() == "table");
  const auto labels = accuracy->findChildren<QLabel*>();
  CHECK(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) {
    return label->text().startsWith("97 measurements in 2 tables: median error ") &&
           label->text().contains("Left out: 5 rows of 102 rows without a measured time.");
  }));
}

TEST_CASE("What cannot be opened is told whole until it is dismissed") {
  const QTemporaryDir folder;
  const QString table = folder.filePath("what.csv"), scenario = folder.filePath("no-such.toml");
  std::ofstream(table.toStdString()) << "a,b\n1,2\n";
  MainWindow window;
  shown(window, {1024, 700});
  CHECK_FALSE(window.messages().isVisible());
  window.open_files({table, scenario});
  settle(window);
  CHECK(window.failures() == 2);
  REQUIRE(window.messages().isVisible());
  const QStringList told = window.messages().text().split('\n');
  REQUIRE(told.size() == 2);
  CHECK((told[0] + told[1]).contains(table));
  CHECK((told[0] + told[1]).contains(scenario));
  CHECK(window.messages().text().contains("allowed: the output of `rehearse sweep --out FILE.csv`"));
  // The text is wrapped, and no line is out of sight.
  auto* text = window.messages().findChild<QPlainTextEdit*>();
  QApplication::processEvents();
  CHECK(text->verticalScrollBar()->maximum() == 0);
  CHECK(text->horizontalScrollBar()->maximum() == 0);
  text->selectAll();
  CHECK(text->textCursor().selectedText().size() == window.messages().text().size());
  text->setFocus();
  QTest::keyClick(text, Qt::Key_Escape);
  CHECK_FALSE(window.messages().isVisible());

  window.open_files({table});
  settle(window);
  REQUIRE(window.messages().isVisible());
  QTest::mouseClick(window.messages().findChild<QToolButton*>(), Qt::LeftButton);
  CHECK_FALSE(window.messages().isVisible());
}
