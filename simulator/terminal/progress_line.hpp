// Shows a line on a terminal that is overwritten until it is cleared.
#pragma once

#include <string>

namespace rehearse {

class ProgressLine {
public:
  explicit ProgressLine(bool shown);
  ProgressLine();  // shown if standard error is a terminal
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  bool is_shown() const { return shown_; }
  void show(const std::string& text);
  void clear();  // erases the line; it can be shown again

private:
  bool shown_, written_ = false;
};

}  // namespace rehearse
