#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "models/text/toml_table.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/jobs/job_file.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {
namespace {

using Values = std::map<std::string, std::string>;

Values values_of(const Document& document) {
  Values values;
  for (auto& [key, value] : document.values()) values[key] = value;
  return values;
}

bool has_prefix(const Values& values, const std::string& prefix) {
  const auto found = values.lower_bound(prefix);
  return found != values.end() && found->first.rfind(prefix, 0) == 0;
}

double number_at(const Values& values, const std::string& key, double fallback) {
  const auto found = values.find(key);
  if (found == values.end()) return fallback;
  double number = fallback;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  return number >= 1 && number < 1e15 ? number : fallback;
}

std::shared_ptr<const Cluster> cluster_in(const Document& document, const std::string& path,
                                          const std::string& base_folder) {
  TomlValue alone = toml_table();
  const TomlValue* section = find_table(document.tree(), "cluster");
  put(alone, "cluster", section ? *section : toml_table());
  Document copy = Document::parse_text(toml_text(alone), path);
  Section cluster = copy.root().section("cluster");
  return read_cluster(cluster, base_folder);
}

class Completion {
public:
  Completion(JobFile& job, Document& document, const std::string& base_folder)
      : job_(job), document_(document), folder_(base_folder), values_(values_of(document)) {}

  void complete() {
    ask();
    follow();
  }

private:
  bool has(const std::string& key) const { return values_.count(key) > 0; }
  bool has_cluster() const {
    return has("cluster.preset") || has("cluster.file") || has_prefix(values_, "cluster.node.");
  }
  bool has_model() const { return has_prefix(values_, "model.") && !only_vocabulary(); }
  bool only_vocabulary() const {
    return std::all_of(values_.begin(), values_.end(), [](const auto& one) {
      return one.first.rfind("model.", 0) != 0 || one.first == "model.transformer.vocabulary";
    });
  }

  void ask() {
    std::vector<JobQuestion> missing;
    for (JobQuestion& one : job_.questions) {
      const bool answered =
          one.key == "model"
              ? has_model()
              : has(one.key) || (one.key.rfind("model.", 0) == 0 &&
                                 (has("model.preset") || has("model.file") || has("model.huggingface")));
      if (!answered) missing.push_back(std::move(one));
    }
    const auto asked = [&](std::string_view key) {
      return std::any_of(missing.begin(), missing.end(),
                         [&](const JobQuestion& one) { return one.key == key; });
    };
    if (!has_model() && !asked("model"))
      missing.push_back(
          {"model", "the file does not say it",
           "--set model.preset=llama3-8b (`rehearse list models`) or --set model.huggingface=config.json"});
    if (!has_cluster())
      missing.push_back(
          {"cluster", "the file does not say on what it runs",
           "--set cluster.preset=dgx-h100 (`rehearse list clusters`) or --set cluster.file=FILE"});
    if (!has("cluster.nodes") && job_.devices == 0)
      missing.push_back({"cluster.nodes", "the file does not say it", "--set cluster.nodes=1"});
    if (missing.empty()) return;
    std::string lines;
    for (const JobQuestion& one : missing)
      lines += fmt::format("\n  {:<26} {}: {}", one.key, one.options, one.why);
    throw InputError(
        {job_.path},
        fmt::format("is {}, which leaves open what a prediction needs; allowed: the same command with{}",
                    job_.kind, lines));
  }

  void set(const std::string& key, double value, std::string origin) {
    if (has(key)) return;
    const Place place{job_.path};
    const std::string text = fmt::format("{:.0f}", value);
    document_.set(key + "=" + text, &place);
    job_.keys.push_back({key, text, place, std::move(origin)});
    values_[key] = text;
  }

  void follow() {
    // Without nodes a cluster of one is read, to learn how many devices a node has.
    const std::shared_ptr<const Cluster> cluster = cluster_in(document_, job_.path, folder_);
    double per_node = cluster->node().devices;
    if (!has("cluster.devices_per_node") && job_.devices_per_node > 0 && job_.devices_per_node < per_node) {
      set("cluster.devices_per_node", job_.devices_per_node, "of the launcher");
      per_node = job_.devices_per_node;
    } else if (job_.devices_per_node > per_node) {
      job_.notes.push_back(fmt::format(
          "The launcher starts {} processes on a node, and a node of this cluster has {} devices: "
          "as many nodes as the file says are taken.",
          job_.devices_per_node, per_node));
    }
    if (!has("cluster.nodes")) {
      if (job_.devices < per_node) {
        set("cluster.devices_per_node", std::max(1.0, job_.devices), "of the job's devices");
        set("cluster.nodes", 1, "of the job's devices");
      } else {
        if (std::fmod(job_.devices, per_node) != 0)
          throw InputError(
              {job_.path},
              fmt::format("takes {} devices; allowed: a multiple of the {} of a node of this cluster, or "
                          "--set cluster.devices_per_node=N",
                          job_.devices, per_node));
        set("cluster.nodes", job_.devices / per_node, fmt::format("{:.0f} devices of the job", job_.devices));
      }
    }
    const double devices = per_node * number_at(values_, "cluster.nodes", cluster->nodes());
    const double context = number_at(values_, "strategy.context", 1);
    const double model =
        number_at(values_, "strategy.tensor", 1) * number_at(values_, "strategy.pipeline", 1) * context;
    const double data = std::max(1.0, std::floor(devices / model));
    const double micro = number_at(values_, "training.micro_batch", 1);
    if (job_.accumulation > 0)
      set("training.global_batch", micro * data * job_.accumulation,
          fmt::format("{:.0f} samples x {:.0f} data-parallel ranks x {:.0f} accumulated", micro, data,
                      job_.accumulation));
    if (job_.replicas > 1)
      set("strategy.shard_degree", std::max(1.0, std::floor(data * context / job_.replicas)),
          fmt::format("{:.0f} groups hold everything once", job_.replicas));
    if (job_.iterations > 0 && !has("training.tokens") && !has("training.samples") && !has("training.epochs"))
      set("training.samples", job_.iterations * number_at(values_, "training.global_batch", 1),
          fmt::format("{:.0f} steps", job_.iterations));
    attention(cluster->node().device);
  }

  void attention(const Device& device) {
    if (!job_.fuses_attention || has("training.attention") || has_prefix(values_, "framework.attention"))
      return;
    const auto precision = values_.find("training.precision");
    const bool wide =
        precision != values_.end() && (precision->second == "fp32" || precision->second == "tf32");
    std::string_view kernels = kAttentionKernelsNames[static_cast<std::size_t>(AttentionKernels::unfused)];
    for (std::size_t i = 0; i < kAttentionKernelsNames.size(); ++i)
      if (*job_.fuses_attention && !wide && device.has(static_cast<AttentionKernels>(i)))
        kernels = kAttentionKernelsNames[i];
    const Place place{job_.path};
    const std::string value = toml_string(std::string(kernels));
    document_.set("training.attention=" + value, &place);
    job_.keys.push_back({"training.attention", value, place,
                         *job_.fuses_attention ? "the newest that the device has" : "not fused"});
  }

  JobFile& job_;
  Document& document_;
  std::string folder_;
  Values values_;
};

// Wraps nothing: a comment of one line.
std::string comment(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' || c == '\r' ? ' ' : c;
  return "# " + line + "\n";
}

}  // namespace

Document job_document(const JobFile& job) {
  Document document = Document::parse_text("", job.path);
  for (const JobKey& one : job.keys) document.set(one.key + "=" + one.value, &one.place);
  return document;
}

void complete_job(JobFile& job, Document& document, const std::string& base_folder) {
  Completion(job, document, base_folder).complete();
}

std::vector<std::string> job_notes(const JobFile& job) {
  std::vector<std::string> notes = {fmt::format("{} was read as {}.", job.path, job.kind)};
  notes.insert(notes.end(), job.notes.begin(), job.notes.end());
  return notes;
}

std::string job_scenario_text(const JobFile& job, const Document& document) {
  std::string text;
  for (const std::string& note : job_notes(job)) text += comment(note);
  std::map<std::string, const JobKey*> origins;
  for (const JobKey& one : job.keys) origins[one.key] = &one;
  const Values values = values_of(document);
  std::string table;
  const std::string all = toml_text(document.tree());
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    at = end + 1;
    text += line;
    if (!line.empty() && line[0] == '[') table = line.substr(1, line.find(']') - 1);
    const std::size_t equals = line.find(" = ");
    if (equals != std::string::npos && line[0] != '[' && line.find('#') == std::string::npos) {
      const auto found = origins.find(table + "." + line.substr(0, equals));
      if (found != origins.end() && !found->second->origin.empty()) {
        const JobKey& key = *found->second;
        std::string origin =
            (key.place.line > 0 ? fmt::format("line {}: ", key.place.line) : "") + key.origin;
        for (char& c : origin)
          if (static_cast<unsigned char>(c) < 32) c = ' ';
        // A key that "--set" replaced is no longer the file's.
        const TomlValue now = parse_toml_value(line.substr(equals + 3), {}),
                        then = parse_toml_value(key.value, {});
        if (same_value(now, then)) text += "  # " + origin;
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace rehearse
