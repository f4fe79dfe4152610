// A whole number that may be left out: the default then stands there, greyed. Up and down double and halve.
#pragma once

#include <QAbstractSpinBox>

namespace rehearse::gui {

class NumberField : public QAbstractSpinBox {
  Q_OBJECT
public:
  explicit NumberField(QWidget* parent = nullptr);

  // `text` as it is written, empty: left out; `usual`: what it comes to then.
  void show_value(const QString& text, const QString& usual);
  QString value() const { return text(); }
  void commit();  // tells of what has been typed and not yet told

  void stepBy(int steps) override;
  QValidator::State validate(QString& input, int& place) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

signals:
  void edited(const QString& text);  // empty: to be left out

protected:
  StepEnabled stepEnabled() const override { return StepUpEnabled | StepDownEnabled; }
  void wheelEvent(QWheelEvent* event) override;
  bool event(QEvent* event) override;

private:
  QString shown_;
};

}  // namespace rehearse::gui
