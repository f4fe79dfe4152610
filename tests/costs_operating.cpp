// Tests money, energy and carbon of a step and of an entire training against values computed by hand.
#include "simulator/costs/operating_cost.hpp"

#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/trace/run_cost.hpp"
#include "tests/catch.hpp"
#include "tests/topologies_cases.hpp"

using namespace rehearse;

namespace {

Sourced figure(double value) {
  return {value, Basis::published, "a test"};
}

// Returns two nodes of four devices and two NICs on one switch, with power figures.
ClusterParts powered() {
  ClusterParts parts = gpu_nodes(2, 4, 2);
  parts.node.device.power_w = figure(400);
  parts.node.device.idle_power_w = figure(50);
  parts.node.power = {figure(1000), figure(500), figure(20)};
  parts.fabric.port_power = {figure(10), figure(9)};
  return parts;
}

CostTerms terms(double per_device_hour) {
  CostTerms terms;
  terms.per_device_hour = figure(per_device_hour);
  terms.pue = figure(1.5);
  terms.carbon_g_per_kwh = figure(400);
  return terms;
}

// The expected power draw of nodes as in powered(): counts of used and of all devices, of hosts, NICs and
// ports.
struct Parts {
  double used, all, hosts, nics, ports;
  double computing_w() const { return 1.5 * (used * 400 + (all - used) * 50 + rest_w()); }
  double waiting_w() const { return 1.5 * (all * 50 + rest_w()); }
  double idle_w() const { return 1.5 * (all * 50 + hosts * 500 + nics * 20 + ports * 9); }
  double rest_w() const { return hosts * 1000 + nics * 20 + ports * 10; }
};

}  // namespace

TEST_CASE("rates: the whole of what is rented is paid for and draws power") {
  struct Case {
    const char* what;
    ClusterParts parts;
    std::int64_t devices;
    Parts counted;
  };
  ClusterParts half = powered();  // uses two of the four devices and one of the two NICs
  half.node.devices = 2;
  half.node.nics = 1;
  half.node.whole_devices = 4;
  half.node.whole_nics = 2;
  ClusterParts servers = powered();
  servers.server_nodes = 3;
  ClusterParts alone = powered();
  alone.nodes = 1;
  ClusterParts leaves = powered();  // two leaves of one node, two spines: four cables, eight ports
  leaves.fabric.kind = Fabric::Kind::leaf_spine;
  leaves.fabric.nodes_per_leaf = 1;
  leaves.fabric.spines = 2;
  ClusterParts ring = powered();
  ring.fabric.kind = Fabric::Kind::ring;
  for (const Case& c :
       {Case{"one switch", powered(), 8, {8, 8, 2, 4, 4}}, Case{"parts of nodes", half, 8, {4, 8, 2, 4, 2}},
        Case{"server nodes", servers, 8, {8, 8, 5, 10, 10}},
        Case{"one node needs no switch", alone, 4, {4, 4, 1, 2, 0}},
        Case{"leaves and spines", leaves, 8, {8, 8, 2, 4, 4 + 8}},
        Case{"a ring of nodes has no switch", ring, 8, {8, 8, 2, 4, 0}}}) {
    CAPTURE(c.what);
    CostTerms paid = terms(2);
    paid.per_server_hour = figure(5);
    const OperatingRates rates = operating_rates(*make_cluster(c.parts), paid);
    CHECK(rates.devices == c.devices);
    REQUIRE(rates.money_per_s);
    CHECK(*rates.money_per_s ==
          Approx((2 * static_cast<double>(c.devices) + 5.0 * c.parts.server_nodes) / 3600));
    REQUIRE(rates.power);
    CHECK(rates.power->computing_w == Approx(c.counted.computing_w()));
    CHECK(rates.power->waiting_w == Approx(c.counted.waiting_w()));
    CHECK(rates.power->idle_w == Approx(c.counted.idle_w()));
  }
}

TEST_CASE("what is missing for a cost is named by its key") {
  struct Case {
    const char *price, *power;
    void (*change)(ClusterParts&, CostTerms&);
  };
  for (const Case& c : {
           Case{"", "", [](ClusterParts&, CostTerms&) {}},
           Case{"cost.price_per_device_hour", "",
                [](ClusterParts&, CostTerms&t) { t.per_device_hour.reset(); }},
           Case{"cost.price_per_server_hour", "", [](ClusterParts&p, CostTerms&) { p.server_nodes = 1; }},
           Case{"", "cluster.node.device.power_w",
                [](ClusterParts&p, CostTerms&) { p.node.device.power_w.value = 0; }},
           Case{"", "cluster.node.host_power_w",
                [](ClusterParts&p, CostTerms&) { p.node.power.host.value = 0; }},
           Case{"", "cluster.node.nic_power_w",
                [](ClusterParts&p, CostTerms&) { p.node.power.nic.value = 0; }},
           Case{"", "cluster.fabric.port_power_w",
                [](ClusterParts&p, CostTerms&) { p.fabric.port_power.use.value = 0; }},
           Case{"", "",  // without a switch, its port power is not needed
                [](ClusterParts&p, CostTerms&) {
                  p.fabric.port_power.use.value = 0;
                  p.nodes = 1;
                }},
       }) {
    ClusterParts parts = powered();
    CostTerms paid = terms(2);
    c.change(parts, paid);
    const OperatingRates rates = operating_rates(*make_cluster(parts), paid);
    CAPTURE(c.price, c.power);
    CHECK(rates.missing_price == c.price);
    CHECK(rates.missing_power == c.power);
    CHECK(rates.money_per_s.has_value() == rates.missing_price.empty());
    CHECK(rates.power.has_value() == rates.missing_power.empty());
    const StepCost step = step_cost(rates, 10, 0.5);
    CHECK(step.money.has_value() == rates.missing_price.empty());
    CHECK(step.energy_wh.has_value() == rates.missing_power.empty());
    CHECK(step.carbon_g.has_value() == rates.missing_power.empty());
  }
}

TEST_CASE("a step and a training cost what their seconds and watts say") {
  OperatingRates rates;
  rates.money_per_s = 0.5;
  rates.power = PowerDraw{7200, 3600, 1800};
  rates.carbon_g_per_kwh = 400;
  rates.devices = 16;
  const StepCost step = step_cost(rates, 10, 0.75);  // 10 s at 3,600 + 0.75 x 3,600 W: 17.5 Wh
  CHECK(*step.money == Approx(5));
  CHECK(*step.energy_wh == Approx(17.5));
  CHECK(*step.carbon_g == Approx(7));
  // 1,001 samples at 100 per step: 11 steps.
  const TrainingCost training = training_cost(rates, step, 10, 100, 1001);
  CHECK(training.steps == 11);
  CHECK(training.seconds == Approx(110));
  CHECK(training.device_hours == Approx(16 * 110.0 / 3600));
  CHECK(*training.money == Approx(55));
  CHECK(*training.energy_kwh == Approx(0.1925));
  CHECK(*training.carbon_kg == Approx(0.077));

  SECTION("energy that is paid beside the devices") {
    rates.energy_price_per_kwh = 0.2;
    CHECK(*step_cost(rates, 10, 0.75).money == Approx(5 + 0.2 * 0.0175));
    rates.power.reset();  // then the cost in money is unknown, too
    CHECK_FALSE(step_cost(rates, 10, 0.75).money);
  }
  SECTION("lower bounds give lower bounds") {
    for (const double share : {0.0, 0.5, 1.0, 1.5}) {  // a share above 1 counts as 1
      const StepCost less = step_cost(rates, 9, share - 0.1), more = step_cost(rates, 9, share);
      CHECK(*less.energy_wh <= *more.energy_wh);
      CHECK(*more.energy_wh <= *step_cost(rates, 10, share).energy_wh);
      CHECK(*more.money < *step_cost(rates, 10, share).money);
    }
    CHECK(*step_cost(rates, 10, 1.5).energy_wh == Approx(20));
  }
}

TEST_CASE("a scenario's step costs by its cluster, its prices and the share of it that is computed") {
  const Scenario scenario = read_scenario_text(R"(
[model]
preset = "gpt3-175b"
[training]
global_batch = 2048
tokens = 300e9
[cluster]
preset = "dgx-a100"
nodes = 128
[cost]
price_per_device_hour = 2
pue = 1.1
carbon_g_per_kwh = 100
)",
                                               "job.toml");
  Metrics metrics;
  metrics.step_time_s = 20;
  metrics.breakdown.compute_s = 15;
  const RunCost cost = run_cost(scenario, metrics);
  CHECK(*cost.step.money == Approx(20 * 1024 * 2 / 3600.0));
  REQUIRE(cost.rates.power);
  const PowerDraw& draw = *cost.rates.power;
  CHECK(draw.computing_w - draw.waiting_w == Approx(1.1 * 1024 * (400 - 60)));  // the A100's power
  CHECK(*cost.step.energy_wh == Approx(20 * (0.25 * draw.waiting_w + 0.75 * draw.computing_w) / 3600));
  CHECK(*cost.step.carbon_g == Approx(*cost.step.energy_wh / 10));
  REQUIRE(cost.training);
  CHECK(cost.training->steps == 71526);  // 300e9 / (2,048 x 2,048) is 71,525.6
  CHECK(cost.training->device_hours == Approx(71526 * 20 * 1024 / 3600.0));
}
