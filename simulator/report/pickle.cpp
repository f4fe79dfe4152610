#include "simulator/report/pickle.hpp"

#include <limits>

#include "models/text/printable.hpp"

// The operations are those of https://docs.python.org/3/library/pickletools.html, by their names there.
namespace rehearse {
namespace {

constexpr char kProto = '\x80', kStop = '.', kMark = '(';
constexpr char kEmptyList = ']', kAppends = 'e', kEmptyDict = '}', kSetItems = 'u';
constexpr char kBinUnicode = 'X', kBinPut = 'q', kLongBinPut = 'r', kBinGet = 'h', kLongBinGet = 'j';
constexpr char kBinInt1 = 'K', kBinInt2 = 'M', kBinInt = 'J', kLong1 = '\x8a';
constexpr char kNewTrue = '\x88', kNewFalse = '\x89';
constexpr int kBatch = 1000;  // elements, as Python's own writer has it
constexpr std::uint32_t kByte = 0x100;

}  // namespace

Pickle::Pickle() {
  bytes_ = {kProto, '\x02'};
}

void Pickle::begin(bool list) {
  element();
  bytes_ += list ? kEmptyList : kEmptyDict;
  bytes_ += kMark;
  open_.push_back({list});
}

void Pickle::end() {
  bytes_ += open_.back().list ? kAppends : kSetItems;
  open_.pop_back();
}

void Pickle::begin_list() {
  begin(true);
}

void Pickle::end_list() {
  end();
}

void Pickle::begin_dict() {
  begin(false);
}

void Pickle::end_dict() {
  end();
}

void Pickle::element() {
  if (open_.empty() || !open_.back().list || ++open_.back().elements <= kBatch) return;
  bytes_ += kAppends;
  bytes_ += kMark;
  open_.back().elements = 1;
}

void Pickle::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) bytes_ += static_cast<char>(value & 0xFF);
}

void Pickle::text(std::string_view text) {
  element();
  const std::string valid = printable(text);
  if (const auto known = memo_.find(valid); known != memo_.end()) {
    const bool is_short = known->second < kByte;
    bytes_ += is_short ? kBinGet : kLongBinGet;
    little_endian(known->second, is_short ? 1 : 4);
    return;
  }
  bytes_ += kBinUnicode;
  little_endian(valid.size(), 4);
  bytes_ += valid;
  const auto number = static_cast<std::uint32_t>(memo_.size());
  bytes_ += number < kByte ? kBinPut : kLongBinPut;
  little_endian(number, number < kByte ? 1 : 4);
  memo_.emplace(valid, number);
}

void Pickle::integer(std::int64_t value) {
  element();
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value < kByte) {
    bytes_ += kBinInt1;
    little_endian(bits, 1);
  } else if (value >= 0 && value < kByte * kByte) {
    bytes_ += kBinInt2;
    little_endian(bits, 2);
  } else if (value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max()) {
    bytes_ += kBinInt;
    little_endian(bits, 4);
  } else {
    bytes_ += kLong1;
    bytes_ += '\x08';  // bytes
    little_endian(bits, 8);
  }
}

void Pickle::boolean(bool value) {
  element();
  bytes_ += value ? kNewTrue : kNewFalse;
}

void Pickle::item(std::string_view key, std::string_view value) {
  text(key);
  text(value);
}

void Pickle::item(std::string_view key, std::int64_t value) {
  text(key);
  integer(value);
}

std::string Pickle::done() {
  return bytes_ + kStop;
}

}  // namespace rehearse
