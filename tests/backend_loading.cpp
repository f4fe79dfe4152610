// Tests real loaders: folders of samples, how ranks and workers divide them, and how long loading takes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "backend/loading/batch_input.hpp"
#include "backend/training/sample_folder.hpp"
#include "backend/training/sample_sources.hpp"
#include "models/text/error.hpp"
#include "simulator/input/batch_loader.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/schedule/communication.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

template <class T>
std::string raw(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Returns the numbers of samples [first, end): label n mod 4, then features that identify sample n.
template <class T>
std::vector<T> rows(int first, int end, int features = 3) {
  std::vector<T> numbers;
  for (int n = first; n < end; ++n) {
    numbers.push_back(static_cast<T>(n % 4));
    for (int f = 0; f < features; ++f) numbers.push_back(static_cast<T>(n + f));
  }
  return numbers;
}

// Writes a folder of 24 samples of a label and `features` features: files of one sample and of several.
void write_folder(const Scratch& scratch, const std::string& name, int features) {
  std::filesystem::create_directory(scratch.path(name));
  int first = 0, file = 0;
  for (const int count : {1, 6, 1, 16}) {
    scratch.write(fmt::format("{}/{}.bin", name, file++), raw(rows<float>(first, first + count, features)));
    first += count;
  }
  scratch.write(name + "/index.toml",
                fmt::format("type = \"float32\"\nnumbers = {}\nsamples = 24\nscale = 0.01\n", features + 1));
}

std::vector<float> sample(const SampleFolder& folder, std::uint64_t number) {
  std::vector<float> numbers(folder.numbers());
  folder.read(number, 0, numbers.size(), numbers.data());
  return numbers;
}

// Returns the message of the InputError that the function throws; "nothing" if it throws none.
template <class Function>
std::string refusal(const Function& function) {
  try {
    function();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

constexpr const char* kLoadedPerceptron = R"([model.multi_layer_perceptron]
widths = [8, 16, 4]
[training]
global_batch = 8
micro_batch = 2
precision = "fp32"
[cluster]
preset = "cpu-cluster"
nodes = 2
[data.preparation]
core_ms = 0.05
[run]
steps = 7
)";

}  // namespace

TEST_CASE("folders of samples: all types have the same samples, whatever files they are in") {
  const Scratch scratch;
  const auto made = [&](const std::string& name, const std::string& index,
                        const std::vector<std::string>& files) {
    std::filesystem::create_directory(scratch.path(name));
    for (std::size_t i = 0; i < files.size(); ++i) scratch.write(fmt::format("{}/{:02}", name, i), files[i]);
    scratch.write(name + "/index.toml", "numbers = 4\nsamples = 6\n" + index);
    return std::make_unique<SampleFolder>(scratch.path(name), 7, false);
  };
  const auto padded = [] {
    std::string bytes;
    for (int n = 0; n < 6; ++n) bytes += raw(rows<float>(n, n + 1)) + "padding";
    return bytes;
  };
  const std::vector<std::unique_ptr<SampleFolder>> folders = [&] {
    std::vector<std::unique_ptr<SampleFolder>> all;
    all.push_back(made("floats", "type = \"float32\"", {raw(rows<float>(0, 6))}));
    all.push_back(made("bytes", "type = \"uint8\"", {raw(rows<std::uint8_t>(0, 6))}));
    all.push_back(made("short", "type = \"uint16\"", {raw(rows<std::uint16_t>(0, 6))}));
    all.push_back(
        made("long", "type = \"uint32\"", {raw(rows<std::uint32_t>(0, 2)), raw(rows<std::uint32_t>(2, 6))}));
    all.push_back(made("padded", "type = \"float32\"\npadding_bytes = 7", {padded()}));
    all.push_back(made("named", "type = \"float32\"\nfiles = [\"01\", \"00\"]",
                       {raw(rows<float>(4, 6)), raw(rows<float>(0, 4))}));
    std::vector<std::string> each;
    for (int n = 0; n < 6; ++n) each.push_back(raw(rows<float>(n, n + 1)));
    all.push_back(made("single", "type = \"float32\"", each));
    return all;
  }();
  for (const auto& folder : folders)
    for (std::uint64_t n = 0; n < 12; ++n) {
      const auto in_epoch = static_cast<float>(n % 6);
      CHECK(sample(*folder, n) ==
            std::vector<float>{static_cast<float>(n % 6 % 4), in_epoch, in_epoch + 1, in_epoch + 2});
      float second = 0;
      folder->read(n, 2, 1, &second);
      CHECK(second == in_epoch + 1);
    }
  // Scaled are features, not labels.
  const auto scaled = made("scaled", "type = \"uint8\"\nscale = 0.5", {raw(rows<std::uint8_t>(0, 6))});
  CHECK(sample(*scaled, 3) == std::vector<float>{3, 1.5, 2, 2.5});
  // Two epochs have the same samples in different orders.
  write_folder(scratch, "shuffled", 3);
  const SampleFolder shuffled(scratch.path("shuffled"), 7, true), other(scratch.path("shuffled"), 8, true);
  std::vector<std::vector<float>> first, second, with_other_seed;
  for (std::uint64_t n = 0; n < 24; ++n) {
    first.push_back(sample(shuffled, n));
    second.push_back(sample(shuffled, 24 + n));
    with_other_seed.push_back(sample(other, n));
  }
  CHECK(first != second);
  CHECK(first != with_other_seed);
  CHECK(std::set(first.begin(), first.end()).size() == 24);
  CHECK(std::set(first.begin(), first.end()) == std::set(second.begin(), second.end()));
}

TEST_CASE("folders of samples: what is malformed, missing or cut off is refused with its place") {
  const Scratch scratch;
  const std::string path = scratch.path("f");
  struct Case {
    const char* what;
    std::function<void()> spoil;
    std::string expected;
  };
  const auto index = [&](const std::string& text) { scratch.write("f/index.toml", text); };
  for (const Case& c : std::vector<Case>{
           {"no index", [&] { std::filesystem::remove(path + "/index.toml"); },
            "/index.toml: there is no such file"},
           {"no TOML", [&] { index("type ="); }, "/index.toml:1:"},
           {"no type", [&] { index("numbers = 4\nsamples = 24"); }, "type is missing"},
           {"type", [&] { index("type = \"int7\"\nnumbers = 4\nsamples = 24"); },
            "index.toml:1:8: type is \"int7\"; allowed: \"float32\", \"uint8\", \"uint16\", \"uint32\""},
           {"key", [&] { index("type = \"float32\"\nnumbers = 4\nsamples = 24\nlabels = 3"); },
            "unknown key \"labels\""},
           {"scale", [&] { index("type = \"uint16\"\nnumbers = 8\nsamples = 24\nscale = 2"); },
            "scale is given with tokens; allowed: with type = \"float32\" or \"uint8\""},
           {"zero", [&] { index("type = \"float32\"\nnumbers = 0\nsamples = 24"); },
            "index.toml:2:11: numbers is 0"},
           {"missing file", [&] { std::filesystem::remove(path + "/1.bin"); },
            "index.toml:3:11: samples is 24; allowed: 18, the number in its 3 files"},
           {"named file", [&] { index("type = \"float32\"\nnumbers = 4\nsamples = 24\nfiles = [\"no\"]"); },
            "f/no: No such file or directory"},
           {"empty file", [&] { scratch.write("f/2.bin", ""); },
            "f/2.bin: is empty; allowed: at least one sample of 16 bytes"},
           {"truncated file", [&] { std::filesystem::resize_file(path + "/1.bin", 95); },
            "f/1.bin: has 95 bytes, which end inside sample 5 (at byte 80); allowed: whole samples of 16 "
            "bytes"},
           {"folder", [&] { std::filesystem::create_directory(path + "/sub"); },
            "f/sub: is not a file; allowed in a folder of samples: index.toml and files of samples"},
           {"dangling link", [&] { std::filesystem::create_symlink("nowhere", path + "/link"); },
            "f/link: No such file or directory"}}) {
    CAPTURE(c.what);
    std::filesystem::remove_all(path);
    write_folder(scratch, "f", 3);
    c.spoil();
    const std::string found = refusal([&] { const SampleFolder folder(path, 1, true); });
    INFO(found);
    CHECK(found.find(c.expected) != std::string::npos);
  }
  // Files that change after the start.
  std::filesystem::remove_all(path);
  write_folder(scratch, "f", 3);
  const SampleFolder folder(path, 1, false);
  std::filesystem::resize_file(path + "/3.bin", 40);
  CHECK(refusal([&] {
          (void)sample(folder, 10);
        }).find("f/3.bin: ends at byte 40, inside sample 2; it had 16 samples of 16 bytes") !=
        std::string::npos);
  std::filesystem::remove(path + "/3.bin");
  CHECK(refusal([&] { (void)sample(folder, 10); }).find("f/3.bin: No such file or directory") !=
        std::string::npos);
  // Opening a directory succeeds and reading it fails, as with a file on a failing drive.
  std::filesystem::create_directory(path + "/3.bin");
  CHECK(refusal([&] {
          (void)sample(folder, 10);
        }).find("f/3.bin: cannot be read at byte 32: Is a directory") != std::string::npos);
}

TEST_CASE("real loaders: ranks and workers load each sample once an epoch, in the order of one rank") {
  const Scratch scratch;
  write_folder(scratch, "samples", 8);
  // Without loaders: the samples of steps that 24 samples divide, on one rank.
  for (const char* strategy : {"data = 2", "data = 1\npipeline = 2",
                               "data = 2\n[data.storage]\nkind = \"local\"\nread_gb_per_s = 1"})
    for (const auto& [workers, prefetch] : {std::pair(0, 1), {1, 1}, {1, 4}, {3, 1}, {3, 4}}) {
      CAPTURE(strategy, workers, prefetch);
      const Scenario scenario = read_scenario_text(
          std::string(kLoadedPerceptron) + "data = \"" + scratch.path("samples") + "\"\n[strategy]\n" +
              strategy + fmt::format("\n[data.loader]\nworkers = {}\nprefetch = {}\n", workers, prefetch),
          "job.toml", {});
      const Plan plan = write_schedule(scenario);
      const Schedule& schedule = *plan.schedule;
      const int batches = 3 * schedule.optimizer_steps;  // 3 steps of 8 are an epoch
      REQUIRE(batches > 0);
      std::map<std::uint64_t, int> times;
      std::map<std::uint64_t, std::vector<float>> by_number;
      const std::shared_ptr<const SampleSource> source = training_samples(scenario);
      for (int rank = 0; rank < process_ranks(schedule); ++rank) {
        const Program& program = schedule.programs[static_cast<std::size_t>(schedule.program_of(0, rank))];
        if (!loads_batches(program)) continue;
        BatchInput input(scenario, schedule, program, {rank, plan.endpoints[static_cast<std::size_t>(rank)]},
                         source, 0);
        for (int repeat = 0; repeat < 3; ++repeat)
          for (const BatchOps& ops : batches_of(program)) {
            for (const int op : {ops.load, ops.copy})
              input.carry_out({op, program.ops[static_cast<std::size_t>(op)].stream, repeat, 0});
            const PreparedBatch* batch = input.batch_for({ops.read, 0, repeat, 0});
            REQUIRE(batch != nullptr);
            REQUIRE(batch->samples.size() == 2);
            for (std::size_t i = 0; i < 2; ++i) {
              ++times[batch->samples[i]];
              const float* row = &batch->rows[i * source->numbers()];
              by_number[batch->samples[i]].assign(row, row + source->numbers());
            }
          }
      }
      CHECK(times.size() == static_cast<std::size_t>(8 * batches));
      CHECK(times.rbegin()->first == static_cast<std::uint64_t>(8 * batches - 1));
      CHECK(std::all_of(times.begin(), times.end(), [](const auto& each) { return each.second == 1; }));
      std::set<std::vector<float>> epoch;
      for (std::uint64_t n = 0; n < 24; ++n) epoch.insert(by_number[n]);
      CHECK(epoch.size() == 24);
      std::vector<float> expected(source->numbers());
      for (std::uint64_t n = 0; n < 24; ++n) {
        source->read(n, 0, expected.size(), expected.data());
        CHECK(by_number[n] == expected);
      }
    }
}

TEST_CASE("real loaders: losses do not depend on workers, prefetching and storage, bit for bit") {
  const Scratch scratch;
  write_folder(scratch, "samples", 8);
  const std::string scenario = scratch.write(
      "job.toml", std::string(kLoadedPerceptron) + "data = \"samples\"\n[strategy]\ndata = 2\n");
  std::vector<std::uint16_t> tokens;
  for (unsigned i = 0, x = 1; i < 40 * 17; ++i, x = (x * 5 + 3) % 64)
    tokens.push_back(static_cast<std::uint16_t>(x));
  std::filesystem::create_directory(scratch.path("text"));
  scratch.write("text/all", raw(tokens));
  scratch.write("text/index.toml", "type = \"uint16\"\nnumbers = 17\nsamples = 40\n");
  const std::string text =
      scratch.write("text.toml", std::string(kTinyTransformer) +
                                     "nodes = 2\n[data.preparation]\ncore_ms = 0.05\n"
                                     "[run]\nsteps = 5\ndata = \"text\"\n[strategy]\npipeline = 2\n");
  for (const std::string& job : {scenario, text}) {
    const std::string run = "run " + job + " --device cpu --oversubscribe --format json ";
    // If loading takes no time, the schedule has no ops for it, and each rank reads its batches itself.
    const std::vector<double> inlined = losses_of(run + "--set data.preparation.core_ms=0");
    CHECK(inlined.front() != inlined.back());
    for (const char* sets :
         {"--set data.loader.workers=0", "--set data.loader.workers=1 --set data.loader.prefetch=1",
          "--set data.loader.workers=1 --set data.loader.prefetch=4",
          "--set data.loader.workers=3 --set data.loader.prefetch=1",
          "--set data.loader.workers=3 --set data.loader.prefetch=4 --set data.loader.device_batches=1",
          "--set data.loader.workers=3 --set data.loader.kind=samples",
          "--set data.loader.workers=2 --set data.storage.kind=shared --set data.storage.read_gb_per_s=0.01",
          "--set data.loader.workers=2 --set data.storage.kind=local --set "
          "data.storage.read_gb_per_s=0.01"}) {
      CAPTURE(job, sets);
      const std::vector<double> losses = losses_of(run + sets);
      REQUIRE(losses.size() >= inlined.size());  // whole repetitions of the schedule
      CHECK(std::equal(inlined.begin(), inlined.end(), losses.begin()));
    }
  }
}

TEST_CASE("real loaders: every way of combining gradients trains on the same samples") {
  const Scratch scratch;
  write_folder(scratch, "samples", 8);
  const std::string run = "run " +
                          scratch.write("job.toml", std::string(kLoadedPerceptron) +
                                                        "data = \"samples\"\n[strategy]\ndata = 2\n") +
                          " --device cpu --oversubscribe --format json --set run.steps=4 ";
  for (const char* strategy :
       {"--set strategy.gradients=parameter-server", "--set strategy.gradients=local-sgd",
        "--set strategy.gradients=delayed-all-reduce", "--set strategy.fsdp=full",
        "--set strategy.zero_stage=1", "--set strategy.compression=top-k",
        "--set strategy.data=1 --set strategy.pipeline=2 --set strategy.schedule=zb-h1",
        "--set strategy.data=1 --set strategy.tensor=2"}) {
    CAPTURE(strategy);
    const std::vector<double> inlined = losses_of(run + strategy + " --set data.preparation.core_ms=0"),
                              loaded = losses_of(run + strategy + " --set data.loader.workers=3");
    REQUIRE(!inlined.empty());
    REQUIRE(loaded.size() >= inlined.size());
    CHECK(std::equal(inlined.begin(), inlined.end(), loaded.begin()));
  }
}

TEST_CASE("real loaders: a training continues from a checkpoint with the samples that it would have had") {
  const Scratch scratch;
  write_folder(scratch, "samples", 8);
  const std::string run =
      "run " +
      scratch.write("job.toml", std::string(kLoadedPerceptron) +
                                    "data = \"samples\"\n[strategy]\ndata = 2\n"
                                    "[checkpoint]\nevery = 3\nstorage.preset = \"nas\"\n") +
      " --device cpu --oversubscribe --format json --set data.loader.workers=3 --set data.loader.prefetch=4 ";
  const std::vector<double> all = losses_of(run + "--set run.steps=12"),
                            first =
                                losses_of(run + "--set run.steps=6 --checkpoints " + scratch.path("kept")),
                            rest =
                                losses_of(run + "--set run.steps=12 --checkpoints " + scratch.path("kept"));
  REQUIRE(all.size() == first.size() + rest.size());
  CHECK(std::equal(first.begin(), first.end(), all.begin()));
  CHECK(std::equal(rest.rbegin(), rest.rend(), all.rbegin()));
  // Checkpoints are counted in repetitions of loading, which this loader has in another number.
  const Outcome other = run_program(
      "rehearse-run",
      run + "--set data.loader.workers=1 --set data.loader.prefetch=1 --checkpoints " + scratch.path("kept"));
  CHECK(other.status == 2);
  CHECK(other.err.find("steps after which data.loader repeats is 6 there, and 1 in") != std::string::npos);
}

TEST_CASE("real loaders: a sample that cannot be used ends all ranks", "[queued]") {
  const Scratch scratch;
  write_folder(scratch, "samples", 8);
  std::vector<float> wrong = rows<float>(0, 6, 8);
  wrong[9 * 2] = 4;
  scratch.write("samples/1.bin", raw(wrong));
  const std::string scenario = scratch.write(
      "job.toml", std::string(kLoadedPerceptron) + "data = \"samples\"\n[strategy]\ndata = 2\n");
  for (const char* sets : {"", "--set data.loader.kind=samples", "--set data.preparation.core_ms=0"}) {
    CAPTURE(sets);
    const Outcome outcome =
        run_program("rehearse-run", fmt::format("run {} --device cpu --oversubscribe {}", scenario, sets));
    CHECK(outcome.status == 2);
    INFO(outcome.err);
    CHECK(
        outcome.err.find("samples/1.bin: sample 2 (at byte 72): its label is 4; allowed: integers below 4") !=
        std::string::npos);
  }
  const auto refused = [&](const std::string& sets) {
    const Outcome outcome =
        run_program("rehearse-run", fmt::format("run {} --device cpu --oversubscribe {}", scenario, sets));
    CHECK(outcome.status == 2);
    return outcome.err;
  };
  CHECK(refused(
            "--set data.storage.kind=shared --set data.storage.servers=1 --set data.storage.read_gb_per_s=1")
            .find("data.storage.servers is 1; allowed: 0") != std::string::npos);
  CHECK(
      refused("--set \"model.multi_layer_perceptron.widths=[9,16,4]\"")
          .find(
              "index.toml: numbers is 9; allowed: 10, a label and the features of the model's first width") !=
      std::string::npos);
}

TEST_CASE("storage: readers that take turns get its bandwidth together") {
  RateQueues queues(2);
  // Three readers of 1 MB at 10 MB/s each wait for those before them; an idle queue starts anew.
  CHECK(queues.serve(0, 5.0, 1e6, 1e7) == Approx(5.1));
  CHECK(queues.serve(0, 5.0, 1e6, 1e7) == Approx(5.2));
  CHECK(queues.serve(1, 5.0, 1e6, 1e7) == Approx(5.1));
  CHECK(queues.serve(0, 5.05, 1e6, 1e7) == Approx(5.3));
  CHECK(queues.serve(0, 9.0, 1e6, 1e7) == Approx(9.1));
  // Threads that read at the same time leave no gap and no overlap.
  std::vector<std::thread> readers;
  std::vector<double> last(4, 0);
  for (std::size_t r = 0; r < last.size(); ++r)
    readers.emplace_back([&, r] {
      for (int i = 0; i < 1000; ++i) last[r] = queues.serve(1, 20, 1e3, 1e7);
    });
  for (std::thread& reader : readers) reader.join();
  CHECK(*std::max_element(last.begin(), last.end()) == Approx(20 + 4 * 1000 * 1e3 / 1e7));
}

// Loading by w workers takes t_batch / w for each batch, or as long as the training between them, whichever
// is longer (Mohan et al., VLDB 2021): here 4 samples of 10 ms. Timed runs sleep, so other work beside them
// makes them little slower, and never faster.
TEST_CASE("real loaders: stalls last as long as predicted", "[alone][release]") {
  const Scratch scratch;
  const std::string scenario = scratch.write("job.toml", R"([model.multi_layer_perceptron]
widths = [8, 16, 4]
[training]
global_batch = 8
micro_batch = 4
precision = "fp32"
[cluster]
preset = "cpu-cluster"
nodes = 2
node.cpu_cores = 8
[strategy]
data = 2
[data.preparation]
core_ms = 10
[run]
compute = "timed"
steps = 12
warmup = 4
)");
  struct Case {
    const char* sets;
    double step_s;
  };
  for (const Case& c : std::vector<Case>{{"workers=0", 0.040},
                                         {"workers=1", 0.040},
                                         {"workers=4", 0.010},
                                         {"workers=2 --set data.loader.kind=samples", 0.020}}) {
    CAPTURE(c.sets);
    const Outcome outcome = run_program(
        "rehearse-run", fmt::format("run {} --device cpu --oversubscribe --format json --set data.loader.{}",
                                    scenario, c.sets));
    REQUIRE(outcome.status == 0);
    const nlohmann::json result = nlohmann::json::parse(outcome.out);
    const double step_s = result["measured"]["step_times"]["median_s"];
    CHECK(step_s > 0.95 * c.step_s);
    CHECK(step_s < 1.5 * c.step_s + 0.004);
    CHECK(result["breakdown_s"]["data_stall"].get<double>() > 0.6 * c.step_s);
  }
}
