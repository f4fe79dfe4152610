#include "tests/adversary_mutate.hpp"

#include <algorithm>
#include <array>

namespace rehearse::adversary {
namespace {

// A position in a tree: one child of `parent`.
struct Slot {
  Tree* parent = nullptr;
  std::size_t index = 0;
  std::string& key() const { return parent->children[index].key; }
  Tree& value() const { return parent->children[index].value; }
};

void collect(Tree& node, std::vector<Slot>& slots) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    slots.push_back({&node, i});
    collect(node.children[i].value, slots);
  }
}

// Limits of number types and of the ranges that readers accept, and tokens that are not numbers at all.
constexpr std::array kNumbers = {"0",
                                 "-0.0",
                                 "-1",
                                 "1",
                                 "2",
                                 "3",
                                 "7",
                                 "0.5",
                                 "1e-9",
                                 "5e-324",
                                 "1e-300",
                                 "1e9",
                                 "1e18",
                                 "1e19",
                                 "1e308",
                                 "-1e308",
                                 "1e309",
                                 "nan",
                                 "inf",
                                 "-inf",
                                 "65536",
                                 "1000000",
                                 "1000001",
                                 "2147483647",
                                 "2147483648",
                                 "4294967296",
                                 "9223372036854775807",
                                 "-9223372036854775808",
                                 "9223372036854775808",
                                 "0.1e1",
                                 "null",
                                 "2026-01-01",
                                 "true"};
// Invalid tokens, written unescaped: control characters, broken UTF-8, bad escapes, unclosed quotes and
// brackets.
constexpr std::array kBadTokens = {"\"a\x01z\"",
                                   "\"\xff\xfe\"",
                                   "\"\xc3\"",
                                   "\"\xed\xa0\x80\"",
                                   "\"\\ud800\"",
                                   "\"\\q\"",
                                   "\"",
                                   "'''",
                                   "[",
                                   "{",
                                   "}",
                                   "=",
                                   "",
                                   "#",
                                   "\x7f",
                                   "\"\\u0000\""};
constexpr std::array kTexts = {
    "no-such-thing", "../../etc/passwd", "/dev/null", ".", " ", "a\nb", "%s%n", "none", "auto"};

struct Context {
  Slot slot;
  const std::vector<Slot>& slots;
  const std::vector<Tree>& others;
  Generator& random;
};

void erase(const Context& c) {
  auto& children = c.slot.parent->children;
  children.erase(children.begin() + static_cast<std::ptrdiff_t>(c.slot.index));
}

void duplicate(const Context& c) {
  auto& children = c.slot.parent->children;
  auto copy = children[c.slot.index];
  children.insert(children.begin() + static_cast<std::ptrdiff_t>(c.random.below(children.size() + 1)),
                  std::move(copy));
}

void misspell(const Context& c) {
  std::string& word = c.slot.key().empty() ? c.slot.value().text : c.slot.key();
  if (word.empty()) {
    word = "x";
    return;
  }
  word[c.random.below(word.size())] = static_cast<char>('a' + c.random.below(26));
}

void change_type(const Context& c) {
  Tree& value = c.slot.value();
  if (value.has_children()) {
    value = value.children.empty() ? token("1") : Tree(value.children.front().value);
    return;
  }
  switch (c.random.below(4)) {
    case 0:
      value.kind = value.kind == Tree::Kind::text ? Tree::Kind::token : Tree::Kind::text;
      return;
    case 1:
      value = token(c.random.one_in(2) ? "true" : "false");
      return;
    case 2:
      value = {Tree::Kind::array, "", {{"", value}}};
      return;
    default:
      value = {Tree::Kind::table, "", {{"value", value}}};
  }
}

void set_number(const Context& c) {
  c.slot.value() = token(c.random.pick(kNumbers));
}

bool is_whole_number(const Tree& value) {
  return value.kind == Tree::Kind::token && !value.text.empty() && value.text.size() <= 12 &&
         value.text.find_first_not_of("0123456789") == std::string::npos;
}

// Multiplies or divides a whole number by a small factor, which leaves files valid more often than
// set_number().
void scale_number(const Context& c) {
  std::vector<Slot> numbers;
  for (const Slot& slot : c.slots)
    if (is_whole_number(slot.value())) numbers.push_back(slot);
  if (numbers.empty()) return set_number(c);
  std::string& text = c.random.pick(numbers).value().text;
  constexpr std::array kFactors = {2L, 2L, 3L, 4L, 10L, 1000L};
  const long number = std::stol(text), factor = c.random.pick(kFactors);
  text = std::to_string(c.random.one_in(2) ? number * factor : std::max(1L, number / factor));
}

void set_empty(const Context& c) {
  const std::array<Tree, 3> empty = {Tree{Tree::Kind::text, "", {}}, Tree{Tree::Kind::array, "", {}},
                                     Tree{Tree::Kind::table, "", {}}};
  c.slot.value() = c.random.pick(empty);
}

bool contains(const Tree& outer, const Tree& inner) {
  return std::any_of(outer.children.begin(), outer.children.end(), [&](const auto& child) {
    return &child.value == &inner || contains(child.value, inner);
  });
}

void swap_values(const Context& c) {
  Tree& mine = c.slot.value();
  Tree& theirs = c.random.pick(c.slots).value();
  if (&mine != &theirs && !contains(mine, theirs) && !contains(theirs, mine)) std::swap(mine, theirs);
}

void nest(const Context& c) {
  constexpr std::array kDepths = {1, 2, 20, 200};
  Tree value = c.slot.value();
  const bool table = c.random.one_in(2);
  for (int depth = c.random.pick(kDepths); depth > 0; --depth) {
    Tree outer{table ? Tree::Kind::table : Tree::Kind::array, "", {}};
    outer.children.push_back({"a", std::move(value)});
    value = std::move(outer);
  }
  c.slot.value() = std::move(value);
}

void set_text(const Context& c) {
  c.slot.value() = string(c.random.pick(kTexts));
}

void set_bad_bytes(const Context& c) {
  c.slot.value() = token(c.random.pick(kBadTokens));
}

void set_long(const Context& c) {
  constexpr std::array<std::size_t, 3> kLengths = {300, 10'000, 200'000};
  const std::string text(c.random.pick(kLengths), 'x');
  if (c.random.one_in(3) && !c.slot.key().empty())
    c.slot.key() = text;
  else
    c.slot.value() = string(text);
}

void repeat_elements(const Context& c) {
  Tree& value = c.slot.value();
  if (value.kind != Tree::Kind::array || value.children.empty()) return duplicate(c);
  constexpr std::array<std::size_t, 3> kCounts = {2, 9, 3000};
  const auto element = value.children[c.random.below(value.children.size())];
  value.children.resize(c.random.pick(kCounts), element);
}

void move_elsewhere(const Context& c) {
  auto taken = c.slot.parent->children[c.slot.index];
  Tree& to = c.random.pick(c.slots).value();
  if (to.has_children()) to.children.push_back(std::move(taken));  // a copy
}

// Takes the value of the same key in another file; if no key is shared, inserts one of that file's keys next
// to this one.
void borrow(const Context& c) {
  Tree other = c.random.pick(c.others);
  std::vector<Slot> theirs;
  std::vector<std::pair<Slot, Slot>> same;
  collect(other, theirs);
  for (const Slot& slot : theirs)
    for (const Slot& mine : c.slots)
      if (!slot.key().empty() && slot.key() == mine.key()) same.emplace_back(mine, slot);
  if (!same.empty()) {
    const auto& [mine, slot] = c.random.pick(same);
    mine.value() = slot.value();
  } else if (!theirs.empty() && c.slot.parent->kind == Tree::Kind::table) {
    const Slot& slot = c.random.pick(theirs);
    c.slot.parent->children.push_back({slot.key(), slot.value()});
  }
}

struct Mutation {
  const char* name;
  void (*apply)(const Context& context);
};

// Mutations that often leave a file valid are listed more than once, so that they are picked more often.
constexpr std::array kMutations = {
    Mutation{"delete", erase},
    Mutation{"duplicate", duplicate},
    Mutation{"misspell", misspell},
    Mutation{"change the type", change_type},
    Mutation{"boundary", set_number},
    Mutation{"boundary", set_number},
    Mutation{"empty", set_empty},
    Mutation{"swap", swap_values},
    Mutation{"nest", nest},
    Mutation{"unknown text", set_text},
    Mutation{"bad bytes", set_bad_bytes},
    Mutation{"long", set_long},
    Mutation{"repeat", repeat_elements},
    Mutation{"move", move_elsewhere},
    Mutation{"scale", scale_number},
    Mutation{"scale", scale_number},
    Mutation{"scale", scale_number},
    Mutation{"scale", scale_number},
    Mutation{"scale", scale_number},
    Mutation{"scale", scale_number},
    Mutation{"borrow", borrow},
    Mutation{"borrow", borrow},
    Mutation{"borrow", borrow},
    Mutation{"borrow", borrow},
    Mutation{"borrow", borrow},
    Mutation{"borrow", borrow},
};

}  // namespace

const char* mutate(Tree& root, const std::vector<Tree>& others, Generator& random) {
  std::vector<Slot> slots;
  collect(root, slots);
  if (slots.empty()) return "nothing";
  const Mutation& mutation = random.pick(kMutations);
  mutation.apply({random.pick(slots), slots, others, random});
  return mutation.name;
}

}  // namespace rehearse::adversary
