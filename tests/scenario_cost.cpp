// Checks [cost], and the length of a training run in tokens, samples or epochs.
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"
#include "topologies/prices.hpp"

using namespace rehearse;

namespace {

Scenario priced_scenario(const std::string& model, const std::string& training, const std::string& rest = "",
                         const std::vector<std::string>& overrides = {}) {
  return read_scenario_text("[model]\npreset = \"" + model + "\"\n[training]\nglobal_batch = 64\n" +
                                training + "[cluster]\npreset = \"dgx-h100\"\nnodes = 2\n" + rest,
                            "lab/job.toml", overrides);
}

std::string cost_refusal(const std::string& rest, const std::vector<std::string>& overrides = {}) {
  try {
    priced_scenario("llama3-8b", "", rest, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a training's length is told in tokens, samples or epochs") {
  struct Case {
    const char *model, *training;
    double samples;
  };
  for (const Case& c : {
           Case{"llama3-8b", "", 0},
           Case{"llama3-8b", "sequence_length = 8192\ntokens = 15e12\n", 15e12 / 8192},
           Case{"llama3-8b", "sequence_length = 4096\ntokens = 8192\n", 2},
           Case{"llama3-8b", "samples = 1_000_000\n", 1e6},
           Case{"resnet50", "epochs = 90\ndataset_samples = 1_281_167\n", 90 * 1281167.0},
           Case{"resnet50", "epochs = 0.5\ndataset_samples = 100\n", 50},
       }) {
    CAPTURE(c.training);
    CHECK(priced_scenario(c.model, c.training).training.target_samples == Approx(c.samples));
  }
}

TEST_CASE("prices come from the shipped list, from another one, or from the scenario") {
  const PriceList shipped = shipped_prices();
  const Scenario plain = priced_scenario("llama3-8b", "");
  CHECK(plain.cost.currency == "USD");
  REQUIRE(plain.cost.per_device_hour);
  CHECK(plain.cost.per_device_hour->value == find_price(shipped, "h100", "dgx-h100")->per_device_hour.value);
  CHECK(plain.cost.pue.value == shipped.pue->value);
  CHECK(plain.cost.carbon_g_per_kwh.value == shipped.carbon_g_per_kwh->value);
  CHECK(plain.cost.energy_price_per_kwh.value == 0);

  const Scenario set =
      priced_scenario("llama3-8b", "", "",
                      {"cost.price_per_device_hour=2.1", "cost.price_per_server_hour=0.5", "cost.pue=1.1",
                       "cost.carbon_g_per_kwh=0", "cost.energy_price_per_kwh=0.08", "cost.currency=EUR"});
  CHECK(set.cost.currency == "EUR");
  CHECK(set.cost.per_device_hour->value == 2.1);
  CHECK(set.cost.per_device_hour->basis == Basis::measured);
  CHECK(set.cost.per_device_hour->source == "set by the scenario");
  CHECK(set.cost.per_server_hour->value == 0.5);
  CHECK(set.cost.pue.value == 1.1);
  CHECK(set.cost.pue.basis == Basis::guess);
  CHECK(set.cost.carbon_g_per_kwh.value == 0);
  CHECK(set.cost.carbon_g_per_kwh.source == "set by the scenario");
  CHECK(set.cost.energy_price_per_kwh.value == 0.08);
  // Shipped prices in another currency are ignored.
  CHECK_FALSE(priced_scenario("llama3-8b", "", "[cost]\ncurrency = \"EUR\"\nprice_per_device_hour = 2\n")
                  .cost.per_server_hour);
  // The device has no price in this list, so the step's cost is unknown.
  CHECK_FALSE(priced_scenario("llama3-8b", "", "[cost.prices]\ncurrency = \"CHF\"\n").cost.per_device_hour);
  CHECK(cost_refusal("[cost]\n", {"cost.price_per_device=2"}) ==
        "--set cost.price_per_device=2: unknown key \"price_per_device\" in [cost]; did you mean "
        "\"price_per_device_hour\"?");
}

TEST_CASE("a list of the user's is read beside the scenario, and the scenario's text keeps it") {
  const test::Scratch scratch;
  scratch.write(
      "prices.toml",
      "currency = \"CHF\"\ncarbon_g_per_kwh = {value = 30, basis = \"published\", source = \"a dam\"}\n"
      "[[price]]\ndevice = \"h100\"\nper_device_hour = 1.5\nbasis = \"measured\"\nsource = \"a bill\"\n"
      "date = \"2025\"\n");
  scratch.write(
      "job.toml",
      "[model]\npreset = \"llama3-8b\"\n[training]\nglobal_batch = 64\ntokens = 1e9\n[cluster]\npreset "
      "= \"dgx-h100\"\nnodes = 2\n[cost]\nprices = \"prices.toml\"\npue = 1.2\n");
  const Scenario first = read_scenario_file(scratch.path("job.toml"));
  const Scenario again = read_scenario_text(first.text, "elsewhere/job.toml");
  CHECK(again.text == first.text);
  for (const Scenario* s : {&first, &again}) {
    CHECK(s->cost.currency == "CHF");
    CHECK(s->cost.per_device_hour->value == 1.5);
    CHECK(s->cost.per_device_hour->source == "a bill, 2025");
    CHECK(s->cost.carbon_g_per_kwh.value == 30);
    CHECK(s->cost.pue.value == 1.2);
    CHECK_FALSE(s->cost.per_server_hour);
    CHECK(s->training.target_samples == first.training.target_samples);
  }
  // A cluster's file is inlined into the text, under a name that says what the scenario changes.
  scratch.write("lab.toml",
                "[node]\ndevice = \"h100\"\ndevices = 1\nnic_gbps = 100\n[fabric]\nkind = \"switch\"\n");
  scratch.write("lab-prices.toml",
                "[[price]]\ncluster = \"lab\"\nper_device_hour = 7\nbasis = \"measured\"\nsource = \"a "
                "bill\"\ndate = \"2025\"\n");
  scratch.write("lab-job.toml",
                "[model]\npreset = \"llama3-8b\"\n[training]\nglobal_batch = 64\n[cluster]\nfile = "
                "\"lab.toml\"\nnic_gbps = 50\n[cost]\nprices = \"lab-prices.toml\"\n");
  const Scenario lab = read_scenario_file(scratch.path("lab-job.toml"));
  const Scenario lab_again = read_scenario_text(lab.text, "elsewhere/job.toml");
  CHECK(lab_again.text == lab.text);
  CHECK(lab_again.cluster->name == "lab, but for nic_gbps");
  for (const Scenario* s : {&lab, &lab_again}) {
    REQUIRE(s->cost.per_device_hour);
    CHECK(s->cost.per_device_hour->value == 7);
  }
  // Figures that the list leaves out come from the shipped list, except prices.
  const Scenario without = read_scenario_file(scratch.path("job.toml"), {"cluster.node.device=b200"});
  CHECK_FALSE(without.cost.per_device_hour);
}
