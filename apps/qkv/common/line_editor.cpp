#include "common/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "base/log.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr int kRemembered = 1000;
constexpr char kEscape = '\1';  // around what has no width in a prompt

// The editor reads characters as the locale says; a machine without one still has UTF-8.
void read_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

struct LineEditor::Terminal {
  std::string prompt;
  fs::path history_path;
  History* history = history_init();
  EditLine* line = nullptr;
  HistEvent event = {};
  bool interrupted = false;

  Terminal(std::string shown, const fs::path& kept) : prompt(std::move(shown)), history_path(kept) {
    read_utf8();
    line = el_init("qkv", stdin, stdout, stderr);
    el_set(line, EL_CLIENTDATA, this);
    el_set(line, EL_PROMPT_ESC, &Terminal::show_prompt, kEscape);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_SETTY, "-d", "-isig", nullptr);  // Ctrl-C is a key while a line is edited
    el_set(line, EL_ADDFN, "interrupt", "Drop the line, or leave", &Terminal::interrupt);
    el_set(line, EL_BIND, "^C", "interrupt", nullptr);
    el_set(line, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::history(history, &event, H_SETSIZE, kRemembered);
    ::history(history, &event, H_SETUNIQUE, 1);
    el_set(line, EL_HIST, ::history, history);
    open_history();
  }
  ~Terminal() {
    el_end(line);
    history_end(history);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void open_history() {
    if (history_path.empty()) return;
    std::error_code failed;
    fs::create_directories(history_path.parent_path(), failed);
    if (fs::exists(history_path, failed)) ::history(history, &event, H_LOAD, history_path.c_str());
  }

  void remember(const char* text) {
    ::history(history, &event, H_ENTER, text);
    if (history_path.empty()) return;
    const mode_t before = ::umask(077);  // what was typed is nobody else's to read
    const bool saved = ::history(history, &event, H_SAVE, history_path.c_str()) >= 0;
    ::umask(before);
    if (!saved) warn_once("history", "what is typed is not kept: cannot write " + history_path.string());
  }

  static char* show_prompt(EditLine* line) { return of(line).prompt.data(); }

  static unsigned char interrupt(EditLine* line, int) {
    of(line).interrupted = true;
    return CC_NEWLINE;
  }

  static Terminal& of(EditLine* line) {
    void* self = nullptr;
    el_get(line, EL_CLIENTDATA, &self);
    return *static_cast<Terminal*>(self);
  }
};

LineEditor::LineEditor(std::string prompt, const fs::path& history) {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {
    terminal_ = std::make_unique<Terminal>(std::move(prompt), history);
  }
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read() {
  if (!terminal_) return lines_.next();
  std::string text;
  while (true) {
    int count = 0;
    terminal_->interrupted = false;
    const char* typed = el_gets(terminal_->line, &count);
    if (typed == nullptr || count <= 0) return std::nullopt;
    text = typed;
    while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
    if (terminal_->interrupted) {
      if (text.empty()) return std::nullopt;
      std::cout << '\n' << std::flush;
      continue;
    }
    if (text.find_first_not_of(' ') != text.npos) terminal_->remember(text.c_str());
    return text;
  }
}

fs::path history_file() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return fs::path(state) / "qkv" / "history";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / ".local" / "state" / "qkv" / "history";
  return {};
}

}  // namespace qkv::app
