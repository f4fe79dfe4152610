// A transformer as arguments of Megatron-LM's pretrain_gpt.py.
#pragma once

#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// What of the transformer changes its arithmetic and has no argument; empty: it can be trained.
std::vector<std::string> not_a_megatron_model(const Transformer& t);

// The arguments of its shape; what is done otherwise is added to `cannot`. The scenario's model is a
// transformer.
std::vector<std::string> megatron_model(const Scenario& scenario, std::vector<std::string>& cannot);

}  // namespace rehearse
