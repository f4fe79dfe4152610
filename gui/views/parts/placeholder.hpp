// Shows a text in place of a view's content while there is nothing to show.
#pragma once

#include <QBoxLayout>
#include <QLabel>

namespace rehearse::gui {

// Adds a centred label; each view's text explains how to get content into it.
inline QLabel* add_placeholder(QBoxLayout& into, const QString& text = {}) {
  auto* label = new QLabel(text, into.parentWidget());
  label->setAlignment(Qt::AlignCenter);
  label->setWordWrap(true);
  label->setMargin(20);
  into.addWidget(label);
  return label;
}

// A column of widgets that replaces the placeholder once there is something to show.
struct Body {
  QWidget* widget = nullptr;
  QVBoxLayout* column = nullptr;  // layout of `widget`
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
