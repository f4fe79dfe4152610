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

}  // namespace rehearse::gui
