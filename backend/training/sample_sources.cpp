#include "backend/training/sample_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "backend/training/sample_folder.hpp"
#include "backend/training/token_data.hpp"
#include "models/text/error.hpp"
#include "models/text/printable.hpp"

namespace rehearse {
namespace {

class MadeSamples : public SampleSource {
public:
  MadeSamples(std::uint64_t seed, long features, long classes)
      : features_(static_cast<std::size_t>(features)), data_(seed, features, classes) {}
  std::size_t numbers() const override { return 1 + features_; }
  void read(std::uint64_t sample, std::size_t first, std::size_t count, float* to) const override {
    if (count == 0) return;
    if (first == 0) *to++ = static_cast<float>(data_.label(sample));
    const std::size_t left = count - (first == 0 ? 1 : 0);
    if (left == 0) return;
    if (left == features_) return data_.features(sample, to);
    std::vector<float> all(features_);
    data_.features(sample, all.data());
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(first, 1) - 1), left, to);
  }

private:
  const std::size_t features_;
  const SampleData data_;
};

class TokenSamples : public SampleSource {
public:
  TokenSamples(TokenData data, long length)
      : data_(std::move(data)), numbers_(static_cast<std::size_t>(length) + 1) {}
  std::size_t numbers() const override { return numbers_; }
  void read(std::uint64_t sample, std::size_t first, std::size_t count, float* to) const override {
    const std::vector<std::uint32_t> tokens = data_.tokens(sample, static_cast<long>(first + count));
    std::transform(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end(), to,
                   [](std::uint32_t token) { return static_cast<float>(token); });
  }

private:
  const TokenData data_;
  const std::size_t numbers_;
};

// Checks what a folder's samples say: labels below the number of classes, or tokens below the vocabulary.
class CheckedFolder : public SampleFolder {
public:
  CheckedFolder(const Scenario& scenario, std::size_t numbers, const std::string& they_are, double below,
                bool tokens)
      : SampleFolder(scenario.run.data, scenario.run.seed, scenario.data.shuffle),
        below_(below),
        tokens_(tokens) {
    const std::string index = (std::filesystem::path(scenario.run.data) / "index.toml").string();
    if (SampleFolder::numbers() != numbers)
      throw InputError({printable(index), 0, 0}, fmt::format("numbers is {}; allowed: {}, {}",
                                                             SampleFolder::numbers(), numbers, they_are));
    if (has_tokens() != tokens)
      throw InputError({printable(index), 0, 0},
                       fmt::format("type is that of {}; allowed: {}", tokens ? "features" : "tokens",
                                   tokens ? "uint16 or uint32" : "float32 or uint8"));
  }
  void read(std::uint64_t sample, std::size_t first, std::size_t count, float* to) const override {
    SampleFolder::read(sample, first, count, to);
    const std::size_t checked = tokens_ ? count : first == 0 && count > 0 ? 1 : 0;
    for (std::size_t i = 0; i < checked; ++i)
      if (!(to[i] >= 0 && to[i] < below_ && to[i] == std::floor(to[i])))
        throw InputError(
            {}, fmt::format("{}: {} is {}; allowed: integers below {}", place_of(sample),
                            tokens_ ? fmt::format("token {}", first + i) : "its label", to[i], below_));
  }

private:
  const double below_;
  const bool tokens_;
};

}  // namespace

bool reads_folder(const Scenario& scenario) {
  std::error_code ignored;
  return !scenario.run.data.empty() && std::filesystem::is_directory(scenario.run.data, ignored);
}

std::shared_ptr<const SampleSource> made_samples(std::uint64_t seed, long features, long classes) {
  return std::make_shared<MadeSamples>(seed, features, classes);
}

std::shared_ptr<const SampleSource> training_samples(const Scenario& scenario) {
  const RealRun& run = scenario.run;
  if (const auto* perceptron = std::get_if<MultiLayerPerceptron>(&scenario.model.shape)) {
    const long features = std::lround(perceptron->widths.front()),
               classes = std::lround(perceptron->widths.back());
    if (!reads_folder(scenario)) return made_samples(run.seed, features, classes);
    return std::make_shared<CheckedFolder>(scenario, static_cast<std::size_t>(features) + 1,
                                           "a label and the features of the model's first width",
                                           static_cast<double>(classes), false);
  }
  const auto& transformer = std::get<Transformer>(scenario.model.shape);
  const long vocabulary = std::lround(transformer.vocabulary);
  const long length = std::lround(tokens_per_sample(scenario.model, scenario.training.sequence_length));
  if (reads_folder(scenario))
    return std::make_shared<CheckedFolder>(scenario, static_cast<std::size_t>(length) + 1,
                                           "the tokens of a sequence and its last label",
                                           static_cast<double>(vocabulary), true);
  if (run.data.empty()) return std::make_shared<TokenSamples>(TokenData(run.seed, vocabulary), length);
  return std::make_shared<TokenSamples>(TokenData(TokenFile(run.data, vocabulary, length, run.seed)), length);
}

std::shared_ptr<const SampleSource> samples_to_read(const Scenario& scenario) {
  if (!reads_folder(scenario)) return nullptr;
  return std::make_shared<SampleFolder>(scenario.run.data, scenario.run.seed, scenario.data.shuffle);
}

}  // namespace rehearse
