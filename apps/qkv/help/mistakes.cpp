#include "help/mistakes.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>

#include "base/json.h"
#include "base/printable.h"
#include "help/peer_names.h"

namespace qkv::app {
namespace {

// Spellings of before. `old` is an option, a command, or FILE after an option that takes none today; an argument's name
// in capitals stands for any argument too many.
struct OldSpelling {
  std::string_view commands, old, now;
};
constexpr OldSpelling kOldSpellings[] = {
    {"align", "--pairs", "--pharaoh"},
    {"attribute taps", "TARGET", "--target TEXT"},
    {"convert new quantize", "OUT", "--out"},
    {"convert", "--to", "--format"},
    {"cut", "--save", "--out"},
    {"cut heads lens route twins", "--length", "--window"},
    {"data", "verify", "qkv verify DIR"},
    {"eval", "--pairs", "--data"},
    {"taps", "--price", "--cost"},
    {"tokenize", "--verify", "qkv verify TOKENIZER --vectors FILE"},
    {"tokenizer train", "--model", "--kind"},
    {"translate", "--n-best", "--n"},
    {"twins", "--pairs", "--closest"},
    {"align attribute heads lab lens look movie patch route taps twins", "--json FILE", "--out FILE"},
    {"cut demo", "--json FILE", "--json > FILE"},
};

bool among(std::string_view list, std::string_view word) {
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(' ', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

std::string_view before_equals(std::string_view word) {
  return word.substr(0, std::min(word.find('='), word.size()));
}

std::string see(const CommandInfo& command) {
  return "see  " + command.path + " --help";
}

std::string hint_for(const CommandInfo& command, std::string_view prefix, const std::string& near) {
  return (near.empty() ? "" : "did you mean  " + std::string(prefix) + near + "  ? Otherwise ") + see(command);
}

// "tokenizer train" of "qkv tokenizer train"; nothing for the program itself.
std::string_view below_program(const CommandInfo& command) {
  const std::string_view path = command.path;
  return path.substr(std::min(path.find(' '), path.size() - 1) + 1);
}

// What a message begins with: whose it is.
std::string whose(const CommandInfo& command) {
  const std::string_view name = below_program(command);
  return name.empty() ? "" : std::string(name) + ": ";
}

const OldSpelling* old_of(const CommandInfo& command, std::string_view word) {
  const std::string_view path = below_program(command);
  const auto found = std::find_if(std::begin(kOldSpellings), std::end(kOldSpellings), [&](const OldSpelling& s) {
    return s.old == word && (s.commands == path || among(s.commands, path));
  });
  return found == std::end(kOldSpellings) ? nullptr : found;
}

Mistake spelt_anew(const CommandInfo& command, std::string_view old, std::string_view now) {
  return {whose(command) + std::string(old) + " is now  " + std::string(now), see(command)};
}

}  // namespace

Mistake unknown_command(const CommandInfo& under, const std::string& name) {
  std::vector<std::string_view> known;
  for (const CommandInfo& command : under.commands) known.push_back(command.name);
  if (below_program(under).empty())
    known.insert(known.end(), std::begin(kLauncherCommands), std::end(kLauncherCommands));
  const std::string own(below_program(under).empty() ? own_command(name) : "");
  return {whose(under) + "unknown command " + printable(name),
          hint_for(under, under.path + " ", own.empty() ? nearest_key(name, known) : own)};
}

std::optional<Mistake> old_spelling(const CommandInfo& program, const std::vector<std::string>& words) {
  const CommandInfo& command = command_of(program, words);
  const OldSpelling* file = old_of(command, "--json FILE");
  if (file == nullptr) return std::nullopt;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool named = words[i].starts_with("--json=");
    const std::string next = i + 1 < words.size() && words[i] == "--json" ? words[i + 1] : "";
    if (named || next == "-" || next.ends_with(".json")) {
      return Mistake{
          whose(command) + "--json takes no file and prints to standard output; a file is  " + std::string(file->now),
          see(command)};
    }
  }
  return std::nullopt;
}

Mistake mistake_in(const CommandInfo& command, const std::vector<std::string>& left, const std::string& said) {
  for (const std::string& word : left) {
    if (!is_option(word)) continue;
    const std::string_view name = before_equals(word);
    if (const OldSpelling* old = old_of(command, name)) return spelt_anew(command, old->old, old->now);
    std::vector<std::string_view> known{"--help"};
    if (below_program(command).empty()) known.push_back("--version");
    for (const OptionInfo& option : command.options) {
      if (!option.argument()) known.push_back(option.name);
    }
    const std::string own = own_option(command, name);
    const std::string what = whose(command) + "unknown option " + printable(name);
    if (!own.empty() && !own.starts_with("--")) {
      return {what, own + " is an argument without a name:  " + command.path + " " + own + "  ; " + see(command)};
    }
    return {what, hint_for(command, "", own.empty() ? nearest_key(name, known) : own)};
  }
  if (left.empty()) return {whose(command) + said, see(command)};
  if (!command.commands.empty()) {
    if (const OldSpelling* old = old_of(command, left.front())) {
      return spelt_anew(command, left.front(), old->now);
    }
    return unknown_command(command, left.front());
  }
  for (const char* argument : {"OUT", "TARGET"}) {
    if (const OldSpelling* old = old_of(command, argument)) return spelt_anew(command, argument, old->now);
  }
  return {whose(command) + "unexpected argument " + printable(left.front()), see(command)};
}

}  // namespace qkv::app
