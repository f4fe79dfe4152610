#include "gui/models/session/background.hpp"

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

// Holds the results on their way to the window's thread, on which it lives. QFuture::then(context) would do
// without it but asserts that the context still exists (Qt 6.4).
//
// Qt orders by its own locks what the threads do to work and results. The thread sanitizer does not see them,
// because Qt's libraries are not instrumented; it sees the locks here.
class Mailbox : public QObject {
  Q_OBJECT
public:
  // Everything that a thread did before give() happens before what another does after take().
  void give() { const std::lock_guard lock(mutex_); }
  void take() { give(); }

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
    mailbox().take();
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
  mailbox().give();
  pool.start(runnable);
}

}  // namespace rehearse::gui

#include "background.moc"
