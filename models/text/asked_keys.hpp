// Which keys readers ask for: all that a file may hold, learnt from the readers themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct AskedKey {
  // expected: it may be there, but so far nobody has asked what it is.
  enum class Kind { number, integer, boolean, text, choice, list, section, sections, expected };
  Kind kind = Kind::text;
  std::string path;                  // "strategy.schedule"
  std::vector<std::string> allowed;  // of a choice
};

// Collects, as long as it lives, what readers on its thread ask sections for, each key once. One at a time.
class AskedKeys {
public:
  AskedKeys();
  ~AskedKeys();
  AskedKeys(const AskedKeys&) = delete;
  AskedKeys& operator=(const AskedKeys&) = delete;
  const std::vector<AskedKey>& keys() const { return keys_; }

private:
  friend void note_asked(AskedKey key);
  std::vector<AskedKey> keys_;
};

// Called by the readers of document.hpp.
bool asked_keys_wanted();
void note_asked(AskedKey key);

}  // namespace rehearse
