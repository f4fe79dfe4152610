#include "models/text/asked_keys.hpp"

#include <algorithm>

namespace rehearse {

namespace {

thread_local AskedKeys* collecting = nullptr;

}  // namespace

AskedKeys::AskedKeys() {
  collecting = this;
}

AskedKeys::~AskedKeys() {
  collecting = nullptr;
}

bool asked_keys_wanted() {
  return collecting != nullptr;
}

void note_asked(AskedKey key) {
  if (!collecting) return;
  auto& keys = collecting->keys_;
  const auto known =
      std::find_if(keys.begin(), keys.end(), [&](const AskedKey& other) { return other.path == key.path; });
  if (known == keys.end())
    keys.push_back(std::move(key));
  else if (known->kind == AskedKey::Kind::expected)
    *known = std::move(key);
}

}  // namespace rehearse
