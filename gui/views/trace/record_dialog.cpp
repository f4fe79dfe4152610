#include "gui/views/trace/record_dialog.hpp"

#include <QClipboard>
#include <QDialogButtonBox>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

namespace rehearse::gui {

namespace {

const char* const kCode =
    "from torch.profiler import profile, schedule\n"
    "\n"
    "with profile(schedule=schedule(wait=1, warmup=1, active=3)) as profiler:\n"
    "    for batch in batches:\n"
    "        train(batch)\n"
    "        profiler.step()\n"
    "profiler.export_chrome_trace(f\"rank{rank}.json.gz\")\n";

}  // namespace

RecordDialog::RecordDialog(bool recorded, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Your PyTorch trace"));
  setAccessibleName(windowTitle());
  auto* column = new QVBoxLayout(this);
  auto* told = new QLabel(
      tr("Record a few steps with torch.profiler, each rank into a separate file, and open the files of all "
         "ranks together: they become one run."));
  told->setWordWrap(true);
  column->addWidget(told);
  auto* code = new QPlainTextEdit(QString::fromLatin1(kCode));
  code->setReadOnly(true);
  code->setTabChangesFocus(true);
  code->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  code->setAccessibleName(tr("How to record a trace"));
  code->setLineWrapMode(QPlainTextEdit::NoWrap);
  const QFontMetrics metrics(code->font());
  code->setMinimumSize(metrics.horizontalAdvance(QLatin1Char('x')) * 76, metrics.lineSpacing() * 9);
  column->addWidget(code);
  auto* buttons = new QDialogButtonBox;
  QPushButton* choose = buttons->addButton(tr("&Open traces..."), QDialogButtonBox::AcceptRole);
  QPushButton* copy = buttons->addButton(tr("&Copy"), QDialogButtonBox::ActionRole);
  buttons->addButton(QDialogButtonBox::Cancel);
  connect(choose, &QPushButton::clicked, this, [this] {
    accept();
    emit files_wanted();
  });
  connect(copy, &QPushButton::clicked, this,
          [] { QGuiApplication::clipboard()->setText(QString::fromLatin1(kCode)); });
  if (recorded) {
    QPushButton* look = buttons->addButton(tr("Open a &recorded example"), QDialogButtonBox::ActionRole);
    connect(look, &QPushButton::clicked, this, [this] {
      accept();
      emit recorded_wanted();
    });
  }
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
  choose->setDefault(true);
  choose->setFocus();
}

}  // namespace rehearse::gui
