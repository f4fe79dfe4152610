// Records which keys readers ask for, and so learns from the readers all keys that a file can contain.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct AskedKey {
  // expected: a key that can be present but whose type has not been asked for yet.
  enum class Kind { number, integer, boolean, text, choice, list, section, sections, expected };
  Kind kind = Kind::text;
  std::string path;                  // e.g. "strategy.schedule"
  std::vector<std::string> allowed;  // for a choice
};

// Records, during its lifetime, the keys that readers on this thread ask sections for; each key once. Only
// one object can exist at a time.
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

// For the readers of document.hpp.
bool asked_keys_wanted();
void note_asked(AskedKey key);

}  // namespace rehearse
