// Adds a combo box with a label in front of it.
#pragma once

#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>

namespace rehearse::gui {

// The label's mnemonic ("Sho&w") focuses the box; the tip also serves as its accessible name.
inline QComboBox* add_labelled_box(QBoxLayout& into, QWidget* parent, const QString& text,
                                   const QString& tip) {
  auto* label = new QLabel(text, parent);
  auto* box = new QComboBox(parent);
  box->setToolTip(tip);
  box->setAccessibleName(tip);
  label->setBuddy(box);
  into.addWidget(label);
  into.addWidget(box);
  return box;
}

}  // namespace rehearse::gui
