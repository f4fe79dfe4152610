#include "simulator/terminal/command_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "models/text/data_folder.hpp"
#include "models/text/document.hpp"
#include "simulator/terminal/command_line.hpp"

namespace rehearse {
namespace {

// Returns the option's validator whose name begins with this text, or null if it has none.
const CLI::Validator* validator_of(CLI::Option& option, const std::string& name) {
  for (int i = 0;; ++i) {
    try {
      const CLI::Validator* validator = option.get_validator(i);
      if (validator->get_name().rfind(name, 0) == 0) return validator;
    } catch (const CLI::OptionNotFound&) {
      return nullptr;
    }
  }
}

// "{text,json}", as one_of() describes itself.
std::vector<std::string> words_of(const CLI::Validator& one_of) {
  std::string listed = one_of.get_description();
  listed = listed.substr(1, listed.size() - 2);
  return CLI::detail::split(listed, ',');
}

// Lists the names that shipped_or_file() accepts: "shipped:FOLDER,...;OTHER,...".
std::vector<std::string> shipped_names(const CLI::Validator& shipped) {
  const std::string listed = shipped.get_name().substr(std::string(kShipped).size());
  const std::size_t others = listed.find(';');
  std::vector<std::string> names;
  for (const std::string& folder : CLI::detail::split(listed.substr(0, others), ',')) {
    for (const std::string& name : preset_names(folder)) names.push_back(name);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(data_folder(folder), error))
      if (entry.path().extension() == ".csv") names.push_back(entry.path().stem().string());
  }
  if (others + 1 < listed.size())
    for (const std::string& name : CLI::detail::split(listed.substr(others + 1), ',')) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool is_number(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  for (const char* number : {"INT", "UINT", "FLOAT"})
    if (type.rfind(number, 0) == 0) return true;
  return false;
}

CommandArgument argument_of(CLI::Option& option) {
  CommandArgument argument;
  for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  if (option.get_positional()) argument.names = {option.get_name(true)};
  argument.help = option.get_description();
  argument.takes_value = option.get_items_expected_max() > 0;
  argument.required = option.get_required();
  argument.repeats = option.get_items_expected_max() > 1;
  argument.commas = option.get_delimiter() != '\0';
  if (!argument.takes_value) return argument;
  if (const CLI::Validator* choice = validator_of(option, kOneOf)) {
    argument.words = words_of(*choice);
  } else if (const CLI::Validator* shipped = validator_of(option, kShipped)) {
    argument.words = shipped_names(*shipped);
    argument.files = true;
  } else if (validator_of(option, kFolder) != nullptr) {
    argument.folders = true;
  } else {
    // Text options that repeat take keys of scenarios, such as --set key=value.
    const bool keys = argument.repeats && !option.get_positional();
    argument.files = !is_number(option) && !keys && validator_of(option, kNotEmpty) == nullptr;
  }
  return argument;
}

CommandTable table_of(CLI::App& app) {
  CommandTable table{app.get_name(), app.get_description(), {}, {}, {}};
  for (CLI::Option* option : app.get_options())
    (option->get_positional() ? table.arguments : table.options).push_back(argument_of(*option));
  for (CLI::App* command : app.get_subcommands({})) table.commands.push_back(table_of(*command));
  return table;
}

}  // namespace

CommandTable command_table(CLI::App& app) {
  CommandTable table = table_of(app);
  std::istringstream(app.version()) >> table.name;
  return table;
}

std::string value_name(const CommandArgument& argument) {
  if (argument.files) return argument.words.empty() ? "FILE" : "NAME";
  if (argument.folders) return "FOLDER";
  if (argument.words.empty() && argument.repeats)
    return argument.help.find('=') == std::string::npos ? "KEY" : "KEY=VALUE";
  return argument.words.empty() ? "VALUE" : fmt::format("{}", fmt::join(argument.words, "|"));
}

}  // namespace rehearse
