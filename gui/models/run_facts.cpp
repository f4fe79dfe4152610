#include "gui/models/run_facts.hpp"

#include <nlohmann/json.hpp>

namespace rehearse::gui {

void facts_of(const Timeline& timeline, Run& run) {
  const auto other = nlohmann::json::parse(timeline.other_data, nullptr, false);
  if (!other.is_object()) return;
  if (other.contains("measured")) run.source = Run::Source::measured;
  const auto text = other.find("scenario_text");
  if (text != other.end() && text->is_string()) run.scenario_text = text->get<std::string>();
}

}  // namespace rehearse::gui
