// Recognises what a text is, and calls its reader: a table of kinds, the first that fits wins.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "models/text/toml_table.hpp"
#include "simulator/jobs/job_readers.hpp"

namespace rehearse {
namespace {

// What the recognisers look at.
struct JobText {
  std::string_view text;
  std::string path;
  std::string_view head;  // the first part
  bool json = false, toml = false;
};

constexpr std::size_t kHead = 65'536;
constexpr int kFewOptions = 3;  // as many known options make a script a training job's

// Returns whether a line of the text begins with one of these.
bool has_line(std::string_view text, std::initializer_list<std::string_view> beginnings,
              bool indented = false) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (indented) line.remove_prefix(std::min(line.find_first_not_of(" "), line.size()));
    if (std::any_of(beginnings.begin(), beginnings.end(),
                    [&](std::string_view one) { return line.rfind(one, 0) == 0; }))
      return true;
    at = end + 1;
  }
  return false;
}

bool says(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, std::min(text.find('\n'), text.size()));
}

bool is_shell(const JobText& t) {
  const std::string_view line = first_line(t.text);
  if (line.rfind("#!", 0) == 0) return says(line, "sh");
  return !t.toml && !t.json && (says(t.head, " --") || says(t.head, "\n--") || t.head.rfind("--", 0) == 0);
}

// Kinds that are known but are no job that can be read. Each says what to do.
struct KnownKind {
  bool (*is)(const JobText&);
  std::string_view what, way_out;
};
bool is_safetensors(const JobText& t) {
  return t.text.size() > 9 && t.text[8] == '{' && says(t.text.substr(0, 8), std::string_view("\0", 1));
}
bool is_pickle(const JobText& t) {
  return t.text.size() > 4 && (t.text[0] == '\x80' || t.text.substr(0, 4) == "PK\x03\x04");
}
bool is_binary(const JobText& t) {
  return t.text.substr(0, 4096).find('\0') != std::string_view::npos;
}
bool is_python(const JobText& t) {
  if (t.toml || t.json) return false;
  const std::string_view line = first_line(t.text);
  return (line.rfind("#!", 0) == 0 && says(line, "python")) ||
         has_line(t.head, {"import ", "from __future__ ", "def ", "class "}) ||
         (has_line(t.head, {"from "}) && says(t.head, " import "));
}
bool is_nemo_recipe(const JobText& t) {
  return is_python(t) &&
         (says(t.head, "nemo_run") || says(t.head, "nemo.collections") || says(t.head, "megatron.bridge"));
}
bool is_dockerfile(const JobText& t) {
  return !t.toml && !t.json && has_line(t.head, {"FROM "}) &&
         has_line(t.head, {"RUN ", "COPY ", "CMD ", "ENTRYPOINT ", "ENV ", "WORKDIR "});
}
bool is_nccl_log(const JobText& t) {
  return says(t.head, "# nThread") || (says(t.head, "busbw") && says(t.head, "out-of-place"));
}
bool is_batch_script(const JobText& t) {
  return is_shell(t) && says(t.head, "#SBATCH");
}
bool is_csv(const JobText& t) {
  if (t.toml || t.json || is_shell(t)) return false;
  const std::string_view line = first_line(t.text);
  return t.path.ends_with(".csv") || (std::count(line.begin(), line.end(), ',') >= 2 &&
                                      line.find_first_of("=[{:") == std::string_view::npos);
}
bool is_plain_shell(const JobText& t) {
  return first_line(t.text).rfind("#!", 0) == 0 && is_shell(t);
}

constexpr KnownKind kKnownKinds[] = {
    {is_safetensors, "weights in safetensors",
     "the config.json of the model: --set model.huggingface=config.json on a scenario"},
    {is_pickle, "a checkpoint or pickle of Python",
     "the config.json of the model: --set model.huggingface=config.json on a scenario"},
    {is_binary, "a binary file", "a scenario, or a file that starts a job"},
    {is_nccl_log, "output of nccl-tests", "`rehearse validate FILE --set cluster.preset=NAME`"},
    {is_nemo_recipe, "a recipe of NeMo or Megatron Bridge in Python, which is not executed",
     "a scenario, or the command line of Megatron-LM that it makes"},
    {is_python, "a Python program, which is not executed",
     "the file or command line that starts it, or a scenario"},
    {is_dockerfile, "a Dockerfile", "the file or command line that starts the job, or a scenario"},
    {is_batch_script, "a batch script of Slurm without a training command that can be read",
     "the script that it runs, or a scenario"},
    {is_plain_shell, "a shell script without a training command that can be read",
     "the script or command line that starts the training (Megatron-LM's or Hugging Face's arguments), or a "
     "scenario"},
    {is_csv, "a table in CSV", "`rehearse validate FILE` for measurements, or a scenario"},
};

[[noreturn]] void refuse_kind(const JobText& t, std::string_view what, std::string_view way_out) {
  throw InputError({t.path}, fmt::format("is {}; allowed: {}", what, way_out));
}

bool has_setting(const JobSettings& settings, std::string_view name) {
  return std::any_of(settings.begin(), settings.end(), [&](const JobSetting& one) {
    return one.name == name || one.name.rfind(std::string(name) + ".", 0) == 0;
  });
}

bool any_of_settings(const JobSettings& settings, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return has_setting(settings, name); });
}

// The arguments of Megatron-LM as a nested document: only the last part of each name counts.
JobSettings megatron_settings(const JobSettings& settings) {
  JobSettings flat;
  for (const JobSetting& one : settings) {
    JobSetting copy = one;
    copy.name = copy.name.substr(copy.name.rfind('.') == std::string::npos ? 0 : copy.name.rfind('.') + 1);
    std::replace(copy.name.begin(), copy.name.end(), '_', '-');
    flat.push_back(std::move(copy));
  }
  return flat;
}

bool are_megatron(const JobSettings& settings) {
  const JobSettings flat = megatron_settings(settings);
  return std::count_if(flat.begin(), flat.end(), [](const JobSetting& one) {
           const JobName* row = find_job_name(megatron_names(), one.name);
           return row && row->use == JobUse::number;
         }) >= kFewOptions;
}

// Settings of a document, JSON or YAML, by what they are.
bool read_settings(JobFile& job, const JobSettings& settings) {
  const auto as = [&](const char* kind) { job.kind = kind; };
  if (any_of_settings(settings,
                      {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"})) {
    as("a configuration of DeepSpeed");
    read_deepspeed(job, settings);
  } else if (any_of_settings(settings, {"distributed_type"})) {
    as("a configuration of Hugging Face's accelerate");
    read_accelerate(job, settings);
  } else if (any_of_settings(settings, {"base_model"})) {
    as("a configuration of axolotl");
    read_axolotl(job, settings);
  } else if (any_of_settings(settings, {"per_device_train_batch_size"})) {
    as("training arguments of Hugging Face's Trainer");
    read_training_arguments(job, settings, nullptr);
  } else if (are_megatron(settings)) {
    as("arguments of Megatron-LM in a document");
    read_megatron(job, megatron_settings(settings), {});
  } else {
    return false;
  }
  return true;
}

void read_json(JobFile& job, const JobText& t) {
  const char first = t.text[t.text.find_first_not_of(" \t\r\n")];
  if (says(t.head, "\"model_type\"") && !says(t.head, "\"per_device_train_batch_size\"")) {
    job.kind = "a model's config.json of Hugging Face";  // its reader knows Python's Infinity, too
    return read_model_config(job, t.path);
  }
  const JobSettings settings = json_settings(t.text, t.path);
  if (has_setting(settings, "traceEvents") || (first == '[' && says(t.head, "\"ph\"")))
    refuse_kind(
        t, "a Chrome trace",
        "`rehearse profile FILE` for a trace of PyTorch's profiler, `rehearse-gui FILE` to look at it");
  if (says(t.head, "\"scenario_text\"")) refuse_kind(t, "a record of a run", "`rehearse validate FILE`");
  if (read_settings(job, settings)) return;
  if (has_setting(settings, "architectures")) {
    job.kind = "a model's config.json of Hugging Face";
    return read_model_config(job, t.path);
  }
  if (has_setting(settings, "weight_map"))
    refuse_kind(t, "an index of weights in safetensors",
                "the config.json of the model: --set model.huggingface=config.json on a scenario");
  refuse_kind(
      t, "JSON of no kind that is known here",
      "a DeepSpeed configuration, Hugging Face's TrainingArguments or config.json, or a scenario in TOML");
}

// Variables that the script does not set: what depends on them is asked, if it counts.
JobSettings without_open_variables(JobFile& job, const JobSettings& settings,
                                   std::span<const JobName> names) {
  JobSettings kept;
  for (JobSetting one : settings) {
    const std::size_t open = one.value.find("${");
    if (open == std::string::npos) {
      kept.push_back(std::move(one));
      continue;
    }
    const JobName* row = find_job_name(names, one.name);
    if (row && row->use == JobUse::number && !row->key.empty() && open == 0) {
      job.questions.push_back({std::string(row->key),
                               fmt::format("line {}: --{} is {}, which the script does not set",
                                           one.place.line, one.name, one.value.substr(0, 60)),
                               fmt::format("--set {}=N", row->key)});
      continue;
    }
    one.value = open == 0 ? "true" : one.value.substr(0, open);
    while (!one.value.empty() && one.value.back() == ' ') one.value.pop_back();
    if (!row || row->use != JobUse::read || open > 0)
      kept.push_back(std::move(one));
    else if (row->key.empty() && find_job_name(names, one.name) && one.value == "true")
      kept.push_back(std::move(one));
  }
  return kept;
}

bool read_script(JobFile& job, const JobText& t) {
  const ShellScript script = read_shell(t.text, t.path);
  const LaunchCommand megatron = launch_command(script, megatron_names(), '-', t.path);
  const LaunchCommand trainer = launch_command(script, huggingface_names(), '_', t.path);
  const int of_megatron = known_options(megatron, megatron_names()),
            of_trainer = known_options(trainer, huggingface_names());
  if (std::max(of_megatron, of_trainer) < kFewOptions) return false;
  const auto named = [](const LaunchCommand& command, std::string_view name) {
    return std::any_of(command.options.begin(), command.options.end(),
                       [&](const JobSetting& one) { return one.name == name; });
  };
  const bool line =
      first_line(t.text).rfind("#!", 0) != 0 && std::count(t.text.begin(), t.text.end(), '\n') < 2;
  if (named(trainer, "per_device_train_batch_size") ||
      (of_trainer > of_megatron && (named(trainer, "model_name_or_path") || named(trainer, "output_dir")))) {
    job.kind = fmt::format("{} of Hugging Face's Trainer", line ? "a command line" : "a launch script");
    read_training_arguments(job, without_open_variables(job, trainer.options, huggingface_names()), &script);
    return true;
  }
  const bool model = named(megatron, "num-layers") || named(megatron, "tensor-model-parallel-size") ||
                     named(megatron, "micro-batch-size") || named(megatron, "global-batch-size");
  if (!model) return false;
  const bool deepspeed =
      named(megatron, "deepspeed") || named(megatron, "zero-stage") || named(megatron, "deepspeed-config");
  job.kind = fmt::format("{} of {}", line ? "a command line" : "a launch script",
                         deepspeed ? "Megatron-DeepSpeed" : "Megatron-LM");
  if (!megatron.program.empty() && !says(megatron.program, "gpt") && says(megatron.program, "pretrain"))
    job.notes.push_back(fmt::format("The program is {}; its model is read as that of pretrain_gpt.py.",
                                    megatron.program.substr(megatron.program.rfind('/') + 1)));
  read_megatron(job, without_open_variables(job, megatron.options, megatron_names()), script);
  return true;
}

std::optional<TomlValue> parsed_toml(std::string_view text, const std::string& path) {
  try {
    return parse_toml(text, path);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool is_yaml_of_a_job(std::string_view head) {
  return has_line(head, {"base_model:", "distributed_type:", "per_device_train_batch_size:",
                         "compute_environment:", "zero_optimization:"}) ||
         has_line(
             head,
             {"tensor_model_parallel_size:", "num_layers:", "hidden_size:", "pipeline_model_parallel_size:"},
             true);
}

}  // namespace

bool is_job_document(const TomlValue& root) {
  const std::pair<std::string_view, std::string_view> keys[] = {{"training", "local_batch_size"},
                                                                {"training", "seq_len"},
                                                                {"training", "batch_size"},
                                                                {"training", "tensor_parallel_degree"},
                                                                {"training", "data_parallel_degree"},
                                                                {"parallelism", "tensor_parallel_degree"},
                                                                {"parallelism", "data_parallel_shard_degree"},
                                                                {"parallelism", "pipeline_parallel_degree"},
                                                                {"activation_checkpoint", "mode"},
                                                                {"model", "flavor"}};
  return std::any_of(std::begin(keys), std::end(keys), [&](const auto& one) {
    const TomlValue* table = find_table(root, one.first);
    return table && find_entry(*table, one.second);
  });
}

std::optional<JobFile> read_job(std::string_view text, const std::string& path) {
  JobText t{text, path, text.substr(0, kHead)};
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  JobFile job;
  job.path = path;
  for (const bool binary : {is_safetensors(t), is_pickle(t), is_binary(t)})
    if (binary)
      for (const KnownKind& kind : kKnownKinds)
        if (kind.is(t)) refuse_kind(t, kind.what, kind.way_out);
  t.json = text[first] == '{' || (text[first] == '[' && says(text.substr(first, 200), "{\""));
  const std::optional<TomlValue> toml = t.json ? std::nullopt : parsed_toml(text, path);
  t.toml = toml.has_value();
  if (t.json) {
    read_json(job, t);
    return job;
  }
  if (t.toml) {
    if (!is_job_document(*toml)) return std::nullopt;
    job.kind = "a job configuration of torchtitan";
    read_torchtitan(job, toml_settings(*toml));
    return job;
  }
  if (is_shell(t) && !is_python(t) && !is_nccl_log(t) && read_script(job, t)) return job;
  if (is_yaml_of_a_job(t.head)) {
    if (read_settings(job, yaml_settings(text, path))) return job;
    refuse_kind(t, "YAML of no kind that is known here",
                "a configuration of accelerate or axolotl, arguments of Megatron-LM, or a scenario in TOML");
  }
  for (const KnownKind& kind : kKnownKinds)
    if (kind.is(t)) refuse_kind(t, kind.what, kind.way_out);
  return std::nullopt;
}

}  // namespace rehearse
