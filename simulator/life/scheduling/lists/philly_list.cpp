// Reads cluster_job_log of msr-fiddle/philly-traces (README.md there has the schema).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/text/printable.hpp"
#include "simulator/life/scheduling/lists/readers.hpp"
#include "simulator/life/scheduling/lists/recorded_time.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> time_of(const Json& object, const char* key, const Place& place) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  if (text == "None" || text.empty()) return std::nullopt;
  const auto time = recorded_time_s(text);
  if (!time)
    throw InputError(place, fmt::format("{} is \"{}\"; allowed: a time like 2017-10-07 01:12:09, or null",
                                        key, printable(text)));
  return checked_time_s(*time, -kLongest_s, key, text, place);
}

int devices_of(const Json& attempt) {
  std::size_t devices = 0;
  const auto detail = attempt.find("detail");
  if (detail == attempt.end() || !detail->is_array()) return 0;
  for (const Json& node : *detail)
    if (node.is_object() && node.contains("gpus") && node["gpus"].is_array()) devices += node["gpus"].size();
  return static_cast<int>(devices);
}

void take_job(const Json& object, JobList& list, const Place& place) {
  if (!object.is_object())
    throw InputError(
        place,
        fmt::format("{} stands among the jobs; allowed: objects with jobid, submitted_time and "
                    "attempts",
                    printable(object.dump(-1, ' ', true, Json::error_handler_t::replace)).substr(0, 60)));
  ListedJob job;
  job.line = place.line;
  job.name = text_of(object, "jobid");
  job.user = text_of(object, "user");
  const auto submit = time_of(object, "submitted_time", place);
  const auto attempts = object.find("attempts");
  if (job.name.empty() || attempts == object.end() || !attempts->is_array())
    throw InputError(place,
                     "a job ends here without jobid or attempts; allowed: objects with jobid, submitted_time "
                     "and attempts");
  bool finished = submit.has_value() && !attempts->empty();
  job.devices = 0;
  for (const Json& attempt : *attempts) {
    if (!attempt.is_object()) continue;
    const auto start = time_of(attempt, "start_time", place), end = time_of(attempt, "end_time", place);
    if (!start || !end) {
      finished = finished && &attempt != &attempts->back();  // the last one may still run
      continue;
    }
    if (*end < *start)
      throw InputError(place,
                       fmt::format("job \"{}\" has an attempt that ends {} s before it starts; allowed: not "
                                   "before",
                                   printable(job.name), *start - *end));
    job.devices = std::max(job.devices, devices_of(attempt));
    job.duration_s += *end - *start;
  }
  if (!finished) {
    ++list.unfinished;
  } else if (job.devices == 0) {
    ++list.without_devices;
  } else {
    job.submit_s = *submit;
    add_job(list, std::move(job), place);
  }
}

}  // namespace

void read_philly_list(TextStream& text, JobList& list) {
  list.format = ListFormat::philly;
  // A job is taken and forgotten when its object ends, so that one is in memory at a time.
  const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 0 && (event == Json::parse_event_t::object_start || event == Json::parse_event_t::value))
      throw InputError(text.place(), "the file is JSON, but no array; allowed: Philly's array of jobs");
    if (depth > 16)
      throw InputError(text.place(), "the JSON is nested deeper than 16 levels; allowed: Philly's array");
    const bool ends = event == Json::parse_event_t::object_end || event == Json::parse_event_t::array_end ||
                      event == Json::parse_event_t::value;
    if (depth != 1 || !ends) return true;
    take_job(parsed, list, text.place());
    return false;
  };
  try {
    const Json parsed = Json::parse(TextCharacters(text), TextCharacters(), callback);
  } catch (const Json::parse_error&) {
    throw InputError(text.place(), text.at_end() ? "the JSON ends too early; allowed: Philly's array of jobs"
                                                 : "not JSON from about here on");
  } catch (const Json::out_of_range&) {
    throw InputError(text.place(), "holds a number that is too large for a double");
  }
}

}  // namespace rehearse
