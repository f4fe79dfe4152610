#include "gui/models/trace/trace_draft.hpp"

#include "gui/models/trace/trace_events.hpp"

namespace rehearse::gui {

std::uint32_t Strings::number_of(std::string_view raw) {
  if (raw.empty()) return 0;
  const std::uint64_t hash = std::hash<std::string_view>{}(raw) | 1;
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].raw != 0; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash != hash) continue;
    if (raws_[slots_[at].raw - 1] == raw) return slots_[at].number;
  }
  raws_.emplace_back(raw);
  texts.push_back(raw.find('\\') == std::string_view::npos ? std::string(raw)
                                                           : text_of('"' + std::string(raw) + '"'));
  const auto number = static_cast<std::uint32_t>(texts.size() - 1);
  slots_[at] = {hash, number, static_cast<std::uint32_t>(raws_.size())};
  if (2 * raws_.size() > slots_.size()) grow();
  return number;
}

void Strings::grow() {
  std::vector<Slot> before(2 * slots_.size());
  before.swap(slots_);
  for (const Slot& slot : before) {
    if (slot.raw == 0) continue;
    std::size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].raw != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

}  // namespace rehearse::gui
