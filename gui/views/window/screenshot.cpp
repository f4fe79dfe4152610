#include "gui/views/window/screenshot.hpp"

#include <fmt/format.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QThread>
#include <cstdio>
#include <iostream>

#include "gui/views/parts/export.hpp"
#include "gui/views/window/main_window.hpp"
#include "models/text/error.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse::gui {

namespace {

constexpr int kLeast = 200, kMost = 10'000;        // limits of the size, in pixels
constexpr double kLeastScale = 1, kMostScale = 4;  // Qt does not render a window at less than its own size
constexpr int kPatience_ms = 600'000;
constexpr int kRest_ms = 400;  // without activity, so that views can show what other threads compute

bool ends_in(const std::string& text, const std::string& ending) {
  return text.size() > ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

// Parses "WIDTHxHEIGHT"; returns an empty size if the text is malformed or out of range.
QSize size_in(const std::string& text) {
  int width = 0, height = 0, read = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &width, &height, &read) != 2) return {};
  const bool whole = static_cast<std::size_t>(read) == text.size();
  const auto fits = [](int pixels) { return pixels >= kLeast && pixels <= kMost; };
  return whole && fits(width) && fits(height) ? QSize(width, height) : QSize();
}

void wait(const std::function<bool()>& done, int least_ms) {
  QElapsedTimer clock, quiet;
  clock.start();
  quiet.start();
  while (clock.elapsed() < kPatience_ms) {
    QApplication::processEvents(QEventLoop::AllEvents, 20);
    QApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    if (!done()) quiet.restart();
    if (quiet.elapsed() >= least_ms) return;
    QThread::msleep(5);
  }
}

}  // namespace

void Screenshot::check() const {
  if (!ends_in(path, ".png") && !ends_in(path, ".svg"))
    throw InputError({"--screenshot", 0, 0}, "\"" + path + "\" has another ending; allowed: .png, .svg");
  if (size_in(size).isEmpty())
    throw InputError({"--size", 0, 0},
                     "\"" + size + "\" is not a size; allowed: WIDTHxHEIGHT of 200 to 10000 pixels");
  if (!(scale >= kLeastScale && scale <= kMostScale))
    throw InputError({"--scale", 0, 0}, fmt::format("{} is not a scale; allowed: 1 to 4", scale));
}

QSize Screenshot::pixels() const {
  return size_in(size);
}

int take(MainWindow& window, const QStringList& files, const Screenshot& screenshot) {
  const QSize pixels = screenshot.pixels();
  const QString view = QString::fromStdString(screenshot.view);
  window.resize(pixels);
  window.never_ask();
  window.show();
  window.open_files(files, true);
  const auto settled = [&] { return window.settled(); };
  wait(settled, kRest_ms);
  QWidget* shown = &window;
  if (!screenshot.tab.empty()) window.show_view(QString::fromStdString(screenshot.tab));
  if (view != "window") {
    shown = window.view(view);
    window.show_view(view);
    shown->setParent(nullptr);
    shown->resize(pixels);
    shown->show();
  }
  wait(settled, kRest_ms);
  const QStringList notices = window.notices();
  for (const QString& notice : notices) std::cerr << "rehearse-gui: " << notice.toStdString() << "\n";
  write_picture(*shown, QString::fromStdString(screenshot.path), screenshot.scale);
  if (shown != &window) delete shown;
  return window.failures() == 0 ? kDone : kInputWrong;
}

}  // namespace rehearse::gui
