// Chooses where a training's samples come from: a folder, a file of tokens, or a seed.
#pragma once

#include <memory>

#include "backend/loading/sample_source.hpp"
#include "backend/training/sample_data.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Returns whether run.data is a folder of samples.
bool reads_folder(const Scenario& scenario);

// Returns the samples that the scenario's perceptron or transformer is trained on. Throws InputError if those
// of files are not what the model takes.
std::shared_ptr<const SampleSource> training_samples(const Scenario& scenario);
std::shared_ptr<const SampleSource> made_samples(std::uint64_t seed, long features, long classes);

// Returns the samples that a run reads which trains nothing: those of a folder, whatever they are; null:
// none.
std::shared_ptr<const SampleSource> samples_to_read(const Scenario& scenario);

}  // namespace rehearse
