// A command line as one types it into a shell: how a report can be made again.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

class CommandLine {
 public:
  explicit CommandLine(std::string_view command) : command_(command) {}  // "qkv look"

  CommandLine& argument(std::string_view value);
  CommandLine& option(std::string_view name, std::string_view value);  // "--token", "2"
  CommandLine& flag(std::string_view name);

  // Every value quoted where the shell needs it. Empty if a value has a zero byte: no program can be given one.
  std::string text() const;

 private:
  void take(std::string& to, std::string_view value);

  std::string command_, arguments_, options_;
  bool dashed_ = false;  // an argument begins with a dash and stands behind --
  bool possible_ = true;
};

// As one word of a POSIX shell.
std::string shell_quoted(std::string_view word);

}  // namespace qkv
