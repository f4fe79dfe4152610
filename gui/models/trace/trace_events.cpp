#include "gui/models/trace/trace_events.hpp"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "models/text/number_in.hpp"

namespace rehearse::gui {
namespace {

using namespace simdjson;

static_assert(EventBatch::kPadding >= SIMDJSON_PADDING);

Token trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

// Returns the raw key, up to its closing quote.
std::string_view key_of(ondemand::field& field) {
  const char* const raw = field.key().raw();
  const char* end = raw;
  while (*end != '"') ++end;  // simdjson has checked that there is one
  return {raw, static_cast<std::size_t>(end - raw)};
}

error_code token_of(ondemand::value value, Token& token) {
  ondemand::json_type type{};
  if (const error_code error = value.type().get(type)) return error;
  if (type == ondemand::json_type::array) {
    ondemand::array array;
    if (const error_code error = value.get_array().get(array)) return error;
    const error_code error = array.raw_json().get(token);
    token = trimmed(token);
    return error;
  }
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (const error_code error = value.get_object().get(object)) return error;
    const error_code error = object.raw_json().get(token);
    token = trimmed(token);
    return error;
  }
  token = trimmed(value.raw_json_token());
  return SUCCESS;
}

// `room` holds the event's arguments until the next event; it only grows, which is faster than push_back().
error_code read_arguments(ondemand::document& document, ondemand::value value, std::vector<Argument>& room,
                          Event& event) {
  ondemand::json_type type{};
  if (const error_code error = value.type().get(type)) return error;
  if (type != ondemand::json_type::object) return SUCCESS;
  const char* begin = nullptr;
  const char* end = nullptr;
  if (const error_code error = document.current_location().get(begin)) return error;
  ondemand::object object;
  if (const error_code error = value.get_object().get(object)) return error;
  std::size_t count = 0;
  for (auto each : object) {
    ondemand::field field;
    if (const error_code error = std::move(each).get(field)) return error;
    if (count == room.size()) room.resize(2 * count + 16);
    Argument& argument = room[count++];
    argument.key = key_of(field);
    if (const error_code error = token_of(field.value(), argument.value)) return error;
  }
  event.arguments = {room.data(), count};
  if (const error_code error = document.current_location().get(end)) return error;
  event.arguments_text = trimmed({begin, static_cast<std::size_t>(end - begin)});
  return SUCCESS;
}

error_code read_event(ondemand::document& document, ondemand::object object, std::vector<Argument>& room,
                      Event& event) {
  event.phase = 0;
  event.binds_enclosing = false;
  event.name = event.category = event.pid = event.tid = event.time = event.duration = event.id =
      event.scope = {};
  event.arguments = {};
  event.arguments_text = {};
  for (auto each : object) {
    ondemand::field field;
    if (const error_code error = std::move(each).get(field)) return error;
    const std::string_view key = key_of(field);
    Token* token = nullptr;
    Token other;
    if (key == "args") {
      if (const error_code error = read_arguments(document, field.value(), room, event)) return error;
      continue;
    }
    if (key == "ts")
      token = &event.time;
    else if (key == "dur")
      token = &event.duration;
    else if (key == "name")
      token = &event.name;
    else if (key == "cat")
      token = &event.category;
    else if (key == "pid")
      token = &event.pid;
    else if (key == "tid")
      token = &event.tid;
    else if (key == "id" || key == "id2")
      token = &event.id;
    else if (key == "scope")
      token = &event.scope;
    else if (key == "ph" || key == "bp")
      token = &other;
    else
      continue;
    if (const error_code error = token_of(field.value(), *token)) return error;
    if (key == "ph" && other.size() == 3 && other[0] == '"') event.phase = other[1];
    if (key == "bp") event.binds_enclosing = bare(other) == "e";
  }
  return SUCCESS;
}

const char* explained(error_code error) {
  switch (error) {
    case UTF8_ERROR:
      return "text that is not UTF-8";
    case UNCLOSED_STRING:
      return "a string without its closing quote";
    case UNESCAPED_CHARS:
      return "a control character in a string";
    case INCORRECT_TYPE:
      return "not an object";
    default:
      return "invalid JSON";
  }
}

// Returns the length in bytes of the character at `at`; 0: not valid UTF-8.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned lead = byte(at);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  const unsigned second = byte(at + 1);
  const bool bad = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                   (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return bad ? 0 : length;
}

// Replaces characters that JSON does not allow in strings but some programs write in names.
std::string mended(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0)
      result += '?';
    else if (static_cast<unsigned char>(text[i]) < ' ')
      result += ' ';
    else
      result.append(text, i, length);
    i += std::max<std::size_t>(1, length);
  }
  return result;
}

}  // namespace

struct EventParser::Parser {
  ondemand::parser parser;
  Event event;
  std::vector<Argument> arguments;  // of `event`
};

EventParser::EventParser() : parser_(std::make_unique<Parser>()) {}
EventParser::~EventParser() = default;

void EventParser::parse(EventBatch& batch, const Take& take, const EventScanner::Fail& fail) {
  Event& event = parser_->event;
  std::size_t done = 0;  // events of the batch
  const auto failed = [&](const char* why) {
    fail({batch.first_number + done, batch.at + batch.starts[done] - 1, why});
  };
  const auto all = [&](std::string_view json) -> error_code {
    ondemand::document document;
    const padded_string_view padded(json.data(), json.size(), json.size() + EventBatch::kPadding);
    if (const error_code error = parser_->parser.iterate(padded).get(document)) return error;
    ondemand::array array;
    if (const error_code error = document.get_array().get(array)) return error;
    for (auto each : array) {
      ondemand::object object;
      if (const error_code error = each.get_object().get(object)) return error;
      if (const error_code error = read_event(document, object, parser_->arguments, event)) return error;
      if (const char* const why = take(event)) failed(why);
      ++done;
    }
    return SUCCESS;
  };
  if (all(batch.json()) == SUCCESS) return;
  // Parses the events one by one: repairs those that are not valid JSON, or leaves them out.
  std::string alone;
  while (done < batch.starts.size()) {
    const std::size_t number = done;
    const auto try_alone = [&](const std::string& text) {
      alone = "[" + text + "]" + std::string(EventBatch::kPadding, ' ');
      return all({alone.data(), alone.size() - EventBatch::kPadding});
    };
    const std::string text(batch.event(number));
    error_code error = try_alone(text);
    if (error != SUCCESS && done == number) error = try_alone(mended(text));
    if (done > number) continue;
    failed(explained(error));
    done = number + 1;
  }
}

std::string_view bare(Token token) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"')
    return token.substr(1, token.size() - 2);
  return token;
}

std::string text_of(Token token) {
  const std::string_view raw = bare(token);
  if (raw.size() == token.size() || raw.find('\\') == std::string_view::npos) return std::string(raw);
  std::string text;
  const auto hex = [&](std::size_t at) {
    unsigned value = 0;
    const bool whole =
        at + 4 <= raw.size() &&
        std::from_chars(raw.data() + at, raw.data() + at + 4, value, 16).ptr == raw.data() + at + 4;
    return whole ? value : 0xFFFDu;
  };
  const auto append = [&](unsigned c) {
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else {
      const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
      text += static_cast<char>((0xF00 >> (more + 1) & 0xFF) | c >> 6 * more);
      for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (c >> 6 * i & 0x3F));
    }
  };
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      text += raw[i];
      continue;
    }
    const char c = raw[++i];
    constexpr std::string_view kEscapes = "bfnrt", kMeant = "\b\f\n\r\t";
    if (c == 'u') {
      unsigned code = hex(i + 1);
      i = std::min(raw.size() - 1, i + 4);
      if (code >= 0xD800 && code < 0xDC00 && raw.substr(i + 1, 2) == "\\u") {
        const unsigned low = hex(i + 3);
        if (low >= 0xDC00 && low < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          i = std::min(raw.size() - 1, i + 6);
        }
      }
      append(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
    } else if (const std::size_t which = kEscapes.find(c); which != std::string_view::npos) {
      text += kMeant[which];
    } else {
      text += c;
    }
  }
  return text;
}

std::optional<double> number_of(Token token) {
  const auto value = number_in<double>(bare(token));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> integer_of(Token token) {
  if (const auto value = number_in<std::int64_t>(bare(token))) return value;
  const auto number = number_of(token);  // e.g. 5.0
  if (number && std::abs(*number) < 9e15 && *number == std::floor(*number))
    return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

std::optional<Time> nanoseconds_of(Token token) {
  // Small enough that differences of sums of two do not overflow.
  constexpr Time kMost = 3'000'000'000'000'000'000;
  std::string_view text = bare(token);
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  Time value = 0;
  std::size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    value = 10 * value + (text[i] - '0');
    if (value > kMost / 1000) return std::nullopt;
  }
  if (i == 0) return std::nullopt;
  value *= 1000;
  if (i < text.size() && text[i] == '.') {
    ++i;
    Time unit = 100;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, unit /= 10) {
      value += unit * (text[i] - '0');
      if (unit == 0 && text[i] >= '5' && text[i - 4] == '.') ++value;  // rounds by the fourth digit
    }
  }
  if (i < text.size()) {  // e.g. 1.6e15
    const auto number = number_of(text);
    if (!number || std::abs(*number) > static_cast<double>(kMost) / 1000) return std::nullopt;
    value = std::llround(*number * 1000);
  }
  return negative ? -value : value;
}

Token argument(const Event& event, std::string_view key) {
  for (const Argument& each : event.arguments)
    if (each.key == key) return each.value;
  return {};
}

}  // namespace rehearse::gui
