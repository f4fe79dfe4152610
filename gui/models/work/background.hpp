// Runs work on another thread and delivers its result to the window's thread.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace rehearse::gui {

// Runs `work` on a thread of `pool`, and then runs the function that `work` returned on the window's thread.
// Skips that function if `work` throws, or if `context`, which must live on the window's thread, no longer
// exists. Call this from the window's thread.
void run_on(QThreadPool& pool, QObject* context, std::function<std::function<void()>()> work);

// Runs `done` on the window's thread, soon, unless `context` no longer exists then. Any thread may call this
// while `context` exists.
void deliver(QObject* context, std::function<void()> done);

// Runs `work` on another thread, and then passes its result to `done` on the window's thread; see run_on()
// for when `done` is skipped.
template <class Work, class Done>
void in_background(QObject* context, Work work, Done done) {
  using Result = decltype(work());
  run_on(*QThreadPool::globalInstance(), context,
         [work = std::move(work), done = std::move(done)]() mutable -> std::function<void()> {
           const auto result = std::make_shared<Result>(work());
           return [done = std::move(done), result]() mutable { done(std::move(*result)); };
         });
}

// Runs background work of which only the latest request counts: a new request cancels the previous one, and
// so does the destructor. Must be a member of `context`.
class Latest {
public:
  explicit Latest(QObject* context) : context_(context) {}
  ~Latest() { cancel(); }
  Latest(const Latest&) = delete;
  Latest& operator=(const Latest&) = delete;

  // Calls `work(cancelled)` on another thread and `done` with its result on the window's thread. Does not
  // call `done` if `work` throws.
  template <class Work, class Done>
  void ask(Work work, Done done) {
    cancel();
    cancelled_ = std::make_shared<std::atomic<bool>>(false);
    using Result = decltype(work(std::as_const(*cancelled_)));
    in_background(
        context_,
        [cancelled = cancelled_, work = std::move(work)]() -> std::optional<Result> {
          try {
            return work(std::as_const(*cancelled));
          } catch (...) {
            return std::nullopt;
          }
        },
        [this, cancelled = cancelled_, done = std::move(done)](std::optional<Result> result) {
          if (*cancelled) return;
          cancelled_.reset();
          if (result) done(std::move(*result));
        });
  }
  void cancel() {
    if (cancelled_) *cancelled_ = true;
    cancelled_.reset();
  }
  bool busy() const { return cancelled_ != nullptr; }

private:
  QObject* context_;
  std::shared_ptr<std::atomic<bool>> cancelled_;  // flag of the request in progress; null when idle
};

}  // namespace rehearse::gui
