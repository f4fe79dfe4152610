// Work off the window's thread, whose result comes back to it.
#pragma once

#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>
#include <memory>
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

}  // namespace rehearse::gui
