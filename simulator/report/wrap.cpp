#include "simulator/report/wrap.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace rehearse {
namespace {

// Splits the text into pieces that stay on one line: a number with its unit, --set with its assignment.
std::vector<std::string> words(const std::string& text) {
  static const std::set<std::string> kUnits = {"s", "ms", "us", "ns", "%", "GiB"};
  std::vector<std::string> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    const std::string bare = word.substr(0, word.find_last_not_of(".,;)") + 1);
    if (!found.empty() && (kUnits.count(bare) > 0 || found.back().ends_with("--set"))) {
      found.back() += " " + word;
    } else {
      found.push_back(word);
    }
    at = space + 1;
  }
  return found;
}

}  // namespace

std::string wrapped(const std::string& text) {
  std::string out = " ";
  std::size_t column = 1;
  for (const std::string& word : words(text)) {
    if (column + 1 + word.size() > kTextWidth) {
      out += "\n ";
      column = 1;
    }
    out += " " + word;
    column += 1 + word.size();
  }
  return out;
}

}  // namespace rehearse
