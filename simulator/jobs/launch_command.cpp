// Finds the command of a script that trains, and its options.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "simulator/jobs/job_readers.hpp"

namespace rehearse {
namespace {

std::string option_name(std::string_view word, char separator) {
  std::string name(word.substr(2));
  for (char& c : name)
    if (c == '-' || c == '_') c = separator;
  return name;
}

// Splits words that themselves hold a command's text: bash -c "torchrun ... --bf16".
std::vector<ShellWord> flat_words(const std::vector<ShellWord>& command) {
  std::vector<ShellWord> words;
  for (const ShellWord& word : command) {
    if (word.text.empty()) continue;
    const bool holds_options = word.text.find(" --") != std::string::npos ||
                               (word.text.rfind("--", 0) == 0 && word.text.find(' ') != std::string::npos);
    if (!holds_options) {
      words.push_back(word);
      continue;
    }
    char quote = 0;
    ShellWord part{"", word.line};
    for (const char c : word.text + " ") {
      if (quote ? c == quote : c == '\'' || c == '"') {
        quote = quote ? 0 : c;
      } else if (!quote && std::isspace(static_cast<unsigned char>(c))) {
        if (!part.text.empty()) words.push_back(part);
        part.text.clear();
      } else {
        part.text += c;
      }
    }
  }
  return words;
}

bool is_option(std::string_view text) {
  return text.size() > 2 && text.rfind("--", 0) == 0 &&
         (std::isalpha(static_cast<unsigned char>(text[2])) != 0);
}

LaunchCommand options_of(const std::vector<ShellWord>& command, char separator, const std::string& path) {
  LaunchCommand found;
  const std::vector<ShellWord> words = flat_words(command);
  std::string value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    if (word.text.ends_with(".py") || word.text.ends_with("torchtitan.train")) {
      found.program = word.text;
      continue;
    }
    if (!is_option(word.text)) continue;
    const std::size_t equals = word.text.find('=');
    JobSetting setting{option_name(word.text.substr(0, equals), separator), "", {path, word.line, 1}};
    if (equals != std::string::npos) {
      setting.value = word.text.substr(equals + 1);
    } else {
      const std::size_t from = i + 1;
      while (i + 1 < words.size() && !is_option(words[i + 1].text) && !words[i + 1].text.ends_with(".py")) {
        setting.value += (i + 1 > from ? " " : "") + words[i + 1].text;
        ++i;
      }
      if (setting.value.empty()) setting.value = "true";
    }
    found.options.push_back(std::move(setting));
  }
  return found;
}

int first_number(const std::string& text) {
  const std::size_t at = text.find_first_of("0123456789");
  int number = 0;
  if (at != std::string::npos) std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

}  // namespace

int known_options(const LaunchCommand& command, std::span<const JobName> names) {
  return static_cast<int>(
      std::count_if(command.options.begin(), command.options.end(),
                    [&](const JobSetting& one) { return find_job_name(names, one.name) != nullptr; }));
}

LaunchCommand launch_command(const ShellScript& script, std::span<const JobName> names, char separator,
                             const std::string& path) {
  LaunchCommand best;
  int most = 0;
  for (const auto& command : script.commands) {
    LaunchCommand one = options_of(command, separator, path);
    const int known = known_options(one, names);
    if (known > most) {
      most = known;
      best = std::move(one);
    }
  }
  return best;
}

void read_launcher(JobDraft& draft, const ShellScript& script) {
  JobFile& job = draft.job();
  double nodes = 0, devices = 0;
  Place place{job.path};
  const auto option = [&](std::initializer_list<std::string_view> names, double& number) {
    for (const std::string_view name : names) {
      const JobSetting* setting = draft.find(name);
      if (number > 0 || !setting || setting->value.find("${") != std::string::npos) continue;
      number = first_number(setting->value.substr(
          setting->value.find(':') == std::string::npos ? 0 : setting->value.find(':')));
      if (number > 0) place = setting->place;
    }
  };
  const auto batch = [&](std::initializer_list<const char*> names, double& number) {
    for (const char* name : names) {
      const auto found = script.batch.find(name);
      if (number > 0 || found == script.batch.end()) continue;
      number = first_number(found->second.text);
      place.line = found->second.line;
    }
  };
  option({"nnodes", "num-nodes", "num_nodes"}, nodes);
  batch({"nodes"}, nodes);
  option({"nproc-per-node", "nproc_per_node", "num-gpus", "num_gpus"}, devices);
  batch({"gpus-per-node", "gres", "ntasks-per-node"}, devices);
  if (nodes > 0)
    job.keys.push_back({"cluster.nodes", fmt::format("{:.0f}", nodes), place, "of the launcher"});
  job.devices_per_node = devices;
}

}  // namespace rehearse
