#include "common/command.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

namespace qkv::app {

Option Option::required() const {
  return Option(option_->required());
}
Option Option::optional() const {
  return Option(option_->required(false));
}
Option Option::one_of(const std::vector<std::string>& words) const {
  return Option(option_->check(CLI::IsMember(words)));
}
Option Option::needs(Option other) const {
  return Option(option_->needs(other.option_));
}
Option Option::excludes(Option other) const {
  return Option(option_->excludes(other.option_));
}
Option Option::one_value() const {
  return Option(option_->allow_extra_args(false));
}
Option Option::show_default() const {
  return Option(option_->capture_default_str());
}
Option Option::show_default(const std::string& text) const {
  return Option(option_->default_str(text));
}
bool Option::given() const {
  return option_->count() > 0;
}

template <class Number>
Option Option::between(Number lowest, Number highest) const {
  return Option(option_->check(CLI::Range(lowest, highest)));
}
template Option Option::between(int, int) const;
template Option Option::between(int64_t, int64_t) const;
template Option Option::between(double, double) const;

Command Command::add_command(const std::string& name, const std::string& what) const {
  return Command(*app_->add_subcommand(name, what));
}
void Command::needs_command() const {
  app_->require_subcommand(1);
}
Command Command::one_of() const {
  CLI::App* group = app_->add_option_group("what", "One of these");
  group->require_option(1);
  return Command(*group);
}

Option Command::add_flag(const std::string& name, bool& value, const std::string& what) const {
  return Option(app_->add_flag(name, value, what));
}
Option Command::option(const std::string& name) const {
  return Option(app_->get_option(name));
}
void Command::footer(const std::string& text) const {
  app_->footer(text);
}
void Command::callback(std::function<void()> work) const {
  app_->callback(std::move(work));
}

template <class Value>
Option Command::add_option(const std::string& name, Value& value, const std::string& what) const {
  return Option(app_->add_option(name, value, what));
}
using Name = const std::string&;
template Option Command::add_option(Name, int&, Name) const;
template Option Command::add_option(Name, int64_t&, Name) const;
template Option Command::add_option(Name, uint64_t&, Name) const;
template Option Command::add_option(Name, double&, Name) const;
template Option Command::add_option(Name, std::string&, Name) const;
template Option Command::add_option(Name, std::filesystem::path&, Name) const;
template Option Command::add_option(Name, std::vector<std::string>&, Name) const;
template Option Command::add_option(Name, std::vector<std::filesystem::path>&, Name) const;
template Option Command::add_option(Name, std::optional<int>&, Name) const;
template Option Command::add_option(Name, std::optional<int64_t>&, Name) const;
template Option Command::add_option(Name, std::optional<double>&, Name) const;
template Option Command::add_option(Name, std::optional<std::string>&, Name) const;

}  // namespace qkv::app
