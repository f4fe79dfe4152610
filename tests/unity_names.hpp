// Finds names that sources define for themselves alone, but that collide where sources are compiled in one
// batch (REHEARSE_UNITY).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rehearse::test {

// A definition with internal linkage: in an anonymous namespace, static, or a constant.
struct OwnName {
  std::string name;        // with its namespaces: "rehearse::gui::kMost"
  std::string parameters;  // types of a function's parameters, in parentheses; an alias' meaning after "="
  int line = 0;
};
// Reads C++ as this repository writes it. Looks neither into macros nor into what a file includes.
std::vector<OwnName> own_names(std::string_view source);

// Returns a sentence for each name that two of these sources, pairs of file name and text, define if they
// are fewer than `batch` places apart: a new source can bring them into one batch. Functions whose
// parameters differ are overloads, and an alias may be repeated.
std::vector<std::string> collisions(const std::vector<std::pair<std::string, std::string>>& sources,
                                    std::size_t batch);

}  // namespace rehearse::test
