// Checks which kernels compute attention if training.attention is not given, and the reason that is reported.
// Kernels of a framework are those of simulator/frameworks/presets; those of a device are in
// topologies/presets/devices.
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/contains_text.hpp"

using namespace rehearse;

namespace {

using Kernels = AttentionKernels;
using Reason = AttentionReason;

Scenario scenario_of(const char* cluster, const std::string& model, const std::string& training) {
  return read_scenario_text(std::string("[model") + model + "\n[cluster]\npreset = \"" + cluster +
                                "\"\n[training]\nglobal_batch = 4608\n" + training,
                            "mine.toml");
}

const std::string kLlama = "]\npreset = \"llama3-8b\"";
// Returns a model of one layer with two heads of `elements` elements each.
std::string heads_of(int elements) {
  return ".transformer]\nlayers = 1\nheads = 2\nvocabulary = 64\nsequence_length = 64\nhidden = " +
         std::to_string(2 * elements);
}
std::string precision(const char* name) {
  return std::string("precision = \"") + name + "\"\n";
}
std::string framework(const char* name) {
  return std::string("framework = \"") + name + "\"\n";
}

}  // namespace

TEST_CASE("attention's kernels follow from device, precision, heads and framework") {
  struct Case {
    const char* cluster;
    std::string model, training;
    Kernels kernels;
    Reason reason;
  };
  for (const Case& c : {
           // Without a framework, the newest kernels of the device are chosen.
           Case{"dgx-a100", kLlama, "", Kernels::flash_2, Reason::newest},
           Case{"dgx-h100", kLlama, "", Kernels::flash_3, Reason::newest},
           Case{"gb200-nvl72", kLlama, "", Kernels::flash_3, Reason::newest},
           // By precision: fp8 and narrower formats compute attention in bf16.
           Case{"dgx-a100", kLlama, precision("fp16"), Kernels::flash_2, Reason::newest},
           Case{"dgx-h100", kLlama, precision("fp8"), Kernels::flash_3, Reason::newest},
           Case{"gb200-nvl72", kLlama, precision("nvfp4"), Kernels::flash_3, Reason::newest},
           Case{"dgx-a100", kLlama, precision("tf32"), Kernels::unfused, Reason::precision},
           Case{"dgx-h100", kLlama, precision("fp32"), Kernels::unfused, Reason::precision},
           // These devices have no fused kernels.
           Case{"dgx1-v100", kLlama, precision("fp16"), Kernels::unfused, Reason::device},
           Case{"dgx1-v100", kLlama, precision("fp32"), Kernels::unfused, Reason::device},
           Case{"dgx1-v100", kLlama, framework("llm-foundry-2023"), Kernels::unfused, Reason::device},
           Case{"ethernet", kLlama, "", Kernels::unfused, Reason::device},
           Case{"cpu-cluster", kLlama, "", Kernels::unfused, Reason::device},
           // By framework: FlashAttention came out in May 2022, and Megatron-LM added an option for it in
           // December.
           Case{"dgx-h100", kLlama, framework("megatron-2021"), Kernels::unfused, Reason::framework},
           Case{"dgx-h100", kLlama, framework("megatron-2022"), Kernels::unfused, Reason::framework},
           Case{"dgx-a100", kLlama, framework("deepspeed-2021"), Kernels::unfused, Reason::framework},
           Case{"dgx-a100", kLlama, framework("llm-foundry-2023"), Kernels::flash_1, Reason::framework},
           Case{"dgx-h100", kLlama, framework("llm-foundry-2023"), Kernels::flash_1, Reason::framework},
           Case{"dgx-h100", kLlama, framework("torchtitan-2024-04"), Kernels::flash_2, Reason::framework},
           Case{"dgx-h100", kLlama, framework("torchtitan-2024-eager"), Kernels::flash_2, Reason::framework},
           Case{"dgx-h100", kLlama, framework("torchtitan-2024"), Kernels::flash_2, Reason::framework},
           Case{"dgx-h100", kLlama, framework("torchtitan-2025-rowwise"), Kernels::flash_2,
                Reason::framework},
           Case{"dgx-h100", kLlama, framework("megatron-bridge-2025"), Kernels::flash_3, Reason::framework},
           // A device without the kernels that the framework ran uses the nearest older ones or, failing
           // that, newer ones.
           Case{"dgx-a100", kLlama, framework("megatron-bridge-2025"), Kernels::flash_2, Reason::nearest},
           Case{"gb200-nvl72", kLlama, framework("torchtitan-2024"), Kernels::flash_3, Reason::nearest},
           // A user's own framework names its kernels, or has the newest.
           Case{"dgx-h100", kLlama, "[framework]\ntitle = \"own\"", Kernels::flash_3, Reason::newest},
           Case{"dgx-h100", kLlama, "[framework]\nattention = \"flash-1\"", Kernels::flash_1,
                Reason::framework},
           Case{"dgx-h100", kLlama, "[framework]\nattention = \"unfused\"", Kernels::unfused,
                Reason::framework},
           // The first generation supports heads of up to 128 elements, later ones up to 256.
           Case{"dgx-h100", heads_of(256), "", Kernels::flash_3, Reason::newest},
           Case{"dgx-h100", heads_of(264), "", Kernels::unfused, Reason::heads},
           Case{"dgx-a100", heads_of(128), framework("llm-foundry-2023"), Kernels::flash_1,
                Reason::framework},
           Case{"dgx-a100", heads_of(136), framework("llm-foundry-2023"), Kernels::unfused, Reason::heads},
           Case{"dgx-h100", "]\npreset = \"deepseek-v3\"", "", Kernels::flash_3, Reason::newest},
           // The key takes precedence.
           Case{"dgx-h100", kLlama, "attention = \"unfused\"", Kernels::unfused, Reason::given},
           Case{"dgx-h100", kLlama, "attention = \"flash-1\"", Kernels::flash_1, Reason::given},
           Case{"dgx-h100", kLlama, framework("megatron-2021") + "attention = \"flash-2\"", Kernels::flash_2,
                Reason::given},
           Case{"dgx-h100", heads_of(264), "attention = \"flash-2\"", Kernels::flash_2, Reason::given},
           // Models without attention.
           Case{"dgx-h100", "]\npreset = \"resnet50\"", "", Kernels::unfused, Reason::given},
           Case{"dgx-h100", "]\npreset = \"mlp\"", framework("llm-foundry-2023"), Kernels::unfused,
                Reason::given},
       }) {
    CAPTURE(c.cluster, c.model, c.training);
    const Scenario s = scenario_of(c.cluster, c.model, c.training);
    CHECK(s.training.attention == c.kernels);
    CHECK(s.training.attention_reason == c.reason);
  }
}

TEST_CASE("one sentence says which kernels attention has, and why") {
  struct Case {
    const char* cluster;
    std::string model, training;
    const char* note;
  };
  for (
      const Case& c : {
          Case{"dgx-h100", kLlama, "",
               "Attention is fused (flash-3, the newest kernels that h100 has; training.attention selects "
               "others): scores are neither stored nor moved."},
          Case{"dgx-h100", kLlama, framework("llm-foundry-2023"),
               "Attention is fused (flash-1, as in LLM Foundry, 2023; training.attention selects others): "
               "scores are neither stored nor moved."},
          Case{
              "dgx-a100", kLlama, framework("megatron-bridge-2025"),
              "Attention is fused (flash-2, the closest of the kernels of a100-80 to flash-3, as in Megatron "
              "Bridge, 2025; training.attention selects others): scores are neither stored nor moved."},
          Case{
              "dgx-a100", kLlama, "recompute = \"selective\"",
              "Attention is fused (flash-2, the newest kernels that a100-80 has; training.attention selects "
              "others): scores are neither stored nor moved, and selective recomputation has nothing to do."},
          Case{"dgx-h100", kLlama, "attention = \"flash-2\"",
               "Attention is fused (flash-2): scores are neither stored nor moved."},
          Case{"dgx-a100", kLlama, framework("megatron-2022"),
               "Attention is unfused, as in Megatron-LM, 2022: its scores pass through memory; "
               "training.attention = \"flash-2\" fuses it."},
          Case{"dgx-a100", kLlama, precision("tf32"),
               "Attention is unfused because no fused kernels compute in tf32: its scores pass through "
               "memory."},
          Case{"dgx-a100", heads_of(320), "",
               "Attention is unfused because heads of 320 elements are too wide for the fused kernels that "
               "a100-80 has: its scores pass through memory."},
          Case{"dgx-a100", heads_of(136), framework("llm-foundry-2023"),
               "Attention is unfused because heads of 136 elements are too wide for flash-1 of LLM Foundry, "
               "2023: its scores pass through memory."},
          Case{"dgx-a100", kLlama, "attention = \"unfused\"", ""},
          Case{"dgx1-v100", kLlama, "", ""},
          Case{"dgx-a100", "]\npreset = \"resnet50\"", "", ""},
      }) {
    CAPTURE(c.cluster, c.model, c.training);
    CHECK(attention_note(scenario_of(c.cluster, c.model, c.training)) == c.note);
  }
}

TEST_CASE("selective recomputation of some layers needs unfused attention") {
  const std::string some = "recompute = \"selective\"\nrecompute_layers = 1\n";
  CHECK(scenario_of("dgx-a100", kLlama, some + "attention = \"unfused\"").training.recompute_layers == 1);
  const Scenario fused = scenario_of("dgx-a100", kLlama, some);
  CHECK(fused.ignored == std::vector<std::string>{"training.recompute_layers"});
  REQUIRE(fused.notes.size() == 1);
  CHECK_THAT(fused.notes[0], contains_text("selective") && contains_text("attention = \"unfused\""));
}

TEST_CASE("every named framework says which attention it ran") {
  for (const std::string& name : preset_names("simulator/frameworks")) {
    CAPTURE(name);
    CHECK(scenario_of("dgx-h100", kLlama, framework(name.c_str())).framework.attention.has_value());
  }
}
