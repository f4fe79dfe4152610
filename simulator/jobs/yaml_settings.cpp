// Flattens YAML, which libyaml-cpp parses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/jobs/job_settings.hpp"

#ifdef REHEARSE_HAVE_YAML
#include <yaml-cpp/yaml.h>
#endif

namespace rehearse {

#ifdef REHEARSE_HAVE_YAML
namespace {

constexpr int kDeepestYaml = 40;
constexpr std::size_t kMostYaml = 20'000;  // settings, which aliases could multiply

class YamlFlattener {
public:
  explicit YamlFlattener(const std::string& path) : file_(path) {}

  void add(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kDeepestYaml || settings.size() > kMostYaml || ++nodes_ > kMostYaml)
      throw InputError({file_}, "is nested too deeply, or has too many settings");
    const Place place{file_, node.Mark().line + 1, 1};
    if (node.IsMap()) {
      for (const auto& entry : node) {
        if (!entry.first.IsScalar()) continue;
        const std::string& key = entry.first.Scalar();
        add(entry.second, path.empty() ? key : path + "." + key, depth + 1);
      }
    } else if (!path.empty()) {
      settings.push_back({path, text_of(node, depth), place});
    }
  }

  JobSettings settings;

private:
  std::string text_of(const YAML::Node& node, int depth) {
    if (node.IsScalar()) return node.Scalar();
    if (!node.IsSequence() || depth > kDeepestYaml) return "null";
    std::vector<std::string> all;
    for (const auto& one : node) {
      if (++nodes_ > kMostYaml) throw InputError({file_}, "has too many settings");
      if (one.IsScalar()) all.push_back(one.Scalar());
    }
    return fmt::format("{}", fmt::join(all, ","));
  }

  std::string file_;
  std::size_t nodes_ = 0;
};

}  // namespace

bool reads_yaml() {
  return true;
}

JobSettings yaml_settings(std::string_view text, const std::string& path) {
  try {
    YamlFlattener flattener(path);
    flattener.add(YAML::Load(std::string(text)), "", 0);
    return std::move(flattener.settings);
  } catch (const YAML::Exception& error) {
    throw InputError({path, error.mark.line >= 0 ? error.mark.line + 1 : 0, 1},
                     "is not valid YAML: " + error.msg);
  }
}
#else
bool reads_yaml() {
  return false;
}

JobSettings yaml_settings(std::string_view, const std::string& path) {
  throw InputError({path},
                   "is YAML, which this build of Rehearse cannot read: it was made without libyaml-cpp "
                   "(libyaml-cpp-dev)");
}
#endif

}  // namespace rehearse
