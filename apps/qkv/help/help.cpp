// qkv help: the same text as --help.
#include <iostream>
#include <memory>

#include "api/inside.h"
#include "base/error.h"
#include "common/commands.h"
#include "help/help_text.h"
#include "help/man_page.h"
#include "help/mistakes.h"

namespace qkv::app {

void add_help(Command app, const CommandInfo& program) {
  const Command command = app.add_command("help", "Print this text, or a command's options and examples");
  const auto words = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const CommandInfo& each : program.commands) names.push_back(each.name);
  command.add_option("COMMAND", *words, "Which command; the program itself if none is named").known(names);
  const auto man = std::make_shared<bool>(false);
  command.add_flag("--man", *man, "Print all commands as a manual page, for man");
  command.footer(
      "Examples:\n  qkv help\n  qkv help run\n  qkv help data pack\n  qkv help --man | man -l -    as a manual page");
  command.callback([words, man, &program] {
    if (*man) {
      QKV_CHECK(words->empty(), "--man is about all commands, but ", words->front(), " was named",
                Hint("qkv help --man"));
      std::cout << man_page(program, api::version());
      return;
    }
    const CommandInfo* at = &program;
    for (const std::string& word : *words) {
      const CommandInfo* next = at->command(word);
      if (next == nullptr) {
        const Mistake mistake = unknown_command(*at, word);
        QKV_FAIL(mistake.what, Hint(mistake.hint));
      }
      at = next;
    }
    std::cout << help_text(*at, help_columns());
  });
}

}  // namespace qkv::app
