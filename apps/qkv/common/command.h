// A command: its name, its options, its help and what it does. CLI11 reads the command line; its headers take seconds
// of every file that sees them, so only command.cpp and main.cpp do.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace qkv::app {

// One option or argument. What each of these returns is the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  Option optional() const;  // what was required before
  Option one_of(const std::vector<std::string>& words) const;
  template <class Number>  // int, int64_t or double
  Option between(Number lowest, Number highest) const;
  Option needs(Option other) const;
  Option excludes(Option other) const;
  Option one_value() const;  // each time it is given; the next word is the next argument
  Option show_default() const;
  Option show_default(const std::string& text) const;

  bool given() const;

 private:
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Command add_command(const std::string& name, const std::string& what) const;
  void needs_command() const;  // one of those added
  Command one_of() const;      // of the options added to what this returns, exactly one is given

  // "--name", or "NAME" for an argument. The value lives as long as the command; its type is one of those at the end of
  // command.cpp.
  template <class Value>
  Option add_option(const std::string& name, Value& value, const std::string& what) const;
  Option add_flag(const std::string& name, bool& value, const std::string& what) const;
  Option option(const std::string& name) const;  // one added before

  void footer(const std::string& text) const;  // below the options in --help
  void callback(std::function<void()> work) const;

 private:
  CLI::App* app_;
};

}  // namespace qkv::app
