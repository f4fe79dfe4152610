// What stands in a view that has nothing to show.
#pragma once

#include <QBoxLayout>
#include <QLabel>

namespace rehearse::gui {

// A text in the middle, of which each view says what to do.
inline QLabel* add_placeholder(QBoxLayout& into, const QString& text = {}) {
  auto* label = new QLabel(text, into.parentWidget());
  label->setAlignment(Qt::AlignCenter);
  label->setWordWrap(true);
  label->setMargin(20);
  into.addWidget(label);
  return label;
}

// What takes the placeholder's room once there is something to show: a column of widgets.
struct Body {
  QWidget* widget = nullptr;
  QVBoxLayout* column = nullptr;  // of `widget`
};
inline Body add_body(QBoxLayout& into) {
  Body body;
  body.widget = new QWidget(into.parentWidget());
  into.addWidget(body.widget, 1);
  body.column = new QVBoxLayout(body.widget);
  body.column->setContentsMargins(4, 4, 4, 4);
  body.column->setSpacing(4);
  return body;
}

}  // namespace rehearse::gui
