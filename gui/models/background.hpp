// Work off the window's thread, whose result comes back to it.
#pragma once

#include <QFuture>
#include <QPromise>
#include <QThreadPool>
#include <memory>
#include <utility>

namespace rehearse::gui {

// Calls `work` on another thread and then `done` with what it returned on that of `context`, unless that is
// gone by then. What `work` throws is dropped, and `done` not called.
template <class Work, class Done>
void in_background(QObject* context, Work work, Done done) {
  using Result = decltype(work());
  auto promise = std::make_shared<QPromise<Result>>();
  promise->start();
  promise->future().then(context, std::move(done));
  QThreadPool::globalInstance()->start([promise, work = std::move(work)]() mutable {
    try {
      promise->addResult(work());
    } catch (...) {
      promise->setException(std::current_exception());
    }
    promise->finish();
  });
}

}  // namespace rehearse::gui
