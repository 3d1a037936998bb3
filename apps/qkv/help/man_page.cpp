#include "help/man_page.h"

#include <string_view>

namespace qkv::app {
namespace {

// A line of text as it reads: what begins a request or an escape does not.
std::string man_text(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    begins = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_words(const OptionInfo& option) {
  std::string words = "\\fB" + man_text(option.name) + "\\fR";
  if (!option.argument() && !option.value.empty()) words += " \\fI" + man_text(option.value_text()) + "\\fR";
  return words;
}

void add_command(const CommandInfo& command, std::string& page) {
  if (!command.commands.empty()) {
    for (const CommandInfo& inner : command.commands) add_command(inner, page);
    return;
  }
  page += ".SS \"" + man_text(command.path);
  for (const OptionInfo& option : command.options) {
    if (option.argument()) page += " " + man_text(option.required ? option.name : "[" + option.name + "]");
  }
  page += "\"\n" + man_text(command.what) + ".\n";
  for (const OptionInfo& option : command.options) {
    page += ".TP\n" + option_words(option) + "\n" + man_text(option.what);
    if (!option.shown_default.empty()) page += " (" + man_text(option.shown_default) + ")";
    page += "\n";
  }
  if (!command.footer.empty()) page += ".PP\n.nf\n" + man_text(command.footer) + "\n.fi\n";
}

}  // namespace

std::string man_page(const CommandInfo& program, const std::string& version) {
  std::string page =
      ".TH QKV 1 \"\" \"qkv " + version +
      "\" \"User Commands\"\n.SH NAME\nqkv \\- train, run and look inside Transformers\n"
      ".SH SYNOPSIS\n.B qkv\n.I COMMAND\n[\\fIoptions\\fR]\n.br\n.B qkv help\n.I COMMAND\n.SH COMMANDS\n";
  for (const CommandInfo& command : program.commands) add_command(command, page);
  page +=
      ".SH FILES\nModels that ship are in share/qkv/models beside the program; QKV_MODELS names another folder.\n"
      ".SH EXIT STATUS\n0 done; 1 a comparison failed; 2 something is wrong with the input; 3 something is wrong with "
      "qkv; 130 ended by Ctrl\\-C.\n";
  return page;
}

}  // namespace qkv::app
