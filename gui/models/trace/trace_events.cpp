#include "gui/models/trace/trace_events.hpp"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "gui/models/trace/utf8.hpp"
#include "models/text/number_in.hpp"

namespace rehearse::gui {
namespace {

using namespace simdjson;

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
    argument.known = known_argument(argument.key);
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

// Parses a token that consists of digits only, as most do, and surely fits; returns -1 for any other token.
std::int64_t plain_integer(Token token) {
  constexpr std::size_t kFits = 18;
  if (token.empty() || token.size() > kFits) return -1;
  std::int64_t value = 0;
  for (const char c : token) {
    if (c < '0' || c > '9') return -1;
    value = 10 * value + (c - '0');
  }
  return value;
}

}  // namespace

struct EventParser::Parser {
  ondemand::parser parser;
  Event event;
  std::vector<Argument> arguments;  // of `event`

  // Sets `event` to one that has been split.
  void fill(const EventBatch& batch, const EventFields& fields) {
    const char* const text = batch.text.data();
    const auto token = [&](EventFields::Field field) { return fields.tokens[field].in(text); };
    event.phase = fields.phase;
    event.binds_enclosing = fields.binds_enclosing;
    event.name = token(EventFields::name);
    event.category = token(EventFields::category);
    event.pid = token(EventFields::pid);
    event.tid = token(EventFields::tid);
    event.time = token(EventFields::time);
    event.duration = token(EventFields::duration);
    event.id = token(EventFields::id);
    event.scope = token(EventFields::scope);
    event.arguments_text = fields.arguments_text.in(text);
    if (arguments.size() < fields.arguments) arguments.resize(2 * std::size_t{fields.arguments});
    for (std::size_t i = 0; i < fields.arguments; ++i) {
      const ArgumentSlices& slices = batch.arguments.room[fields.first_argument + i];
      arguments[i] = {slices.key.in(text), slices.value.in(text), slices.known};
    }
    event.arguments = {arguments.data(), fields.arguments};
  }

  // Reads an event with simdjson. If it is not valid JSON, repairs it. Returns why it cannot be used; null on
  // success.
  const char* look_closely(const std::string& text, const Take& take) {
    error_code error = read(text);
    if (error != SUCCESS) error = read(mended(text));
    return error == SUCCESS ? take(event) : explained(error);
  }

private:
  error_code read(const std::string& text) {
    alone_.assign("[").append(text).append("]");
    const std::size_t bytes = alone_.size();
    alone_.append(SIMDJSON_PADDING, ' ');
    ondemand::document document;
    if (const error_code error = parser.iterate(alone_.data(), bytes, alone_.size()).get(document))
      return error;
    ondemand::array array;
    if (const error_code error = document.get_array().get(array)) return error;
    for (auto each : array) {
      ondemand::object object;
      if (const error_code error = each.get_object().get(object)) return error;
      return read_event(document, object, arguments, event);
    }
    return EMPTY;
  }

  std::string alone_;  // the text of `event`
};

EventParser::EventParser() : parser_(std::make_unique<Parser>()) {}
EventParser::~EventParser() = default;

void EventParser::parse(const EventBatch& batch, const Take& take, const EventScanner::Fail& fail) {
  for (std::size_t i = 0; i < batch.starts.size(); ++i) {
    const char* why = nullptr;
    if (batch.fields[i].known) {
      parser_->fill(batch, batch.fields[i]);
      why = take(parser_->event);
    } else {
      why = parser_->look_closely(std::string(batch.event(i)), take);
    }
    if (why != nullptr) fail({batch.first_number + i, batch.at + batch.starts[i], why});
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
  return finite_number_in(bare(token));
}

std::optional<std::int64_t> integer_of(Token token) {
  if (const std::int64_t value = plain_integer(token); value >= 0) return value;
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

Token argument(const Event& event, KnownArgument known) {
  for (const Argument& each : event.arguments)
    if (each.known == known) return each.value;
  return {};
}

}  // namespace rehearse::gui
