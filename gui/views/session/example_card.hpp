// Shows an example to open as a card: a small picture, a title and a sentence.
#pragma once

#include <QAbstractButton>
#include <optional>

#include "gui/models/session/example_sketch.hpp"
#include "gui/models/session/examples.hpp"

namespace rehearse::gui {

class ExampleCard : public QAbstractButton {
  Q_OBJECT
public:
  explicit ExampleCard(Example example, QWidget* parent = nullptr);
  const Example& example() const { return example_; }
  void set_sketch(Sketch sketch);
  bool has_picture() const { return sketch_.has_value(); }
  const Sketch& sketch() const { return *sketch_; }

  QSize sizeHint() const override;
  int height_for(int width) const;

signals:
  void moved(int columns, int rows);  // an arrow key moves the focus to another card

protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void enterEvent(QEnterEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  QRect picture_place() const;
  QPixmap picture() const;  // renders the sketch at the size of picture_place()

  Example example_;
  std::optional<Sketch> sketch_;
  QPixmap painted_;  // null until painted
};

}  // namespace rehearse::gui
