#include "gui/models/work/background.hpp"

#include <QCoreApplication>
#include <QPointer>
#include <QRunnable>
#include <deque>
#include <mutex>
#include <utility>

namespace rehearse::gui {
namespace {

struct Delivery {
  QPointer<QObject> context;
  std::function<void()> done;  // can be empty
};

// Queues results for the window's thread. Must be created on that thread. QFuture::then(context) cannot
// replace it, because it asserts that the context still exists (Qt 6.4).
//
// Qt's internal locks already synchronize the threads, but its libraries are not instrumented, so the thread
// sanitizer cannot see those locks. It can see this mutex.
class Mailbox : public QObject {
  Q_OBJECT
public:
  // Locks and unlocks the mutex. What one thread does before this call happens before what another thread
  // does after a later call.
  void synchronize() { const std::lock_guard lock(mutex_); }

  void put(Delivery delivery) {
    const std::lock_guard lock(mutex_);
    deliveries_.push_back(std::move(delivery));
    QMetaObject::invokeMethod(this, "deliver", Qt::QueuedConnection);
  }
  void clear() {
    std::deque<Delivery> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(deliveries_);
  }

private slots:
  void deliver() {
    Delivery delivery;
    {
      const std::lock_guard lock(mutex_);
      if (deliveries_.empty()) return;
      delivery = std::move(deliveries_.front());
      deliveries_.pop_front();
    }
    if (delivery.context && delivery.done) delivery.done();
  }

private:
  std::mutex mutex_;
  std::deque<Delivery> deliveries_;
};

Mailbox& mailbox() {
  static Mailbox all;
  return all;
}

class Work : public QRunnable {
public:
  Work(QObject* context, std::function<std::function<void()>()> work)
      : context_(context), work_(std::move(work)) {}
  void run() override {
    mailbox().synchronize();
    std::function<void()> done;
    try {
      done = work_();
    } catch (...) {
    }
    work_ = nullptr;
    mailbox().put({std::move(context_), std::move(done)});
  }

private:
  QPointer<QObject> context_;
  std::function<std::function<void()>()> work_;
};

}  // namespace

void run_on(QThreadPool& pool, QObject* context, std::function<std::function<void()>()> work) {
  [[maybe_unused]] static const bool ends_with_the_application = [] {
    qAddPostRoutine([] {
      QThreadPool::globalInstance()->waitForDone();
      mailbox().clear();
    });
    return true;
  }();
  auto* const runnable = new Work(context, std::move(work));
  mailbox().synchronize();
  pool.start(runnable);
}

void deliver(QObject* context, std::function<void()> done) {
  mailbox().put({context, std::move(done)});
}

}  // namespace rehearse::gui

#include "background.moc"
