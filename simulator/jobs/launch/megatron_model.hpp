// Expresses a transformer as arguments of Megatron-LM's pretrain_gpt.py.
#pragma once

#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Returns properties of the transformer that change its arithmetic and have no argument; empty: Megatron-LM
// can train it.
std::vector<std::string> not_a_megatron_model(const Transformer& t);

// Returns the arguments of its shape; adds to `cannot` what Megatron-LM does differently. The scenario's
// model must be a transformer.
std::vector<std::string> megatron_model(const Scenario& scenario, std::vector<std::string>& cannot);

}  // namespace rehearse
