// Tests runs on several machines: what starts ranks and where they are, and real runs across two machines
// made of namespaces, each with a separate name, address and clock.
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "backend/host/started.hpp"
#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"
#include "simulator/costs/link_profile.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

// The variables that srun 22.05 sets for the third of four tasks on m0 and m1.
const Variables kSlurmTask = {{"SLURM_JOB_ID", "9"},
                              {"SLURM_PROCID", "2"},
                              {"SLURM_STEP_ID", "1"},
                              {"SLURM_STEP_NUM_TASKS", "4"},
                              {"SLURM_STEP_NODELIST", "m[0-1]"},
                              {"SLURM_NTASKS", "4"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("What started a process is told by its environment") {
  struct Case {
    Variables variables;
    Starter with_mpi, without;
  };
  using enum Starter;
  const Case cases[] = {
      {{}, none, none},
      {{{"OMPI_COMM_WORLD_SIZE", "4"}}, mpi, mpi},
      {with(kSlurmTask, {{"OMPI_COMM_WORLD_SIZE", "4"}}), mpi, mpi},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}}, variables, variables},
      {with(kSlurmTask, {{"PMIX_RANK", "2"}, {"WORLD_SIZE", "4"}}), variables, variables},
      {with(kSlurmTask, {{"PMIX_RANK", "2"}}), mpi, variables},
      {{{"PMI_RANK", "0"}}, mpi, none},
      {kSlurmTask, variables, variables},
      // A batch script, a shell that Slurm started, and a single task under PMIx.
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "9"}}, none, none},
      {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}, none, none},
      {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"PMIX_RANK", "0"}}, none, none},
  };
  for (const Case& c : cases) {
    CAPTURE(&c - cases);
    CHECK(starter_of_process(true, environment_of(c.variables)) == c.with_mpi);
    CHECK(starter_of_process(false, environment_of(c.variables)) == c.without);
  }
}

TEST_CASE("Ranks find each other by torchrun's variables or Slurm's") {
  struct Case {
    Variables variables;
    int rank, ranks;
    std::string address;
    int port;
  };
  const Case cases[] = {
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, 1, 2, "127.0.0.1", 29500},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m7"}, {"MASTER_PORT", "1234"}},
       1,
       2,
       "m7",
       1234},
      {kSlurmTask, 2, 4, "m0", 20000 + 16 * 9 + 1},
      {with(kSlurmTask, {{"MASTER_ADDR", "m7"}, {"MASTER_PORT", "1234"}}), 2, 4, "m7", 1234},
      {with(kSlurmTask, {{"RANK", "3"}, {"WORLD_SIZE", "8"}}), 3, 8, "127.0.0.1", 29500},
  };
  for (const Case& c : cases) {
    CAPTURE(&c - cases);
    const TcpOptions options = ranks_of_environment(environment_of(c.variables));
    CHECK(options.rank == c.rank);
    CHECK(options.ranks == c.ranks);
    CHECK(options.first_address == c.address);
    CHECK(options.first_port == c.port);
  }
  const Variables outside = {{"RANK", "4"}, {"WORLD_SIZE", "4"}};
  CHECK_THROWS_WITH(ranks_of_environment(environment_of(outside)),
                    "this process has rank 4 of 4; allowed: 0 to 3");
  const Variables port = {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "x"}};
  CHECK_THROWS_WITH(ranks_of_environment(environment_of(port)),
                    "the environment variable MASTER_PORT is \"x\"; allowed: a number of 1 or more");
}

TEST_CASE("The first of Slurm's list of hosts") {
  const std::pair<const char*, const char*> cases[] = {
      {"m0", "m0"},     {"m[0-1]", "m0"},       {"n[007-010,12],m1", "n007"},
      {"a-b,c", "a-b"}, {"r[3]n[2-4]", "r3n2"}, {"gpu[2,5].lab", "gpu2.lab"},
      {"", ""}};
  for (const auto& [list, first] : cases) CHECK(first_of_hostlist(list) == first);
}

TEST_CASE("A run says where its machines are not the scenario's nodes") {
  using Texts = std::vector<std::string>;
  struct Case {
    Texts nodes, machines, notes;
  };
  const Texts two = {"node0", "node0", "node1", "node1"}, four = {"node0", "node1", "node2", "node3"};
  const std::string split = "ranks of one node of the scenario ran on several machines ",
                    shared = "several nodes of the scenario ran on one machine ";
  const Case cases[] = {
      {two, {"a 1", "a 1", "b 2", "b 2"}, {}},
      {four, {"a 1", "a 1", "a 1", "a 1"}, {}},
      {four, {"a 1", "b 2", "c 3", "d 4"}, {}},
      {four, {"a 1", "b 2", "a 1", "b 2"}, {shared + "(a: node0, node2): there is no network between them"}},
      {two,
       {"a 1", "b 2", "a 1", "b 2"},
       {split + "(node0: a, b)", shared + "(a: node0, node1): there is no network between them"}},
  };
  for (const Case& c : cases) CHECK(placement_notes(c.nodes, c.machines) == c.notes);
}

namespace {

constexpr const char* kTwoNodes = R"([model]
preset = "mlp"
[training]
global_batch = 64
micro_batch = 16
precision = "fp32"
[cluster]
nodes = 2
[cluster.node]
device = "cpu-core"
devices = 2
interconnect = "pcie"
pcie_gb_per_s = 10
nics = 1
nic_gbps = 1
[cluster.fabric]
kind = "switch"
[strategy]
data = 4
[run]
steps = 5
)";

// Two machines connected by a cable: m0 with 10.99.0.1 and m1 with 10.99.0.2. Their processes are children of
// sleepers, which end with this object and take the network with them.
class TwoMachines {
public:
  explicit TwoMachines(const Scratch& scratch) : scratch_(scratch) {
    scratch.write("hosts", "127.0.0.1 localhost\n10.99.0.1 m0\n10.99.0.2 m1\n");
    for (int i = 0; i < 2; ++i) start(i);
    shell("ip link add eth0 netns " + pid(0) + " type veth peer name eth0 netns " + pid(1));
    for (int i = 0; i < 2; ++i) {
      const std::string n = std::to_string(i);
      shell(on(i) + "'hostname m" + n + " && mount --make-rprivate / && mount --bind " +
            scratch.path("hosts") + " /etc/hosts && mount -t tmpfs none /dev/shm && ip link set lo up && " +
            "ip addr add 10.99.0." + std::to_string(i + 1) + "/24 dev eth0 && ip link set eth0 up'");
    }
    // The agent with which mpirun starts ranks on other machines.
    const std::string agent =
        scratch.write("agent", "#!/bin/sh\nhost=$1\nshift\nexec nsenter -t $(cat " + scratch.path("pid") +
                                   "${host#m}) -n -u -m -i -T -- sh -c \"$*\"\n");
    std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
    agent_ = agent;
  }
  ~TwoMachines() {
    for (const pid_t sleeper : sleepers_) {
      kill(sleeper, SIGKILL);
      waitpid(sleeper, nullptr, 0);
    }
  }
  const std::string& agent() const { return agent_; }
  // Returns a command prefix for a machine; append a quoted command for its shell.
  std::string on(int machine) const { return "nsenter -t " + pid(machine) + " -n -u -m -i -T -- sh -c "; }

  // Returns what this system lacks for the test; empty if nothing is missing.
  static std::string missing() {
    if (geteuid() != 0) return "no root";
    const char* all =
        "unshare --net --uts --mount --ipc --time --monotonic 1000 --fork --kill-child sh -c 'hostname m && "
        "mount --make-rprivate / && mount -t tmpfs none /dev/shm && ip link add v0 type veth peer name v1' "
        ">/dev/null 2>&1 && nsenter --version >/dev/null 2>&1";
    if (std::system(all) != 0) return "no unshare with namespaces of time, no nsenter, no ip or no veth";
    return "";
  }

private:
  void start(int machine) {
    const std::string file = scratch_.path("pid" + std::to_string(machine));
    const std::string offset = std::to_string(1000 * (machine + 1));
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no process");
    if (child == 0) {
      execlp("unshare", "unshare", "--net", "--uts", "--mount", "--ipc", "--time", "--monotonic",
             offset.c_str(), "--fork", "--kill-child", "sh", "-c",
             ("echo $$ > " + file + ".part && mv " + file + ".part " + file + " && exec sleep 300").c_str(),
             nullptr);
      _exit(127);
    }
    sleepers_.push_back(child);
    for (int i = 0; i < 500 && !std::filesystem::exists(file); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::string pid(int machine) const {
    const std::string text = read_file(scratch_.path("pid" + std::to_string(machine)));
    return text.substr(0, text.find('\n'));
  }
  static void shell(const std::string& command) {
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }

  const Scratch& scratch_;
  std::vector<pid_t> sleepers_;
  std::string agent_;
};

const std::string kProgram = std::string(REHEARSE_BIN_DIR) + "/rehearse-run ";

struct Ran {
  int status = 0;
  std::string out, err;
};
Ran run_shell(const std::string& command, const Scratch& scratch) {
  const std::string out = scratch.path("shell.out"), err = scratch.path("shell.err");
  const int status = std::system(("{ " + command + "; } >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

// All ranks run the same steps at the same time; without clock alignment their spans would be 1000 s apart.
void check_record(const nlohmann::json& result, const std::string& trace) {
  CHECK(result["measured"]["hosts"] == 2);
  bool told = false;
  for (const auto& note : result["measured"]["notes"])
    told = told || note.get<std::string>().starts_with("times of different ranks agree to ");
  CHECK(told);
  const nlohmann::json record = nlohmann::json::parse(read_file(trace));
  std::map<int, double> first_us;
  for (const auto& event : record["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const int rank = event["pid"];
    const double at = event["ts"];
    first_us[rank] = first_us.count(rank) > 0 ? std::min(first_us[rank], at) : at;
    CHECK(at + event["dur"].get<double>() < 100e6);
  }
  CHECK(first_us.size() >= 4);
  for (const auto& [rank, at] : first_us) CHECK(at < 2e6);
}

}  // namespace

TEST_CASE("mpirun starts ranks on two machines, and the record has one clock", "[alone][release]") {
  if (!have_mpirun()) SKIP("no mpirun, or built without MPI");
  if (const std::string missing = TwoMachines::missing(); !missing.empty()) SKIP(missing);
  const Scratch scratch;
  const TwoMachines machines(scratch);
  const std::string mpirun =
      "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --mca "
      "mpi_yield_when_idle 1 --mca plm_rsh_agent " +
      machines.agent();
  const std::string scenario = scratch.write("two.toml", kTwoNodes), trace = scratch.path("two.json");
  const std::string arguments =
      " " + kProgram + "run --check-replicas --format json --trace " + trace + " " + scenario + "'";
  Ran ran = run_shell(machines.on(0) + "'" + mpirun + " -np 4 --host m0:2,m1:2" + arguments, scratch);
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  nlohmann::json result = nlohmann::json::parse(ran.out);
  check_record(result, trace);
  CHECK(result["measured"]["gradients_identical"] == true);
  for (const auto& note : result["measured"]["notes"])
    CHECK(note.get<std::string>().find("of the scenario") == std::string::npos);

  ran =
      run_shell(machines.on(0) + "'" + mpirun + " -np 4 --map-by node --host m0:2,m1:2" + arguments, scratch);
  REQUIRE(ran.status == 0);
  CHECK(ran.out.find("ranks of one node of the scenario ran on several machines (node0: m0, m1)") !=
        std::string::npos);

  // With fewer ranks than the scenario needs, error lines of different ranks are not interleaved.
  ran = run_shell(machines.on(0) + "'" + mpirun + " -np 3 --host m0:2,m1:2" + arguments, scratch);
  CHECK(ran.status != 0);
  CAPTURE(ran.err);
  CHECK(ran.err.find(": two needs 4 ranks; 3 were started\n") != std::string::npos);

  // Calibration distinguishes links between machines from links within them.
  ran = run_shell(machines.on(0) + "'" + mpirun + " -np 4 --host m0:2,m1:2 " + kProgram +
                      "calibrate --only-links --seconds 2 --name two --out " + scratch.path("") + "'",
                  scratch);
  CAPTURE(ran.out, ran.err);
  REQUIRE(ran.status == 0);
  const LinkProfile links = read_link_profile_file(scratch.path("two-links.toml"));
  CHECK(links.title.find(", 4 ranks on 2 machines") != std::string::npos);
  CHECK(links.curves.size() == 2 + 3 * 6);
  CHECK(links.messages(Reach::in_node) != nullptr);
  CHECK(links.messages(Reach::between_nodes) != nullptr);
  CHECK(links.collective(CollectiveKind::broadcast, Reach::in_node, 2)->ranks == 2);
  CHECK(links.collective(CollectiveKind::broadcast, Reach::between_nodes, 2)->ranks == 2);
  CHECK(links.collective(CollectiveKind::reduce, Reach::between_nodes, 4)->ranks == 4);
}

TEST_CASE("Ranks on two machines join by TCP, also where rank 0 is known by its loopback", "[alone]") {
  if (const std::string missing = TwoMachines::missing(); !missing.empty()) SKIP(missing);
  const Scratch scratch;
  const TwoMachines machines(scratch);
  const std::string scenario = scratch.write("two.toml", kTwoNodes), trace = scratch.path("two.json");
  struct Case {
    std::string what, variables[4];  // by rank; ranks 0 and 2 are on m0, 1 and 3 on m1
  };
  // Debian's /etc/hosts maps a machine's own name to 127.0.1.1.
  const std::string slurm =
      "SLURM_STEP_NUM_TASKS=4 SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_STEP_NODELIST='\\''m[0-1]'\\'' ";
  const Case cases[] = {
      {"torchrun's",
       {"RANK=0 MASTER_ADDR=127.0.1.1", "RANK=1 MASTER_ADDR=m0", "RANK=2 MASTER_ADDR=127.0.1.1",
        "RANK=3 MASTER_ADDR=m0"}},
      {"Slurm's",
       {slurm + "SLURM_PROCID=0", slurm + "SLURM_PROCID=1", slurm + "SLURM_PROCID=2",
        slurm + "SLURM_PROCID=3"}},
  };
  for (const Case& c : cases)
    for (const int ranks : {4, 3}) {
      CAPTURE(c.what, ranks);
      std::string command;
      for (int rank = ranks - 1; rank >= 0; --rank)
        command += machines.on(rank % 2) + "'" + (c.what == "Slurm's" ? "" : "WORLD_SIZE=4 ") +
                   c.variables[rank] + " " + kProgram + "run --patience " + (ranks == 4 ? "20" : "2") + " " +
                   (rank == 0 ? "--format json --trace " + trace + " " : "") + scenario + "' " +
                   (rank > 0 ? "2>/dev/null & " : "; status=$?; wait; exit $status");
      const Ran ran = run_shell(command, scratch);
      CAPTURE(ran.err);
      if (ranks == 4) {
        REQUIRE(ran.status == 0);
        check_record(nlohmann::json::parse(ran.out), trace);
      } else {
        CHECK(ran.status == 1);
        CHECK(ran.err == "rehearse-run: waited 2 s for rank 3 of 4 to come\n");
      }
    }
}
