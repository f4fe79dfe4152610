#include "simulator/terminal/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "models/text/document.hpp"
#include "models/text/printable.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/terminal/command_table.hpp"
#include "simulator/terminal/completion.hpp"
#include "simulator/terminal/manual_page.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {
namespace {

std::string did_you_mean(const std::string& found, const std::vector<std::string>& known) {
  const std::string near = nearest_name(found, known);
  return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
}

std::vector<std::string> names_of_subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// Returns the given subcommand, or the program itself.
const CLI::App& chosen(const CLI::App& app) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  return given.empty() ? app : *given.front();
}

// Describes the unexpected arguments, in the order of the command line.
std::string describe_extras(const CLI::App& app) {
  std::vector<std::string> extras = app.remaining(true);
  const CLI::App& command = chosen(app);
  const std::string& first = extras.front();
  const bool is_option = first.size() > 1 && first.front() == '-';
  const std::vector<std::string> commands = names_of_subcommands(app);
  const bool is_command = !is_option && &command == &app && !commands.empty();
  if (is_command)
    return fmt::format("unknown subcommand {}{}; allowed: {}", in_quotes(first),
                       did_you_mean(first, commands), fmt::join(commands, ", "));
  const std::string name = &command == &app ? "" : command.get_name() + ": ";
  if (is_option) {
    const std::vector<std::string> options = names_of_options(command);
    const std::string option = first.substr(0, first.find('='));
    return fmt::format("{}unknown option {}{}; allowed: {}", name, in_quotes(option),
                       did_you_mean(option, options), fmt::join(options, ", "));
  }
  std::string all;
  for (const std::string& extra : extras) all += (all.empty() ? "" : " ") + in_quotes(extra);
  return fmt::format("{}unexpected argument{} {}", name, extras.size() == 1 ? "" : "s", all);
}

bool print_for_packages(CLI::App& app, const std::vector<std::string>& arguments) {
  const bool manual = arguments.size() == 1 && arguments[0] == "--manual";
  const bool completion = arguments.size() == 2 && arguments[0] == "--completion" &&
                          std::count(kShellNames.begin(), kShellNames.end(), arguments[1]) == 1;
  if (manual) std::cout << manual_page(command_table(app), app.version());
  if (completion) std::cout << completion_script(command_table(app), arguments[1]);
  return manual || completion;
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string allowed = fmt::format("{}", fmt::join(names, ", "));
  const std::string type = fmt::format("{{{}}}", fmt::join(names, ","));
  return CLI::Validator(
      [names = std::move(names), allowed](std::string& found) {
        if (std::find(names.begin(), names.end(), found) != names.end()) return std::string();
        return fmt::format("is {}; allowed: {}{}", in_quotes(found), allowed, did_you_mean(found, names));
      },
      type, kOneOf);
}

CLI::Validator not_empty(std::string allowed) {
  return CLI::Validator(
      [allowed = std::move(allowed)](std::string& found) {
        return found.empty() ? "is empty; allowed: " + allowed : std::string();
      },
      "", kNotEmpty);
}

CLI::Validator file_name() {
  return not_empty("the name of a file").name(kFile);
}

CLI::Validator folder_name() {
  return not_empty("the name of a folder").name(kFolder);
}

CLI::Validator shipped_or_file(const std::vector<std::string>& folders,
                               const std::vector<std::string>& others) {
  return CLI::Validator([](std::string&) { return std::string(); }, "",
                        fmt::format("{}{};{}", kShipped, fmt::join(folders, ","), fmt::join(others, ",")));
}

CLI::Option* add_repeated(CLI::App& app, const char* option, std::vector<std::string>& values,
                          const char* help) {
  return app.add_option(option, values, help)->take_all()->allow_extra_args(false);
}

CLI::Option* add_choice(CLI::App& app, const char* option, const std::vector<std::string>& names,
                        const std::function<void(std::size_t index)>& take, const char* help) {
  const auto take_name = [names, take](const std::string& name) {
    take(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
  };
  return app.add_option_function<std::string>(option, take_name, help)->check(one_of(names));
}

void add_format(CLI::App& app, Format& format) {
  add_choice<Format>(app, "--format", format, kFormatNames, "text, json or csv");
}

void add_progress(CLI::App& app, bool& as_lines) {
  add_choice(
      app, "--progress", {"auto", "lines"}, [&as_lines](std::size_t i) { as_lines = i == 1; },
      "How to show progress: auto (one line on a terminal) or lines");
}

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv) {
  if (print_for_packages(app, {argv + 1, argv + argc})) return kDone;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    std::cerr << describe_extras(app) << "\nRun with --help for more information.\n";
    return kInputWrong;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kInputWrong;
  }
  if (app.get_subcommands({}).empty() || !app.get_subcommands().empty()) return std::nullopt;
  std::cerr << "A subcommand is required.\n\n" << app.help();
  return kInputWrong;
}

}  // namespace rehearse
