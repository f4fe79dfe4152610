// Holds the scenario being edited: a single text, which both the editor and the form show and change.
#pragma once

#include <QObject>
#include <QString>
#include <QTextDocument>
#include <optional>
#include <vector>

#include "gui/models/scenario/toml_outline.hpp"

namespace rehearse::gui {

// Returns a runnable scenario as a starting point.
QString new_scenario_text();

class ScenarioDraft : public QObject {
  Q_OBJECT
public:
  ScenarioDraft(const QString& text, const QString& name, QObject* parent = nullptr);

  QString name() const { return name_; }
  QString path() const { return path_; }  // of its file; empty: not saved yet
  // Base folder of relative file names: the file's folder, or the given one for a draft without a file.
  QString folder() const;
  const QString& text() const;
  const TomlOutline& outline() const;  // of the current text
  QTextDocument& document() { return document_; }
  bool is_modified() const { return document_.isModified(); }
  // Whether it has changes that are saved neither in its file nor in a session file.
  bool is_at_risk() const { return is_modified() && kept_ != text(); }
  void keep() { kept_ = text(); }  // call when a session file stores the current text

  // The text that the draft was made from; runs are named by their difference from it.
  struct Origin {
    QString name, text;
  };
  const Origin& origin() const { return origin_; }
  void set_origin(const Origin& origin) { origin_ = origin; }
  const QString& last_run() const { return last_run_; }  // text of the last run; empty: none
  void set_last_run(const QString& text) { last_run_ = text; }

  // The run (Run::id) whose scenario this is, as it was made from it or as it was run; 0: none.
  int run() const { return run_; }
  void set_run(int id, const QString& text);
  bool is_as_run() const { return text() == run_text_; }  // without changes since
  void take_run();  // replaces the text by that of the run, in one undo step
  // Whether the draft only repeats a run's scenario and was never changed: it can be made again at any time.
  bool only_repeats_run() const;
  void set_made_for_run() { made_for_run_ = true; }

  void set_name(const QString& name);
  void set_folder(const QString& folder) { folder_ = folder; }
  // Reads or writes the file and takes over its name. Returns the error, or an empty string.
  QString load(const QString& path);
  QString save(const QString& path);
  // Restores a draft from a session file; `text` differs from the contents of the file at `path`, if there is
  // one.
  void restore(const QString& path, const QString& folder, const QString& text);

  // Returns the value of a key such as "training.micro_batch", strings without quotes; nullopt if the key is
  // absent.
  std::optional<QString> value(const QString& key) const;
  std::optional<QString> written(const QString& key) const;  // like value(), but as written, with quotes
  // Sets the key in a single undo step, without moving the document's cursors. `value` is written as a quoted
  // string or verbatim. Removes the keys `instead_of` in the same step.
  void set_string(const QString& key, const QString& value, const QStringList& instead_of = {});
  void set_number(const QString& key, const QString& value, const QStringList& instead_of = {});
  void remove(const QString& key);
  // Makes changes written as for "--set": "strategy.tensor=4", "training.recompute=full", "strategy.data="
  // (which removes the key). In a single undo step.
  void assign(const QStringList& settings);

  // Returns the text position of a line and column, both counted in characters from 1: the end of the line if
  // it is shorter, -1 if there is no such line.
  int position(int line, int column) const;
  // Returns the path of the key whose name or value is at this position; empty if there is none.
  QString key_at(int line, int column) const;

  // A replacement proposed by an error message: from "did you mean ...?", from numbers "such as 1488 or
  // 1504", or the nearest name of a list of allowed ones.
  struct Suggestion {
    QString name;
    TextEdit edit;
  };
  std::vector<Suggestion> suggestions(int line, int column, const QString& message) const;
  void change(const TextEdit& edit);  // in one undo step

signals:
  void text_changed();
  void name_changed();
  void modified_changed();

private:
  void write(const QString& key, const QString& value, const QStringList& instead_of);
  QTextDocument document_;
  mutable std::optional<QString> text_;  // cache of the document's text; reset when it changes
  mutable std::optional<TomlOutline> outline_;
  QString name_, path_, folder_;
  QString last_run_, run_text_;
  int run_ = 0;
  bool made_for_run_ = false;
  std::optional<QString> kept_;
  Origin origin_;
};

}  // namespace rehearse::gui
