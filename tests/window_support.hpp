// Provides what tests of the entire window share: small traces, made once, and waiting.
#pragma once

#include <QtTest>

#include <QApplication>
#include <QDir>
#include <QProcess>
#include <QString>
#include <QTemporaryDir>
#include <functional>

#include "gui/views/window/main_window.hpp"
#include "tests/catch.hpp"
#include "tests/gui_application.hpp"

namespace rehearse::gui {

// Waits until `done` returns true; returns false if that takes longer than kPatienceMs.
inline bool wait_for(const std::function<bool()>& done) {
  return QTest::qWaitFor(done, rehearse::test::kPatienceMs);
}

inline void shown(MainWindow& window, QSize size = {1280, 800}) {
  window.set_theme(Theme::light);
  window.resize(size);
  window.show();
  REQUIRE(QTest::qWaitForWindowExposed(&window, rehearse::test::kPatienceMs));
}

// Waits until the window has finished all pending work.
inline void settle(MainWindow& window) {
  REQUIRE(wait_for([&] { return window.settled(); }));
  QTest::qWait(50);
}

// Returns the path of a scenario's trace, simulated once for all tests of the program.
inline QString trace_of(const QString& name, const QString& scenario, const QStringList& settings,
                        const QStringList& options = {}) {
  static const QTemporaryDir folder;
  const QString path = folder.filePath(name + ".json.gz");
  if (QFile::exists(path)) return path;
  QStringList arguments = {"simulate", REHEARSE_TESTS_DIR "/../simulator/scenarios/" + scenario + ".toml",
                           "--trace", path};
  for (const QString& setting : settings) arguments << "--set" << setting;
  arguments << options;
  QProcess process;
  process.start(REHEARSE_BIN_DIR "/rehearse", arguments);
  REQUIRE(process.waitForFinished(rehearse::test::kPatienceMs));
  INFO(process.readAllStandardError().toStdString());
  REQUIRE(process.exitCode() == 0);
  return path;
}

// Returns the trace of eight stages of GPT-3's layers with 16 micro-batches on 64 GPUs.
inline QString pipeline_trace() {
  return trace_of("pipeline", "gpt3-175b",
                  {"cluster.nodes=8", "strategy.pipeline=8", "strategy.data=8", "training.global_batch=128"});
}
inline QString ring_trace() {
  return trace_of("ring", "resnet50-ring", {});
}
inline QString servers_trace() {
  return trace_of("servers", "resnet50-ps", {});
}

}  // namespace rehearse::gui
