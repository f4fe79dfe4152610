// Work off the window's thread, whose result comes back to it.
#pragma once

#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace rehearse::gui {

// Calls `work` on another thread and then `done` with what it returned on the window's, unless `context`,
// which lives there, is gone by then. What `work` throws is dropped, and `done` not called.
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
        // QFuture::then(context) would do this, but asserts that the context is still there (Qt 6.4).
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

// Work of which only the last that was asked for counts: what was asked before is cancelled, and so is all of
// it when this is gone. For members of `context`.
class Latest {
public:
  explicit Latest(QObject* context) : context_(context) {}
  ~Latest() { cancel(); }
  Latest(const Latest&) = delete;
  Latest& operator=(const Latest&) = delete;

  // Calls `work(cancelled)` on another thread and `done` with what it returns on the window's. Of work that
  // throws nothing comes back.
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
  std::shared_ptr<std::atomic<bool>> cancelled_;  // of what is under way
};

}  // namespace rehearse::gui
