// Measures the time from a click on each card of the start page to the finished picture, each in a new
// window.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QLocale>
#include <QPixmap>
#include <QSettings>
#include <QTemporaryDir>
#include <QThread>
#include <clocale>

#include "gui/views/session/example_card.hpp"
#include "gui/views/session/start_page.hpp"
#include "gui/views/window/main_window.hpp"

namespace {

using namespace rehearse::gui;

void wait_until_settled(const MainWindow& window) {
  do {
    QApplication::processEvents(QEventLoop::AllEvents, 10);
    QThread::msleep(1);
  } while (!window.settled());
}

void open_card(benchmark::State& state, std::size_t card) {
  for (auto _ : state) {
    state.PauseTiming();
    auto window = std::make_unique<MainWindow>();
    window->show();
    wait_until_settled(*window);
    auto* page = static_cast<StartPage*>(window->view("start"));
    state.ResumeTiming();
    page->cards()[card]->click();
    do {
      QApplication::processEvents(QEventLoop::AllEvents, 10);
      QThread::msleep(1);
    } while (window->loader().busy());
    benchmark::DoNotOptimize(window->grab());
    state.PauseTiming();
    wait_until_settled(*window);  // advice for a run arrives later and is not measured
    if (page->isVisible()) state.SkipWithError("nothing was opened");
    window.reset();
    state.ResumeTiming();
  }
}

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  std::setlocale(LC_NUMERIC, "C");
  QLocale::setDefault(QLocale::c());
  const QTemporaryDir settings;  // isolated from the user's settings
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
  QCoreApplication::setOrganizationName("rehearse");
  QApplication::setStyle("Fusion");
  benchmark::Initialize(&argc, argv);
  const std::vector<Example> all = examples();
  for (std::size_t card = 0; card < all.size(); ++card)
    if (!all[card].asks)
      benchmark::RegisterBenchmark(("open_card/" + all[card].name.toStdString()).c_str(), open_card, card)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime()
          ->Iterations(3);
  benchmark::RunSpecifiedBenchmarks();
}
