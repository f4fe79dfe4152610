// Tests `rehearse launch` as a user runs it: shells accept its scripts, and it never overwrites its
// input.
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;

namespace {}  // namespace

TEST_CASE("a launch script is one that bash can read") {
  const Scratch scratch;
  for (const char* name : {"gpt3-175b", "llama3-405b", "megatron-7.5b-interleaved"}) {
    const std::string script = scratch.path("job.sh");
    const Outcome run = run_rehearse("launch " + shipped_scenario(name) + " --for megatron --out " + script);
    CAPTURE(name, run.err);
    CHECK(run.status == 0);
    CHECK(run.out.empty());
    CHECK(run.err.rfind("What Megatron-LM does differently from the scenario, or leaves to you:\n", 0) == 0);
    CHECK(run_shell("bash -n " + script).status == 0);
    // Without the variables that it requires, the script stops before it starts anything.
    const Outcome bare = run_shell("env -u TRAIN_ITERS bash " + script);
    CHECK(bare.status != 0);
    CHECK(bare.err.find("TRAIN_ITERS: optimizer steps") != std::string::npos);
  }
}

TEST_CASE("the arguments of a launch script reach torchrun word by word") {
  const Scratch scratch;
  const std::string script = scratch.path("job.sh");
  CHECK(
      run_rehearse("launch " + shipped_scenario("llama3-405b") + " --for megatron --out " + script).status ==
      0);
  const std::string torchrun = scratch.write("torchrun", "#!/bin/bash\nprintf '<%s>' \"$@\"\n");
  const Outcome run =
      run_shell("chmod +x " + torchrun + " && PATH=" + scratch.path("") +
                ":$PATH TRAIN_ITERS=10 LR=1e-4 NODE_RANK=0 MASTER_ADDR=a bash " + script + " --more");
  CHECK(run.status == 0);
  CHECK(run.out.find("<--nnodes><2048><--node-rank><0>") == 0);
  for (const char* part : {"<--nproc-per-node><8><pretrain_gpt.py><--num-layers><126>", "<--train-iters><10>",
                           "<--pipeline-model-parallel-layout><Et|(tt|)*62tL>",
                           "<--mock-data><--tokenizer-type><NullTokenizer><--vocab-size><128256><--more>"})
    CHECK(run.out.find(part) != std::string::npos);
}

TEST_CASE("a launch file never replaces what the scenario is read from") {
  const Scratch scratch;
  const std::string text = read_file(shipped_scenario("gpt3-175b")), path = scratch.write("s.toml", text);
  const Outcome run = run_rehearse("launch " + path + " --for megatron --out " + path);
  CHECK(run.status == 2);
  CHECK(run.err.find("--out") != std::string::npos);
  CHECK(read_file(path) == text);
}

TEST_CASE("a job that cannot be launched ends with status 1, and writes nothing") {
  const Scratch scratch;
  const std::string path = scratch.path("job.toml");
  const Outcome run =
      run_rehearse("launch " + shipped_scenario("gpt3-175b") + " --for torchtitan --out " + path);
  CHECK(run.status == 1);
  CHECK(run.err.find("torchtitan cannot run this job:") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(run_rehearse("launch " + shipped_scenario("gpt3-175b") + " --for horovod").status == 2);
}
