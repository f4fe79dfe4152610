#include "gui/models/process_names.hpp"

#include <algorithm>
#include <cstdio>

namespace rehearse::gui {

int members_of(const std::string& name) {
  const std::size_t open = name.rfind('(');
  if (open == std::string::npos) return 1;
  const std::string inside = name.substr(open + 1);
  int count = 0, used = 0;
  if (std::sscanf(inside.c_str(), "%d ranks%n", &count, &used) == 1 && used > 0) return std::max(1, count);
  if (inside.rfind("ranks ", 0) != 0) return 1;
  int first = 0, last = 0;  // "ranks 0-3, 8"
  for (const char* at = inside.c_str() + 6; std::sscanf(at, "%d%n", &first, &used) == 1;) {
    at += used;
    last = first;
    if (*at == '-' && std::sscanf(at + 1, "%d%n", &last, &used) == 1) at += 1 + used;
    if (last < first || last - first > 10'000'000) break;
    count += last - first + 1;
    if (*at == ',') ++at;
  }
  return std::max(1, count);
}

std::string stage_of(const std::string& name) {
  const std::size_t at = name.find("stage ");
  if (at == std::string::npos || (at > 0 && name[at - 1] != ' ')) return {};
  const std::size_t end = name.find_first_not_of("0123456789", at + 6);
  return end == at + 6 ? std::string() : name.substr(at, end == std::string::npos ? end : end - at);
}

std::string role_of(const std::string& name) {
  if (!stage_of(name).empty()) return "worker";  // stages are what the workers are divided into
  std::size_t begin = name.find(": ");           // behind the name of its job
  begin = begin == std::string::npos || begin > name.find_first_of(",(") ? 0 : begin + 2;
  std::string role = name.substr(begin, name.find_first_of(",(", begin) - begin);
  while (!role.empty() && role.back() == ' ') role.pop_back();
  return role;
}

}  // namespace rehearse::gui
