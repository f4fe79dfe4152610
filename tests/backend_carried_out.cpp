// Tests that real ranks refuse what they do not carry out: a schedule with an op, an action or a field that
// is unknown to them must not train something else without a word.
#include <algorithm>

#include "backend/runtime/rank_executor.hpp"
#include "backend/training/training_workload.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Scenario trained_scenario(const std::string& gradients) {
  return read_scenario_text(kDeepPerceptron, "deep.toml",
                            {"cluster.nodes=4", "strategy.gradients=\"" + gradients + "\""});
}

Op& first(Program& program, const auto& is_so) {
  const auto found = std::find_if(program.ops.begin(), program.ops.end(), is_so);
  REQUIRE(found != program.ops.end());
  return *found;
}
Op& first(Program& program, OpKind kind) {
  return first(program, [&](const Op& op) { return op.kind == kind; });
}
Op& first(Program& program, Action::Kind action) {
  return first(program, [&](const Op& op) { return op.action.kind == action; });
}

// Takes no part in a run: a refused schedule reaches no hardware.
class NoHardware : public Hardware {
public:
  Moment mark(int) override { return {}; }
  void wait_for(int, const Moment&) override {}
  void settle(int) override {}
  double seconds(const Moment&) override { return 0; }
  void prepare(const OpCall&) override { ran = true; }
  void compute(const OpCall&) override { ran = true; }
  void host(const OpCall&) override { ran = true; }
  Exchanged exchange(const OpCall&, int, const std::function<void()>&) override {
    ran = true;
    return {};
  }
  void collective(const OpCall&) override { ran = true; }
  void end_messages() override {}
  void abort(const std::string&) override {}
  bool ran = false;
};

constexpr int kUnknown = 99;

}  // namespace

TEST_CASE("Real ranks train no schedule with an action that they do not carry out, and name the op") {
  struct Case {
    const char* name;
    const char* gradients;
    void (*change)(Program& program);
    const char* told;
  };
  const Case cases[] = {
      {"an unknown action", "all-reduce",
       [](Program& p) { first(p, Action::Kind::update).action.kind = static_cast<Action::Kind>(kUnknown); },
       "real ranks do not carry out \"optimizer\", an action of kind compute"},
      {"an unknown kind of op with an action", "all-reduce",
       [](Program& p) { first(p, Action::Kind::update).kind = static_cast<OpKind>(kUnknown); },
       "real ranks do not carry out \"optimizer\", an action of kind unknown"},
      {"an unknown action of the host", "all-reduce",
       [](Program& p) {
         Op& op = first(p, Action::Kind::update);
         op.kind = OpKind::host;
         op.action = {};
         op.host_action = static_cast<HostAction>(kUnknown);
       },
       "real ranks do not carry out \"optimizer\", unknown of kind host"},
      {"an unknown reduction", "all-reduce",
       [](Program& p) {
         first(p, OpKind::collective).collective.reduction = static_cast<Collective::Reduction>(kUnknown);
       },
       "real ranks do not carry out \"all-reduce bucket 0\""},
      {"a mean of gradients, which would average weights", "all-reduce",
       [](Program& p) { first(p, OpKind::collective).collective.reduction = Collective::Reduction::mean; },
       "real ranks do not carry out \"all-reduce bucket 0\""},
      {"a swap of one tensor", "delayed-all-reduce",
       [](Program& p) { first(p, Action::Kind::swap).writes.pop_back(); },
       "real ranks do not carry out \"swap gradients of bucket 0\""},
      {"an update with the gradients that another buffer holds", "delayed-all-reduce",
       [](Program& p) {
         first(p, Action::Kind::update).reads = {first(p, Action::Kind::swap).writes.back()};
       },
       "\"optimizer\" reads gradients that no pass computes"},
      {"an update with a buffer that nothing fills", "all-reduce",
       [](Program& p) {
         Op& update = first(p, Action::Kind::update);
         p.tensors.push_back(p.tensors[static_cast<std::size_t>(update.reads.front())]);
         update.reads = {static_cast<int>(p.tensors.size()) - 1};
       },
       "\"optimizer\" reads gradients that no pass computes"},
      {"a sum of gradients that no pass computes", "all-reduce",
       [](Program& p) {
         Op& sum = first(p, OpKind::collective);
         p.tensors.push_back(p.tensors[static_cast<std::size_t>(sum.reads.front())]);
         sum.reads = sum.writes = {static_cast<int>(p.tensors.size()) - 1};
       },
       "\"all-reduce bucket 0\" reads gradients that no pass computes"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Scenario scenario = trained_scenario(c.gradients);
    Schedule schedule = *write_schedule(scenario).schedule;
    REQUIRE(why_not_trained(scenario, schedule, true).empty());
    c.change(schedule.programs.front());
    const std::string why = why_not_trained(scenario, schedule, true);
    CAPTURE(why);
    CHECK(why.find(c.told) != std::string::npos);
  }
}

TEST_CASE("A rank runs no program with an op that it does not know, whether it trains or not") {
  struct Case {
    void (*change)(Op& op);
    const char* told;
  };
  const Case cases[] = {
      {[](Op& op) { op.kind = static_cast<OpKind>(kUnknown); }, "is of an unknown kind"},
      {[](Op& op) {
         op.kind = OpKind::collective;
         op.collective.kind = static_cast<CollectiveKind>(kUnknown);
       },
       "is an unknown collective"},
      {[](Op& op) {
         op.kind = OpKind::host;
         op.host_action = static_cast<HostAction>(kUnknown);
       },
       "has an unknown action of the host"},
      {[](Op& op) {
         op.kind = OpKind::host;
         op.arithmetic = [](const OpMoment&) {};
       },
       "computes in simulated time"},
      {[](Op& op) {
         op.kind = OpKind::signal;
         op.signalled = {Peer::each(0)};
       },
       "signals other ranks"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.told);
    Schedule schedule;
    schedule.roles = {{"worker", {Mesh({{"data", 1}})}}};
    Program program;
    program.streams = {"compute"};
    program.ops.emplace_back().name = "something";
    c.change(program.ops.front());
    schedule.programs = {program};
    NoHardware hardware;
    std::string told;
    try {
      execute_rank(schedule, 0, 0, 1, hardware, {});
    } catch (const RunError& error) {
      told = error.what();
    }
    CAPTURE(told);
    CHECK(told.find(std::string("op \"something\" ") + c.told + ", which real ranks do not support") !=
          std::string::npos);
    CHECK_FALSE(hardware.ran);
  }
}

TEST_CASE("replicas that train different numbers of samples are timed, but learn nothing") {
  const auto why = [](const std::string& batch_by) {
    const Scenario scenario = read_scenario_text(kDeepPerceptron, "deep.toml",
                                                 {"cluster.nodes=4", "strategy.batch_by=" + batch_by});
    return why_not_trained(scenario, *write_schedule(scenario).schedule, true);
  };
  CHECK(why("equal").empty());
  CHECK(why("speed").find("strategy.batch_by") != std::string::npos);
}
