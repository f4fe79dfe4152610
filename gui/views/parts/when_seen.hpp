// Refreshes a view after changes of the data it depends on: soon, but only while the view is visible.
#pragma once

#include <QEvent>
#include <QTimer>
#include <QWidget>
#include <functional>

namespace rehearse::gui {

class WhenSeen : public QObject {
public:
  WhenSeen(QWidget* view, std::function<void()> act) : QObject(view), view_(view), act_(std::move(act)) {
    soon_.setSingleShot(true);
    connect(&soon_, &QTimer::timeout, this, [this] { this->act(); });
    view->installEventFilter(this);
  }
  // Refreshes `delay_ms` after the last change; a hidden view is refreshed when it is shown.
  void changed(int delay_ms = 0) {
    outdated_ = true;
    if (view_->isVisible()) soon_.start(delay_ms);
  }
  void act() {
    outdated_ = false;
    soon_.stop();
    act_();
  }
  bool waiting() const { return outdated_ && view_->isVisible(); }

protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Show && outdated_) act();
    return QObject::eventFilter(watched, event);
  }

private:
  QWidget* view_;
  std::function<void()> act_;
  QTimer soon_;
  bool outdated_ = false;
};

}  // namespace rehearse::gui
