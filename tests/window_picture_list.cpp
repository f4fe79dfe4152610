// Checks that the script which makes the READMEs' pictures can make everything that it lists.
#include <QDir>
#include <QFile>
#include <QFileInfo>
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

TEST_CASE("A picture is made at three sizes, light and dark, under a name for each") {
  const QTemporaryDir folder;
  const QString program = folder.filePath("rehearse-gui"), asked = folder.filePath("asked");
  std::ofstream(program.toStdString()) << "#!/bin/sh\necho \"$@\" >>" << asked.toStdString() << '\n';
  REQUIRE(QFile::setPermissions(program, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
  REQUIRE(make_pictures({"--programs", folder.path(), "--into", folder.path(), "--sizes", "start"}).status ==
          0);
  QFile file(asked);
  REQUIRE(file.open(QIODevice::ReadOnly));
  const QStringList lines = QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts);
  QStringList expected;
  for (const char* size : {"1024x700", "1280x800", "2560x1440"})
    for (const char* theme : {"light", "dark"})
      expected << QString("--screenshot %1/start-%2-%3.png --view window --size %2 --scale 1 --theme %3")
                      .arg(QFileInfo(folder.path()).canonicalFilePath(), size, theme);
  CHECK(lines == expected);
}
