// A number that may be left out: the default then stands there. Up and down double and halve.
#pragma once

#include <QAbstractSpinBox>

namespace rehearse::gui {

class NumberField : public QAbstractSpinBox {
  Q_OBJECT
public:
  enum class Kind { whole, decimal };  // decimal: also "0.5" and "300e9"
  explicit NumberField(Kind kind = Kind::whole, QWidget* parent = nullptr);

  // `text` as it is written, empty: left out; `usual`: what it comes to then, or empty; `absent`: what is
  // shown of that.
  void show_value(const QString& text, const QString& usual, const QString& absent);
  QString shown_default() const;  // "25 (default)"
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
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;

private:
  QString stepped(const QString& from, int steps) const;
  void colour_default();
  Kind kind_;
  QString shown_, usual_;
};

}  // namespace rehearse::gui
