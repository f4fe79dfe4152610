// Tests that runs are named by the keys in which their scenarios differ.
#include "gui/models/scenario/scenario_difference.hpp"

#include "tests/catch.hpp"
#include "tests/gui_application.hpp"

using namespace rehearse;
using namespace rehearse::gui;

namespace {

const char* const kText =
    "[model]\npreset = \"resnet50\"\n[training]\nglobal_batch = 2048\nmicro_batch = 64 # samples\n"
    "[cluster]\npreset = \"dgx-a100\"\nnodes = 8\n[strategy]\noverlap = true\nbucket_mb = 25\n";

}  // namespace

TEST_CASE("Scenarios differ in values, told in the words of the form") {
  struct Case {
    const char *from, *to;  // `from` in the text becomes `to`
    QStringList told;
  };
  const std::vector<Case> cases = {
      {"", "", {}},
      {"[model]", "# another comment\n\n[model]  ", {}},
      {"= 2048", "= 2_048", {}},
      {"bucket_mb = 25", "bucket_mb = 25.0", {}},
      {"\"resnet50\"", "'resnet50'", {}},
      {"micro_batch = 64", "micro_batch = 32", {"micro-batch 32"}},
      {"nodes = 8", "nodes = 16\nserver_nodes = 2", {"nodes 16", "server nodes 2"}},
      {"overlap = true", "overlap = false\nzero_stage = 2", {"ZeRO stage 2", "overlap gradients off"}},
      {"micro_batch = 64", "", {"micro-batch default"}},
      {"bucket_mb = 25", "bucket_mb = 100", {"buckets 100 MiB"}},
      {"bucket_mb = 25", "", {"buckets default"}},
      {"overlap = true\n", "overlap = true\nstage_layers = [1,\n  2]\n", {"stage layers [1, 2]"}},
      {"bucket_mb = 25\n", "bucket_mb = 25\nparameter_server = { servers = 3 }\n", {"servers 3"}},
      {"nodes = 8",
       "nodes = 8\ntitle = \"a title that goes on and on and on\"",
       {"title a title that goes on and..."}},
      {"nodes = 8", "nodes = ", {"nodes"}},  // while it is being typed
  };
  for (const Case& c : cases) {
    CAPTURE(c.from, c.to);
    QStringList told = differences(kText, QString(kText).replace(c.from, c.to));
    told.sort();
    QStringList expected = c.told;
    expected.sort();
    CHECK(told == expected);
  }
}

TEST_CASE("A run is named by its difference from what its scenario was made from") {
  test::need_application();
  ScenarioDraft draft(kText, "ring");
  CHECK(named_by_difference(draft) == "ring");
  draft.set_number("training.micro_batch", "32");
  CHECK(named_by_difference(draft) == "ring, micro-batch 32");
  draft.set_number("cluster.nodes", "16");
  CHECK(named_by_difference(draft) == "ring, nodes 16, micro-batch 32");  // ordered as in the form
  draft.set_string("training.precision", "fp16");
  CHECK(named_by_difference(draft) == "ring, 3 changes");
  draft.set_last_run(draft.text());
  draft.set_string("training.optimizer", "sgd");
  CHECK(named_by_difference(draft) == "ring, optimizer sgd and 3 more");
  draft.set_number("cluster.nodes", "8");  // back to the original value
  CHECK(named_by_difference(draft) == "ring, optimizer sgd and 2 more");
  draft.set_origin({"other", draft.text()});
  CHECK(named_by_difference(draft) == "other");
}
