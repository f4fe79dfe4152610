// A list of choices that shortens its current text with an ellipsis where it does not fit.
#pragma once

#include <QComboBox>

namespace rehearse::gui {

class ChoiceBox : public QComboBox {
public:
  using QComboBox::QComboBox;

protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace rehearse::gui
