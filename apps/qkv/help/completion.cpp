// qkv completion: a script that lets bash or zsh complete commands, options and their values; made from the table of
// commands, so that it cannot lag behind.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "common/commands.h"

namespace qkv::app {
namespace {

constexpr const char* kCompletionExamples = R"(Examples:
  source <(qkv completion bash)                           in this shell
  qkv completion bash >> ~/.bashrc                        in every new one
  qkv completion zsh > ~/.zfunc/_qkv                      in a folder of $fpath)";

constexpr const char* kBash = R"(# Completion of qkv for bash:  source <(qkv completion bash)
_qkv() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  local options= words= files=
  if ((COMP_CWORD == 1)); then command=; fi
  case $command in
@groups@)
      if ((COMP_CWORD > 2)); then command="$command ${COMP_WORDS[2]}"; fi ;;
  esac
@cases@
  COMPREPLY=()
  if [[ $current == -* && -z $value ]]; then words=$options files=; fi
  local IFS=$'\n'
  if [[ -n $words ]]; then mapfile -t COMPREPLY < <(compgen -W "${words// /$'\n'}" -- "$current"); fi
  if [[ -n $files ]]; then
    local found
    mapfile -t found < <(compgen -f -- "$current")
    COMPREPLY+=("${found[@]}")
  fi
}
complete -o filenames -F _qkv qkv
)";

constexpr const char* kZsh = R"(#compdef qkv
# Completion of qkv for zsh: a file _qkv in a folder of $fpath.
_qkv() {
  local current=${words[CURRENT]} previous=${words[CURRENT-1]} command=${words[2]}
  local options= names= files=
  if ((CURRENT == 2)); then command=; fi
  case $command in
@groups@)
      if ((CURRENT > 3)); then command="$command ${words[3]}"; fi ;;
  esac
@cases@
  if [[ $current == -* && -z $value ]]; then names=$options files=; fi
  if [[ -n $names ]]; then compadd -- ${=names}; fi
  if [[ -n $files ]]; then _files; fi
}
_qkv "$@"
)";

constexpr const char* kProgram = "''";  // no command yet

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

bool takes_file(const OptionInfo& option) {
  static const std::vector<std::string> kFiles{"FILE", "DIR", "MODEL", "RUN", "RECIPE", "TOKENIZER", "PATH"};
  return std::find(kFiles.begin(), kFiles.end(), option.value) != kFiles.end();
}

std::string words_of(const OptionInfo& option) {
  return joined(option.choices.empty() ? option.known : option.choices);
}

// One command's options, its arguments, and the values of the option before the cursor.
std::string case_of(const CommandInfo& command, const std::string& pattern, const char* words) {
  std::vector<std::string> options{"--help"}, arguments;
  std::string values;
  bool files = false;
  for (const CommandInfo& each : command.commands) arguments.push_back(each.name);
  if (pattern == kProgram)
    arguments.insert(arguments.end(), std::begin(kLauncherCommands), std::end(kLauncherCommands));
  for (const OptionInfo& option : command.options) {
    if (option.argument()) {
      files = files || takes_file(option);
      for (const std::string& word : option.choices.empty() ? option.known : option.choices) arguments.push_back(word);
      continue;
    }
    options.push_back(option.name);
    if (option.value.empty()) continue;
    const std::string file = takes_file(option) ? "yes" : "";
    values +=
        "        " + option.name + ") value=yes " + words + "=\"" + words_of(option) + "\" files=" + file + " ;;\n";
  }
  std::string text = "    " + pattern + ")\n      options=\"" + joined(options) + "\" " + words + "=\"" +
                     joined(arguments) + "\" files=" + (files ? "yes" : "") + "\n";
  if (!values.empty()) text += "      case $previous in\n" + values + "      esac\n";
  return text + "      ;;\n";
}

std::string script(const CommandInfo& program, std::string text, const char* words) {
  std::string groups, cases = std::string("  local value=\n  case $command in\n");
  cases += case_of(program, kProgram, words);
  for (const CommandInfo& command : program.commands) {
    cases += case_of(command, command.name, words);
    if (!command.commands.empty()) groups += (groups.empty() ? "    " : " | ") + command.name;
    for (const CommandInfo& below : command.commands) {
      cases += case_of(below, "'" + command.name + " " + below.name + "'", words);
    }
  }
  cases += "  esac";
  const auto put = [&](const std::string& mark, const std::string& with) {
    text.replace(text.find(mark), mark.size(), with);
  };
  put("@groups@", groups);
  put("@cases@", cases);
  return text;
}

}  // namespace

void add_completion(Command app, const CommandInfo& program) {
  const Command command = app.add_command("completion", "Print a script that completes commands in your shell");
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "Which shell").required().one_of({"bash", "zsh"});
  command.footer(kCompletionExamples);
  command.callback([shell, &program] {
    std::cout << (*shell == "bash" ? script(program, kBash, "words") : script(program, kZsh, "names"));
  });
}

}  // namespace qkv::app
