// Edits a number that may be omitted, in which case it shows the default. Up and Down double and halve it.
#pragma once

#include <QAbstractSpinBox>

namespace rehearse::gui {

class NumberField : public QAbstractSpinBox {
  Q_OBJECT
public:
  enum class Kind { whole, decimal };  // decimal also accepts "0.5" and "300e9"
  explicit NumberField(Kind kind = Kind::whole, QWidget* parent = nullptr);

  // Shows `text` as written, empty if the number is omitted. `usual` is the resolved default or empty;
  // `absent` is the placeholder shown for an omitted number.
  void show_value(const QString& text, const QString& usual, const QString& absent);
  QString shown_default() const;  // placeholder: "25 (default)"
  QString value() const { return text(); }
  void commit();  // emits edited() if the text has changed since it was last shown or committed

  void stepBy(int steps) override;
  QValidator::State validate(QString& input, int& place) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

signals:
  void edited(const QString& text);  // empty removes the number

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
