// Provides the scenario and options that the tests of `rehearse plan` share.
#pragma once

#include <string>

#include "tests/command_run.hpp"

namespace rehearse::test {

inline constexpr const char* kPlanned = R"([model.transformer]
layers = 4
hidden = 512
heads = 8
vocabulary = 8192
sequence_length = 512
[training]
global_batch = 24
[cluster]
preset = "workstation-10gbe"
nodes = 2
[strategy]
data = 8
)";

// Restricts the search to about fifty plans, which are simulated in less than a second.
inline constexpr const char* kFewPlans =
    " --vary strategy.tensor=1 --vary strategy.pipeline=1,2,4 --vary strategy.schedule=1f1b,gpipe"
    " --vary training.micro_batch=1,3 --vary training.recompute=none --vary strategy.bucket_mb=25"
    " --vary strategy.all_reduce=auto --vary strategy.zero_stage=0,1,2";

}  // namespace rehearse::test
