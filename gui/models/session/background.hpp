// Runs work on another thread and delivers its result to the window's thread.
#pragma once

#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace rehearse::gui {

// Calls `work` on another thread, then `done` with the result on the window's thread, unless `context`, which
// lives on that thread, has been destroyed by then. If `work` throws, the exception is dropped and `done` is
// not called.
template <class Work, class Done>
void in_background(QObject* context, Work work, Done done) {
  using Result = decltype(work());
  QThreadPool::globalInstance()->start(
      [guard = QPointer<QObject>(context), work = std::move(work), done = std::move(done)]() mutable {
        std::shared_ptr<Result> result;
        try {
          result = std::make_shared<Result>(work());
        } catch (...) {
          return;
        }
        // QFuture::then(context) would do this but asserts that the context still exists (Qt 6.4).
        QObject* const window_thread = QCoreApplication::instance();
        if (window_thread == nullptr) return;
        QMetaObject::invokeMethod(
            window_thread,
            [guard, done, result] {
              if (guard) done(std::move(*result));
            },
            Qt::QueuedConnection);
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
