// Tests runs of models that are replayed kernel by kernel instead of trained, on the stand-ins for CUDA, NCCL
// and cuDNN.
#if defined(REHEARSE_HAVE_CUDA) && defined(REHEARSE_CUDNN_STAND_IN)

#include <nlohmann/json.hpp>
#include <set>

#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;
using nlohmann::json;

namespace {

constexpr const char* kTail = R"([training]
global_batch = 4
micro_batch = 2
precision = "bf16"
[cluster]
preset = "cpu-cluster"
nodes = 1
[cluster.node]
device = "h200"
[run]
steps = 1
)";

const std::string kTransformer = std::string(R"([model.transformer]
layers = 2
hidden = 24
heads = 4
kv_heads = 2
feed_forward = 40
vocabulary = 100
sequence_length = 12
gated = true
rotary = true
qk_norm = true
experts = 4
experts_per_token = 2
)") + kTail;

const std::string kConvolutional = std::string(R"([model.convolutional]
image_size = 12
channels = 3
[[model.convolutional.stage]]
kind = "convolution"
channels = 8
kernel = 3
norm = true
[[model.convolutional.stage]]
kind = "max-pool"
kernel = 3
stride = 2
[[model.convolutional.stage]]
kind = "bottleneck"
blocks = 2
width = 4
stride = 2
[[model.convolutional.stage]]
kind = "average-pool"
[[model.convolutional.stage]]
kind = "linear"
widths = [10]
)") + kTail;

constexpr const char* kWithCudnn =
    "LD_LIBRARY_PATH=" REHEARSE_CUDNN_STAND_IN "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}";

test::Outcome run(const std::string& scenario, const std::string& arguments, const std::string& environment) {
  const test::Scratch scratch;
  return test::run_on_stand_in(
      "rehearse-run",
      "run --device gpu --patience 60 --format json " + arguments + " " + scratch.write("run.toml", scenario),
      environment);
}

std::set<std::string> notes_of(const test::Outcome& outcome) {
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.status == 0);
  return json::parse(outcome.out).at("measured").at("notes").get<std::set<std::string>>();
}

// Returns the notes on convolutions; empty if there are none.
std::string on_convolutions(const std::set<std::string>& notes) {
  std::string found;
  for (const std::string& note : notes)
    if (note.find("convolutions were") != std::string::npos) found += (found.empty() ? "" : "; ") + note;
  return found;
}

constexpr const char* kAsProducts = "convolutions were computed as matrix products of the same size: ";

}  // namespace

TEST_CASE("a transformer is replayed in every precision") {
  for (const char* precision : {"fp32", "tf32", "bf16", "fp16"}) {
    CAPTURE(precision);
    const auto notes = notes_of(
        run(kTransformer, "--set 'training.precision=\"" + std::string(precision) + "\"'", kWithCudnn));
    CHECK(on_convolutions(notes).empty());
  }
}

TEST_CASE("a convolutional net is replayed by cuDNN") {
  for (const char* precision : {"fp32", "bf16"}) {
    CAPTURE(precision);
    const auto notes = notes_of(
        run(kConvolutional, "--set 'training.precision=\"" + std::string(precision) + "\"'", kWithCudnn));
    CHECK(on_convolutions(notes).find("convolutions were computed by cuDNN ") == 0);
    CHECK(on_convolutions(notes).find("as matrix products") == std::string::npos);
  }
}

TEST_CASE("what cuDNN refuses is computed as a matrix product, and a note says so") {
  struct Case {
    const char* fault;
    std::string noted;
  };
  const std::string all = kAsProducts, some = "; some " + all;
  for (const Case& c : {
           Case{"cudnnCreate", all + "cudnnCreate failed: CUDNN_STATUS_NOT_INITIALIZED"},
           Case{"cudnnGetConvolutionBackwardDataAlgorithm_v7",
                some + "cudnnGetConvolutionBackwardDataAlgorithm_v7 failed: CUDNN_STATUS_NOT_SUPPORTED"},
           Case{"cudnnConvolutionForward",
                some + "cudnnConvolutionForward failed: CUDNN_STATUS_NOT_SUPPORTED"},
       }) {
    CAPTURE(c.fault);
    const std::string noted = on_convolutions(
        notes_of(run(kConvolutional, "", std::string("CUDNN_STAND_IN_FAULT=") + c.fault + " " + kWithCudnn)));
    CHECK(noted.size() >= c.noted.size());
    CHECK(noted.find(c.noted) != std::string::npos);
  }
}

TEST_CASE("without cuDNN convolutions are computed as matrix products, and a note says so") {
  const test::Scratch scratch;  // its empty files shadow any installed cuDNN
  for (const char* name : {"libcudnn.so", "libcudnn.so.8", "libcudnn.so.9", "libcudnn.so.10"})
    (void)scratch.write(name, "");
  const std::string noted =
      on_convolutions(notes_of(run(kConvolutional, "", "LD_LIBRARY_PATH=" + scratch.path(""))));
  CHECK(noted.find(kAsProducts) == 0);
  CHECK(noted.find("file too short") != std::string::npos);
}

#endif
