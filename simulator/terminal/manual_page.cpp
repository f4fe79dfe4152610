#include "simulator/terminal/manual_page.hpp"

#include <fmt/format.h>

namespace rehearse {
namespace {

// Escapes text for roff, so that hyphens can be copied into a shell and no line begins with a request.
std::string escape_roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + escape_roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + escape_roff(text) + "\\fR";
}

std::string paragraph(const std::string& tag, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", tag, escape_roff(text));
}

std::string synopsis(const CommandTable& command, const std::string& called) {
  std::string line = bold(called);
  if (!command.options.empty()) line += " [" + italic("OPTION") + "]...";
  if (!command.commands.empty()) line += " " + italic("COMMAND") + " ...";
  for (const CommandArgument& argument : command.arguments) {
    const std::string name = italic(argument.names.front()) + (argument.repeats ? "..." : "");
    line += argument.required ? " " + name : " [" + name + "]";
  }
  return line + "\n";
}

std::string arguments_of(const CommandTable& command) {
  std::string text;
  for (const CommandArgument& argument : command.arguments) {
    // Lists the words if no other value is allowed; names of presets and tables are too many for a page.
    const bool words = !argument.words.empty() && !argument.files;
    text +=
        paragraph(italic(argument.names.front()) + (words ? ": " + escape_roff(value_name(argument)) : ""),
                  argument.help);
  }
  for (const CommandArgument& option : command.options) {
    std::string tag;
    for (const std::string& name : option.names) tag += (tag.empty() ? "" : ", ") + bold(name);
    text += paragraph(option.takes_value ? tag + " " + italic(value_name(option)) : tag, option.help);
  }
  return text;
}

constexpr std::string_view kEnd = R"(.SH ENVIRONMENT
.TP
.B REHEARSE_DATA
A folder like share/rehearse of an installation. Its presets, scenarios, tables of measurements and examples
take the place of those that are shipped, folder by folder.
.SH FILES
.TP
.I share/rehearse
Presets of models, clusters, devices, strategies and frameworks, scenarios and measurements. The folder is
searched beside the folder of the program, so that an installation can be moved as a whole.
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
The run failed.
.TP
.B 2
The input is wrong.
)";

}  // namespace

std::string manual_page(const CommandTable& program, const std::string& version) {
  std::string page =
      fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n", escape_roff(program.name), version);
  std::string title = program.help;
  if (!title.empty() && title.back() == '.') title.pop_back();
  page += fmt::format(".SH NAME\n{} \\- {}\n", escape_roff(program.name), escape_roff(title));
  page += ".SH SYNOPSIS\n" + synopsis(program, program.name);
  page += ".SH OPTIONS\n" + arguments_of(program);
  if (!program.commands.empty()) page += ".SH COMMANDS\n";
  for (const CommandTable& command : program.commands) {
    const std::string called = program.name + " " + command.name;
    page += ".SS " + escape_roff(called) + "\n" + escape_roff(command.help) + ".\n.PP\n" +
            synopsis(command, called) + arguments_of(command);
  }
  return page + std::string(kEnd);
}

}  // namespace rehearse
