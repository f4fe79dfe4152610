// Reads pickles for tests, with an error for every operation that Rehearse does not write.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace rehearse::test {

// Follows https://docs.python.org/3/library/pickletools.html.
inline nlohmann::json unpickle(const std::string& bytes) {
  using nlohmann::json;
  std::size_t at = 0;
  std::vector<json> stack;
  std::vector<std::size_t> marks;
  std::map<std::uint64_t, json> memo;
  const auto number = [&](int size) {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(at++))) << (8 * i);
    return value;
  };
  for (;;) {
    const char operation = bytes.at(at++);
    switch (operation) {
      case '\x80':
        if (number(1) != 2) throw std::runtime_error("not protocol 2");
        break;
      case ']':
        stack.push_back(json::array());
        break;
      case '}':
        stack.push_back(json::object());
        break;
      case '(':
        marks.push_back(stack.size());
        break;
      case 'e':
      case 'u': {
        const std::size_t mark = marks.back();
        marks.pop_back();
        json& into = stack.at(mark - 1);
        for (std::size_t i = mark; i < stack.size(); i += operation == 'e' ? 1 : 2)
          if (operation == 'e')
            into.push_back(stack[i]);
          else
            into[stack[i].get<std::string>()] = stack.at(i + 1);
        stack.resize(mark);
        break;
      }
      case 'X': {
        const auto length = static_cast<std::size_t>(number(4));
        stack.emplace_back(bytes.substr(at, length));
        at += length;
        break;
      }
      case 'q':
        memo[number(1)] = stack.back();
        break;
      case 'r':
        memo[number(4)] = stack.back();
        break;
      case 'h':
        stack.push_back(memo.at(number(1)));
        break;
      case 'j':
        stack.push_back(memo.at(number(4)));
        break;
      case 'K':
        stack.emplace_back(static_cast<std::int64_t>(number(1)));
        break;
      case 'M':
        stack.emplace_back(static_cast<std::int64_t>(number(2)));
        break;
      case 'J':
        stack.emplace_back(static_cast<std::int64_t>(static_cast<std::int32_t>(number(4))));
        break;
      case '\x8a':
        if (number(1) != 8) throw std::runtime_error("not eight bytes");
        stack.emplace_back(static_cast<std::int64_t>(number(8)));
        break;
      case '\x88':
        stack.emplace_back(true);
        break;
      case '\x89':
        stack.emplace_back(false);
        break;
      case '.':
        if (at != bytes.size() || stack.size() != 1 || !marks.empty())
          throw std::runtime_error("more than one value");
        return stack.front();
      default:
        throw std::runtime_error("another operation");
    }
  }
}

}  // namespace rehearse::test
