// Tests work on other threads: its result is delivered, unless the receiver no longer exists.
#include <QTest>
#include <QThreadPool>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gui/models/work/background.hpp"
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

TEST_CASE("Of several questions only the last is answered") {
  need_application();
  QObject asker;
  Latest latest(&asker);
  std::atomic<bool> go = false;
  std::atomic<bool> first_was_cancelled = false;
  std::vector<int> answers;
  CHECK_FALSE(latest.busy());
  latest.ask(
      [&](const std::atomic<bool>& cancelled) {
        while (!go) std::this_thread::yield();
        first_was_cancelled = cancelled.load();
        return 1;
      },
      [&](int answer) { answers.push_back(answer); });
  latest.ask([](const std::atomic<bool>&) { return 2; }, [&](int answer) { answers.push_back(answer); });
  CHECK(latest.busy());
  go = true;
  wait();
  CHECK(answers == std::vector<int>{2});
  CHECK(first_was_cancelled);
  CHECK_FALSE(latest.busy());

  latest.ask([](const std::atomic<bool>&) { return 3; }, [&](int answer) { answers.push_back(answer); });
  latest.cancel();
  CHECK_FALSE(latest.busy());
  wait();
  CHECK(answers.size() == 1);

  // Work that fails delivers no result, but it finishes.
  latest.ask([](const std::atomic<bool>&) -> int { throw std::runtime_error("no"); },
             [&](int answer) { answers.push_back(answer); });
  wait();
  CHECK(answers.size() == 1);
  CHECK_FALSE(latest.busy());

  auto gone = std::make_unique<Latest>(&asker);
  gone->ask([](const std::atomic<bool>&) { return 4; }, [&](int answer) { answers.push_back(answer); });
  gone.reset();
  wait();
  CHECK(answers.size() == 1);
}
