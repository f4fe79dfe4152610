// Checks that the script which makes the READMEs' pictures can make everything that it lists.
#include <QDir>
#include <QImage>
#include <QProcess>
#include <QTemporaryDir>

#include "tests/catch.hpp"
#include "tests/window_support.hpp"

using namespace rehearse::gui;

namespace {

const QString kRoot = QDir::cleanPath(REHEARSE_TESTS_DIR "/..");

struct Outcome {
  int status = -1;
  QString out, err;
};

Outcome make_pictures(const QStringList& arguments) {
  QProcess process;
  process.start(kRoot + "/gui/pictures/make.sh", arguments);
  REQUIRE(process.waitForFinished(rehearse::test::kPatienceMs));
  return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
}

}  // namespace

TEST_CASE("Every picture that is listed has its files and its view") {
  const Outcome list = make_pictures({"--list"});
  REQUIRE(list.status == 0);
  const QStringList lines = list.out.split('\n', Qt::SkipEmptyParts);
  CHECK(lines.size() >= 8);
  const QDir examples(REHEARSE_BIN_DIR "/../share/rehearse/examples"), root(kRoot);
  for (const QString& line : lines) {
    CAPTURE(line.toStdString());
    const QStringList parts = line.split('|');
    REQUIRE(parts.size() == 6);
    for (const QString& file : parts[1].split(' ', Qt::SkipEmptyParts))
      CHECK((examples.exists(file) || root.exists(file)));
    CHECK(MainWindow::view_names().contains(parts[2]));
    CHECK((parts[3].isEmpty() || MainWindow::view_names().contains(parts[3])));
  }
}

TEST_CASE("A picture of the list is made where it is wanted") {
  const QTemporaryDir folder;
  const Outcome made = make_pictures({"--programs", REHEARSE_BIN_DIR, "--into", folder.path(), "sweep"});
  CAPTURE(made.err.toStdString());
  CHECK(made.status == 0);
  CHECK(QDir(folder.path()).entryList(QDir::Files) == QStringList{"sweep.png"});
  CHECK(QImage(folder.filePath("sweep.png")).size() == QSize(1280, 800));
  CHECK(make_pictures({"--into", folder.path(), "walls"}).status == 2);
  CHECK(make_pictures({"--walls"}).err.contains("allowed: --programs"));
}
