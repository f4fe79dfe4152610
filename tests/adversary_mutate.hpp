// Structure-aware mutations of a tree: what a slip, a misunderstanding or malice makes of a file.
#pragma once

#include "tests/adversary_support.hpp"
#include "tests/adversary_tree.hpp"

namespace rehearse::adversary {

// Changes one place of the tree. `others`: trees whose values may be borrowed. Returns the mutation's name.
const char* mutate(Tree& root, const std::vector<Tree>& others, Generator& random);

}  // namespace rehearse::adversary
