#include "help/help_text.h"

#include <algorithm>

#include "base/display_width.h"
#include "common/drawing.h"

namespace qkv::app {
namespace {

constexpr int kWidest = 100;
constexpr const char* kHelpOption = "--help";

struct Row {
  std::string left, right;
};

// A command that is too long for a line, with " \" where it goes on. It is broken at spaces outside of quotes.
std::string broken_command(std::string_view text, int columns, int indent) {
  std::string all, line = spaces(indent), word;
  const auto put = [&] {
    const bool first = line.find_first_not_of(' ') == line.npos;
    if (!first && display_width(line) + 1 + display_width(word) + 2 > columns) {
      all += line + " \\\n";
      line = spaces(indent + 4) + word;
    } else {
      line += (first ? "" : " ") + word;
    }
    word.clear();
  };
  char quote = '\0';
  for (const char c : text) {
    if (quote == '\0' && c == ' ') {
      put();
      continue;
    }
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    }
    word += c;
  }
  put();
  return all + line;
}

// Two columns; a left side that is too wide has its right side below it.
std::string two_columns(const std::vector<Row>& rows, int columns, int widest_left, int least_left = 0) {
  constexpr int kIndent = 2, kGap = 2;
  int left = least_left;
  for (const Row& row : rows) {
    const int width = display_width(row.left);
    if (width <= widest_left) left = std::max(left, width);
  }
  std::string all;
  const int start = kIndent + left + kGap, room = std::max(columns - start, 16);
  for (const Row& row : rows) {
    const int width = display_width(row.left);
    const bool fits = width <= left;
    if (row.right.empty() || !fits) {
      all += kIndent + width <= columns ? spaces(kIndent) + row.left : broken_command(row.left, columns, kIndent);
      all += '\n';
      if (row.right.empty()) continue;
    }
    bool first = fits;
    for (const std::string& line : wrap(row.right, room)) {
      all += first ? spaces(kIndent) + row.left + spaces(start - kIndent - width) : spaces(start);
      all += line + '\n';
      first = false;
    }
  }
  return all;
}

std::string titled(const char* title, const std::vector<Row>& rows, int columns, int least_left = 0) {
  constexpr int kWidestLeft = 30;
  return rows.empty() ? "" : std::string("\n") + title + ":\n" + two_columns(rows, columns, kWidestLeft, least_left);
}

// Paragraphs are wrapped; indented lines are rows: a left side, two spaces or more, a right side.
std::string footer_text(std::string_view footer, int columns) {
  std::string all, paragraph;
  std::vector<Row> rows;
  const auto flush = [&] {
    if (!paragraph.empty()) all += wrapped(paragraph, columns);
    if (!rows.empty()) all += two_columns(rows, columns, columns / 2 + 4);
    paragraph.clear();
    rows.clear();
  };
  for (size_t at = 0; at < footer.size();) {
    const size_t end = std::min(footer.find('\n', at), footer.size());
    const std::string_view line = footer.substr(at, end - at);
    at = end + 1;
    if (line.empty()) {
      flush();
      all += '\n';
    } else if (line.starts_with("  ")) {
      if (!paragraph.empty()) flush();
      const std::string_view row = line.substr(line.find_first_not_of(' '));
      const size_t gap = std::min(row.find("  "), row.size());
      const size_t right = std::min(row.find_first_not_of(' ', gap), row.size());
      rows.push_back({std::string(row.substr(0, gap)), std::string(row.substr(right))});
    } else {
      if (!rows.empty()) flush();
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
      if (line.ends_with(':')) flush();
    }
  }
  flush();
  return all;
}

std::string usage_of(const CommandInfo& command) {
  std::string usage = command.path;
  for (const OptionInfo& option : command.options) {
    if (!option.argument()) continue;
    const std::string shown = option.name + (option.repeats ? "..." : "");
    usage += option.required ? " " + shown : " [" + shown + "]";
  }
  for (const OptionInfo& option : command.options) {
    if (!option.argument() && option.required) usage += " " + option.name + " " + option.value_text();
  }
  return usage + (command.commands.empty() ? " [options]" : " COMMAND [options]");
}

Row row_of(const OptionInfo& option) {
  Row row{option.name, option.what};
  if (option.argument()) {
    row.left += option.repeats ? "..." : "";
    if (!option.choices.empty()) row.right += " (" + option.value_text() + ")";
  } else if (!option.value.empty()) {
    row.left += " " + option.value_text();
  }
  if (!option.shown_default.empty()) row.right += " (default " + option.shown_default + ")";
  return row;
}

}  // namespace

int help_columns() {
  return std::clamp(terminal_columns(), 40, kWidest);
}

std::string help_text(const CommandInfo& command, int columns) {
  std::string all = wrapped(command.what, columns) + '\n';
  all += "Usage: " + broken_command(usage_of(command), columns - 7, 0) + '\n';
  std::vector<std::string> groups;
  int widest = 0;
  for (const CommandInfo& each : command.commands) {
    widest = std::max(widest, display_width(each.name));
    if (std::find(groups.begin(), groups.end(), each.group) == groups.end()) groups.push_back(each.group);
  }
  for (const std::string& group : groups) {
    std::vector<Row> rows;
    for (const CommandInfo& each : command.commands) {
      if (each.group == group) rows.push_back({each.name, each.what});
    }
    all += titled(group.empty() ? "Commands" : group.c_str(), rows, columns, widest);
  }
  std::vector<Row> arguments, options;
  for (const OptionInfo& option : command.options) (option.argument() ? arguments : options).push_back(row_of(option));
  options.push_back({kHelpOption, "This text"});
  all += titled("Arguments", arguments, columns);
  all += titled("Options", options, columns);
  if (!command.footer.empty()) all += '\n' + footer_text(command.footer, columns);
  return all;
}

}  // namespace qkv::app
