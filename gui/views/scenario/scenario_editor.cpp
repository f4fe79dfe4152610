#include "gui/views/scenario/scenario_editor.hpp"

#include <QAbstractItemView>
#include <QAbstractTextDocumentLayout>
#include <QCompleter>
#include <QFontDatabase>
#include <QHelpEvent>
#include <QPainter>
#include <QPlainTextDocumentLayout>
#include <QScrollBar>
#include <QStringListModel>
#include <QSyntaxHighlighter>
#include <QTextBlock>
#include <QToolTip>

#include "gui/models/scenario/toml_highlight.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/command.hpp"

namespace rehearse::gui {
namespace {

constexpr int kGutterMargin = 6;

QTextCharFormat format_of(TomlPart part, const QPalette& palette) {
  const bool dark = is_dark(palette);
  // Text needs more contrast than filled areas in the same colours.
  const auto as_text = [&](int run) {
    return dark ? colour_of_run(run, true) : colour_of_run(run, false).darker(130);
  };
  QTextCharFormat format;
  switch (part) {
    case TomlPart::section:
      format.setFontWeight(QFont::Bold);
      format.setForeground(palette.color(QPalette::Link));
      break;
    case TomlPart::key:
      format.setForeground(palette.color(QPalette::Text));
      break;
    case TomlPart::string:
      format.setForeground(as_text(2));
      break;
    case TomlPart::number:
    case TomlPart::word:
      format.setForeground(as_text(1));
      break;
    case TomlPart::comment:
      format.setForeground(palette.color(QPalette::PlaceholderText));
      format.setFontItalic(true);
      break;
  }
  return format;
}

class Highlighter : public QSyntaxHighlighter {
public:
  Highlighter(QTextDocument* document, const QWidget& editor)
      : QSyntaxHighlighter(document), editor_(editor) {}

protected:
  void highlightBlock(const QString& text) override {
    // The block state packs brackets * 4 + the open string's kind; it is -1 before the first line.
    const int before = std::max(0, previousBlockState());
    TomlLineState state{static_cast<TomlLineState::Open>(before % 4), before / 4};
    for (const TomlToken& token : toml_tokens(text, state))
      setFormat(token.begin, token.length, format_of(token.part, editor_.palette()));
    setCurrentBlockState(state.brackets * 4 + static_cast<int>(state.open));
  }

private:
  const QWidget& editor_;
};

class Gutter : public QWidget {
public:
  explicit Gutter(ScenarioEditor* editor) : QWidget(editor), editor_(*editor) {}

protected:
  void paintEvent(QPaintEvent* event) override { editor_.paint_gutter(event); }

private:
  ScenarioEditor& editor_;
};

}  // namespace

ScenarioEditor::ScenarioEditor(QWidget* parent) : QPlainTextEdit(parent), gutter_(new Gutter(this)) {
  setAccessibleName("Text of the scenario");
  setLineWrapMode(NoWrap);
  setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  setTabChangesFocus(true);  // TOML needs no tabs, and the keyboard needs a way to leave the editor
  connect(this, &QPlainTextEdit::blockCountChanged, this, &ScenarioEditor::lay_out_gutter);
  connect(this, &QPlainTextEdit::cursorPositionChanged, this, &ScenarioEditor::mark_lines);
  connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect& area, int scrolled) {
    if (scrolled != 0)
      gutter_->scroll(0, scrolled);
    else
      gutter_->update(0, area.y(), gutter_->width(), area.height());
  });
  lay_out_gutter();
  make_completer();
}

ScenarioEditor::~ScenarioEditor() {
  delete highlighter_;  // it refers to the editor's palette
}

void ScenarioEditor::set_draft(ScenarioDraft& draft) {
  if (draft_ == &draft) return;
  draft_ = &draft;
  delete highlighter_;
  QTextDocument& document = draft.document();
  if (!qobject_cast<QPlainTextDocumentLayout*>(document.documentLayout()))
    document.setDocumentLayout(new QPlainTextDocumentLayout(&document));
  document.setDefaultFont(font());
  error_line_ = 0;
  setDocument(&document);
  highlighter_ = new Highlighter(&document, *this);
  setTabStopDistance(4 * fontMetrics().horizontalAdvance(' '));
  lay_out_gutter();
  mark_lines();
}

void ScenarioEditor::mark_error(int line, int column, const QString& message) {
  if (line == error_line_ && column == error_column_ && message == error_) return;
  error_line_ = line;
  error_column_ = column;
  error_ = message;
  mark_lines();
  gutter_->update();
}

void ScenarioEditor::go_to(int line, int column) {
  go_to_place(draft_ ? draft_->position(line, column) : -1);
}

void ScenarioEditor::go_to_place(int place) {
  if (place < 0) return;
  QTextCursor cursor = textCursor();
  cursor.setPosition(place);
  setTextCursor(cursor);
  ensureCursorVisible();
  setFocus(Qt::OtherFocusReason);
}

void ScenarioEditor::mark_lines() {
  QList<QTextEdit::ExtraSelection> marks;
  QTextEdit::ExtraSelection line;
  line.cursor = textCursor();
  line.cursor.clearSelection();
  line.format.setProperty(QTextFormat::FullWidthSelection, true);
  line.format.setBackground(palette().color(QPalette::AlternateBase));
  marks << line;
  if (const int place = draft_ ? draft_->position(error_line_, error_column_) : -1; place >= 0) {
    const QColor colour = critical_colour(is_dark(palette()));
    QColor ground = colour;
    ground.setAlpha(28);
    line.cursor.setPosition(place);
    line.format.setBackground(ground);
    marks << line;
    // Underline the value at this place, else up to the end of the word, else up to the end of the line.
    QTextEdit::ExtraSelection wrong;
    wrong.cursor = QTextCursor(document());
    const QTextBlock block = document()->findBlock(place);
    const int line_end = block.position() + static_cast<int>(block.text().trimmed().size()) +
                         static_cast<int>(block.text().indexOf(block.text().trimmed()));
    int begin = place, end = place;
    for (const TomlKey& key : draft_->outline().keys)
      if (key.value_begin == place) end = std::min(key.value_end, line_end);
    const QString& text = draft_->text();
    while (end == begin && end < line_end && (text[end].isLetterOrNumber() || text[end] == '_')) ++end;
    if (end == begin) end = line_end;
    if (end == begin && begin > block.position()) --begin;  // at the end of the line
    wrong.cursor.setPosition(begin);
    wrong.cursor.setPosition(end, QTextCursor::KeepAnchor);
    wrong.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
    wrong.format.setUnderlineColor(colour);
    marks << wrong;
  }
  setExtraSelections(marks);
}

int ScenarioEditor::gutter_width() const {
  const int digits = std::max(2, static_cast<int>(QString::number(blockCount()).size()));
  return 2 * kGutterMargin + fontMetrics().horizontalAdvance('9') * digits + fontMetrics().height() / 2;
}

void ScenarioEditor::lay_out_gutter() {
  const QRect inside = contentsRect();
  setViewportMargins(gutter_width(), 0, 0, 0);
  gutter_->setGeometry(inside.left(), inside.top(), gutter_width(), inside.height());
}

void ScenarioEditor::paint_gutter(QPaintEvent* event) {
  QPainter painter(gutter_);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(event->rect(), palette().color(QPalette::Window));
  painter.setFont(font());
  const QColor wrong = critical_colour(is_dark(palette()));
  const int line = fontMetrics().height(), dot = line / 2;
  for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
    const QRectF place = blockBoundingGeometry(block).translated(contentOffset());
    if (place.top() > event->rect().bottom()) break;
    if (!block.isVisible() || place.bottom() < event->rect().top()) continue;
    const bool here = block.blockNumber() + 1 == error_line_;
    const bool current = block == textCursor().block();
    painter.setPen(here      ? wrong
                   : current ? palette().color(QPalette::Text)
                             : palette().color(QPalette::PlaceholderText));
    if (here) {
      painter.setBrush(wrong);
      painter.drawEllipse(QRectF(kGutterMargin / 2.0, place.top() + (line - dot) / 2.0, dot, dot));
    }
    painter.drawText(QRectF(0, place.top(), gutter_->width() - kGutterMargin, line),
                     Qt::AlignRight | Qt::AlignVCenter, QString::number(block.blockNumber() + 1));
  }
}

// ----- completion

void ScenarioEditor::make_completer() {
  choices_ = new QStringListModel(this);
  completer_ = new QCompleter(choices_, this);
  completer_->setWidget(this);
  completer_->setCompletionMode(QCompleter::PopupCompletion);
  completer_->setCaseSensitivity(Qt::CaseInsensitive);
  completer_->setMaxVisibleItems(12);
  completer_->popup()->setAccessibleName("Possible completions");
  connect(completer_, qOverload<const QString&>(&QCompleter::activated), this, &ScenarioEditor::take);
  add_command(*this,
              {menu::edit,
               "C&omplete",
               {QKeySequence("Ctrl+Space")},
               "Offer the sections, keys or values that are allowed at the cursor of the scenario's text"},
              [this] { complete(); });
  reading_keys_.ask([](const std::atomic<bool>&) { return scenario_keys(); },
                    [this](const auto& keys) { keys_ = keys; });
}

bool ScenarioEditor::offer() {
  const auto found =
      draft_ && keys_ ? completion_at(draft_->text(), textCursor().position(), *keys_) : std::nullopt;
  if (!found) return false;
  completion_ = *found;
  if (choices_->stringList() != completion_.choices) choices_->setStringList(completion_.choices);
  // Prefer choices that start with the typed text, else offer those that contain it.
  for (const auto mode : {Qt::MatchStartsWith, Qt::MatchContains}) {
    completer_->setFilterMode(mode);
    completer_->setCompletionPrefix(completion_.typed);
    if (completer_->completionCount() > 0) return true;
  }
  return false;
}

void ScenarioEditor::complete() {
  if (!offer()) {
    completer_->popup()->hide();
    return;
  }
  if (completer_->completionCount() == 1 && !completion_.typed.isEmpty() && !completer_->popup()->isVisible())
    return take(completer_->currentCompletion());
  completer_->popup()->setCurrentIndex(completer_->completionModel()->index(0, 0));
  QTextCursor begin = textCursor();
  begin.setPosition(completion_.begin);
  QRect place = cursorRect(begin).translated(viewport()->pos());
  place.setWidth(completer_->popup()->sizeHintForColumn(0) + 24 +
                 completer_->popup()->verticalScrollBar()->sizeHint().width());
  completer_->complete(place);
}

void ScenarioEditor::take(const QString& choice) {
  QTextCursor cursor = textCursor();
  cursor.setPosition(completion_.begin);
  cursor.setPosition(completion_.end, QTextCursor::KeepAnchor);
  cursor.insertText(choice + completion_.behind);
  setTextCursor(cursor);
}

void ScenarioEditor::keyPressEvent(QKeyEvent* event) {
  if (!completer_->popup()->isVisible()) return QPlainTextEdit::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Enter:
    case Qt::Key_Return:
    case Qt::Key_Escape:
    case Qt::Key_Tab:
    case Qt::Key_Backtab:
      return event->ignore();  // the popup handles it
    default:
      break;
  }
  QPlainTextEdit::keyPressEvent(event);
  complete();  // narrows down the list
}

void ScenarioEditor::colour_again() {
  if (auto* highlighter = qobject_cast<QSyntaxHighlighter*>(highlighter_)) highlighter->rehighlight();
  mark_lines();
  gutter_->update();
}

void ScenarioEditor::resizeEvent(QResizeEvent* event) {
  QPlainTextEdit::resizeEvent(event);
  lay_out_gutter();
}

void ScenarioEditor::changeEvent(QEvent* event) {
  QPlainTextEdit::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) colour_again();
  if (event->type() == QEvent::FontChange) lay_out_gutter();
}

bool ScenarioEditor::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && error_line_ > 0) {
    auto* help = static_cast<QHelpEvent*>(event);
    const QTextCursor under = cursorForPosition(viewport()->mapFromGlobal(help->globalPos()));
    if (under.blockNumber() + 1 == error_line_)
      QToolTip::showText(help->globalPos(), error_, this);
    else
      QToolTip::hideText();
    return true;
  }
  return QPlainTextEdit::event(event);
}

}  // namespace rehearse::gui
