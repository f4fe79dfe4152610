// Work on other threads: its result comes back, unless nobody is there for it any more.
#include <QTest>
#include <QThreadPool>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "gui/models/background.hpp"
#include "tests/catch.hpp"
#include "tests/gui_application.hpp"

using namespace rehearse::gui;
using rehearse::test::need_application;

namespace {

void wait() {
  QThreadPool::globalInstance()->waitForDone();
  QTest::qWait(10);
}

}  // namespace

TEST_CASE("What was worked out elsewhere comes back to the window's thread") {
  need_application();
  QObject asker;
  int result = 0;
  std::thread::id worker, taker;
  in_background(
      &asker,
      [&] {
        worker = std::this_thread::get_id();
        return 7;
      },
      [&](int value) {
        taker = std::this_thread::get_id();
        result = value;
      });
  wait();
  CHECK(result == 7);
  CHECK(worker != std::this_thread::get_id());
  CHECK(taker == std::this_thread::get_id());
}

TEST_CASE("Nothing comes back to who is gone, nor from work that failed") {
  need_application();
  auto asker = std::make_unique<QObject>();
  std::atomic<bool> go = false;
  bool taken = false;
  in_background(
      asker.get(),
      [&] {
        while (!go) std::this_thread::yield();
        return 7;
      },
      [&](int) { taken = true; });
  asker.reset();
  go = true;
  wait();
  CHECK_FALSE(taken);

  QObject other;
  in_background(
      &other, []() -> int { throw std::runtime_error("no"); }, [&](int) { taken = true; });
  wait();
  CHECK_FALSE(taken);
}
