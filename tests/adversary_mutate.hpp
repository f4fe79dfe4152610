// Mutates a tree along its structure, as a typo, a misunderstanding or malice changes a file.
#pragma once

#include "tests/adversary_support.hpp"
#include "tests/adversary_tree.hpp"

namespace rehearse::adversary {

// Changes one position in the tree and returns the mutation's name. Values may be taken from the trees in
// `others`.
const char* mutate(Tree& root, const std::vector<Tree>& others, Generator& random);

}  // namespace rehearse::adversary
