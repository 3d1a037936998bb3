// A command: its name, its options, its help and what it does. CLI11 reads the command line; its headers take seconds
// of every file that sees them, so only command.cpp and main.cpp do.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/command_info.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace qkv::app {

// One option or argument. What each of these returns is the same option.
class Option {
 public:
  Option(CLI::Option* option, OptionInfo* info) : option_(option), info_(info) {}

  Option required() const;
  Option optional() const;  // what was required before
  Option one_of(const std::vector<std::string>& words) const;
  Option known(const std::vector<std::string>& words) const;  // for completion; others may be given
  Option known(std::span<const std::string_view> words) const;
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
  OptionInfo* info_;
};

class Command {
 public:
  Command(CLI::App& app, CommandInfo& info) : app_(&app), info_(&info) {}

  Command group(const std::string& name) const;  // commands added to what this returns stand under this heading
  Command add_command(const std::string& name, const std::string& what) const;
  void needs_command() const;  // one of those added
  Command one_of() const;      // of the options added to what this returns, exactly one is given

  // "--name VALUE", or "NAME" for an argument. VALUE is the word --help shows: FILE, DIR, MODEL, TEXT, ...; without
  // one it is N or NUMBER, as the type is. The value lives as long as the command; its type is one of those at the end
  // of command.cpp.
  template <class Value>
  Option add_option(const std::string& name, Value& value, const std::string& what) const;
  // What it names is written by the command: an Error before the work if that cannot be. Of a std::string or a path.
  template <class Path>
  Option add_output_file(const std::string& name, Path& value, const std::string& what) const;
  template <class Path>
  Option add_output_folder(const std::string& name, Path& value, const std::string& what) const;
  // A model to read: a path, or the name of a built-in one, which becomes its path before the work.
  Option add_model(const std::string& name, std::string& value, const std::string& what) const;
  Option add_models(const std::string& name, std::vector<std::string>& values, const std::string& what) const;
  // The same for a tokenizer, whose option may take other words too.
  Option add_tokenizer(const std::string& name, std::string& value, const std::string& what) const;
  Option add_flag(const std::string& name, bool& value, const std::string& what) const;
  Option add_threads(int& threads) const;        // --threads
  Option option(const std::string& name) const;  // one added before

  void footer(const std::string& text) const;  // below the options in --help
  void callback(std::function<void()> work) const;

 private:
  Option add(CLI::Option* option, OptionInfo info) const;

  CLI::App* app_;
  CommandInfo* info_;
  std::string group_ = {};
};

}  // namespace qkv::app
