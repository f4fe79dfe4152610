// A scenario that is being written: one text, which the editor and the form both show and change.
#pragma once

#include <QObject>
#include <QString>
#include <QTextDocument>
#include <optional>
#include <vector>

#include "gui/models/toml_outline.hpp"

namespace rehearse::gui {

// A scenario that can be run, to begin from.
QString new_scenario_text();

class ScenarioDraft : public QObject {
  Q_OBJECT
public:
  ScenarioDraft(const QString& text, const QString& name, QObject* parent = nullptr);

  QString name() const { return name_; }
  QString path() const { return path_; }  // of its file; empty: it has none yet
  // Where file names in it begin: the file's folder, or what was given for a draft without a file.
  QString folder() const;
  const QString& text() const;
  const TomlOutline& outline() const;  // of the text as it stands
  QTextDocument& document() { return document_; }
  bool is_modified() const { return document_.isModified(); }
  // Whether it has changes that are neither in its file nor in a session's.
  bool is_at_risk() const { return is_modified() && kept_ != text(); }
  void keep() { kept_ = text(); }  // a session's file holds the text as it stands

  // What it was made from: runs are named by their difference from it.
  struct Origin {
    QString name, text;
  };
  const Origin& origin() const { return origin_; }
  void set_origin(const Origin& origin) { origin_ = origin; }
  const QString& last_run() const { return last_run_; }  // the text that was run last; empty
  void set_last_run(const QString& text) { last_run_ = text; }

  void set_name(const QString& name);
  void set_folder(const QString& folder) { folder_ = folder; }
  // Reads or writes the file and takes its name; what went wrong, or empty.
  QString load(const QString& path);
  QString save(const QString& path);
  // As a session's file kept it: `text` is not that of the file, if there is one.
  void restore(const QString& path, const QString& folder, const QString& text);

  // What the text says at "training.micro_batch", strings without quotes; nothing if the key is absent.
  std::optional<QString> value(const QString& key) const;
  std::optional<QString> written(const QString& key) const;  // the same as it stands, strings in quotes
  // One step that undo() takes back; the cursors of the document stay where they are. `value` is written as
  // a string or as it stands. `instead_of`: keys that go away in the same step.
  void set_string(const QString& key, const QString& value, const QStringList& instead_of = {});
  void set_number(const QString& key, const QString& value, const QStringList& instead_of = {});
  void remove(const QString& key);

  // Place in the text of a line and a column that count characters from 1; the end of the line if it is
  // shorter, -1 if there is no such line.
  int position(int line, int column) const;
  // The key whose value or name stands in that line; empty if none does.
  QString key_at(int line, int column) const;

  // What may stand in that place by a message that asks "did you mean ...?", tells numbers "such as 1488 or
  // 1504", or allows names of which one is nearly that which stands there.
  struct Suggestion {
    QString name;
    TextEdit edit;
  };
  std::vector<Suggestion> suggestions(int line, int column, const QString& message) const;
  void change(const TextEdit& edit);  // one step that undo() takes back

signals:
  void text_changed();
  void name_changed();
  void modified_changed();

private:
  void write(const QString& key, const QString& value, const QStringList& instead_of);
  QTextDocument document_;
  mutable std::optional<QString> text_;  // of the document; none: it has changed since
  mutable std::optional<TomlOutline> outline_;
  QString name_, path_, folder_;
  QString last_run_;
  std::optional<QString> kept_;
  Origin origin_;
};

}  // namespace rehearse::gui
