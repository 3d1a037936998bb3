#include "common/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/output_path.h"
#include "base/printable.h"
#include "open/builtin_models.h"

namespace qkv::app {
namespace {

template <class Value>
struct IsMany : std::false_type {};
template <class Value>
struct IsMany<std::vector<Value>> : std::true_type {};

template <class Value>
const char* word_for() {
  using One = std::remove_cvref_t<Value>;
  if constexpr (std::is_same_v<One, double> || std::is_same_v<One, std::optional<double>>) return "NUMBER";
  if constexpr (std::is_integral_v<One> || std::is_same_v<One, std::optional<int>> ||
                std::is_same_v<One, std::optional<int64_t>>) {
    return "N";
  }
  if constexpr (std::is_same_v<One, std::filesystem::path>) return "FILE";
  return "TEXT";
}

template <class Value>
struct NumberOf {
  using Type = Value;
};
template <class Value>
struct NumberOf<std::optional<Value>> {
  using Type = Value;
};

// CLI11 reads 99999999999999999999 as the largest number there is, -1 as the largest unsigned one, and 1e400 as
// infinity. What is no number at all is left to it.
template <class Number>
std::string beyond(const std::string& word) {
  char* end = nullptr;
  errno = 0;
  if constexpr (std::is_floating_point_v<Number>) {
    const double value = std::strtod(word.c_str(), &end);
    if (*end != '\0' || std::isfinite(value)) return "";
    return fmt::format("{} is no finite number up to {:.2g}", printable(word), std::numeric_limits<Number>::max());
  } else {
    using Wide = std::conditional_t<std::is_signed_v<Number>, long long, unsigned long long>;
    const Wide value = std::is_signed_v<Number> ? static_cast<Wide>(std::strtoll(word.c_str(), &end, 0))
                                                : static_cast<Wide>(std::strtoull(word.c_str(), &end, 0));
    const bool wrapped = std::is_unsigned_v<Number> && word.find('-') != word.npos;
    if (*end != '\0' || (errno != ERANGE && !wrapped && std::in_range<Number>(value))) return "";
    return fmt::format("{} is not from {} to {}", printable(word), std::numeric_limits<Number>::min(),
                       std::numeric_limits<Number>::max());
  }
}

}  // namespace

Option Option::required() const {
  option_->required();
  info_->required = true;
  return *this;
}
Option Option::optional() const {
  option_->required(false);
  info_->required = false;
  return *this;
}
Option Option::one_of(const std::vector<std::string>& words) const {
  option_->check([words](const std::string& word) -> std::string {
    if (std::find(words.begin(), words.end(), word) != words.end()) return "";
    return fmt::format("{} is none of {}", printable(word), fmt::join(words, ", "));
  });
  info_->choices = words;
  return *this;
}
Option Option::known(const std::vector<std::string>& words) const {
  info_->known = words;
  return *this;
}
Option Option::known(std::span<const std::string_view> words) const {
  return known(std::vector<std::string>(words.begin(), words.end()));
}
Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}
Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}
Option Option::one_value() const {
  option_->allow_extra_args(false);
  info_->repeats = false;
  return *this;
}
Option Option::show_default() const {
  return show_default(option_->capture_default_str()->get_default_str());
}
Option Option::show_default(const std::string& text) const {
  info_->shown_default = text;
  return *this;
}
bool Option::given() const {
  return option_->count() > 0;
}

template <class Number>
Option Option::between(Number lowest, Number highest) const {
  option_->check(CLI::Range(lowest, highest));
  return *this;
}
template Option Option::between(int, int) const;
template Option Option::between(int64_t, int64_t) const;
template Option Option::between(double, double) const;

Command Command::group(const std::string& name) const {
  Command same = *this;
  same.group_ = name;
  return same;
}
Command Command::add_command(const std::string& name, const std::string& what) const {
  info_->commands.push_back({.name = name, .path = info_->path + " " + name, .what = what, .group = group_});
  return {*app_->add_subcommand(name, what), info_->commands.back()};
}
void Command::needs_command() const {
  app_->require_subcommand(1);
}
Command Command::one_of() const {
  CLI::App* group = app_->add_option_group("what", "One of these");
  group->require_option(1);
  return {*group, *info_};
}

Option Command::add(CLI::Option* option, OptionInfo info) const {
  if (!info.value.empty()) option->type_name(info.value);  // in CLI11's own messages too
  info_->options.push_back(std::move(info));
  return {option, &info_->options.back()};
}
Option Command::add_model(const std::string& name, std::string& value, const std::string& what) const {
  info_->models.emplace_back([&value] {
    if (!value.empty()) value = find_model(value);
  });
  return add_option(name, value, what).known(builtin_model_names());
}
Option Command::add_models(const std::string& name, std::vector<std::string>& values, const std::string& what) const {
  info_->models.emplace_back([&values] {
    for (std::string& value : values) value = find_model(value);
  });
  return add_option(name, values, what).known(builtin_model_names());
}
Option Command::add_tokenizer(const std::string& name, std::string& value, const std::string& what) const {
  info_->models.emplace_back([&value] {
    if (!value.empty()) value = find_model_or_other(value);
  });
  return add_option(name, value, what).known(builtin_model_names());
}
Option Command::add_flag(const std::string& name, bool& value, const std::string& what) const {
  return add(app_->add_flag(name, value, what), {.name = name, .what = what});
}
Option Command::add_threads(int& threads) const {
  return add_option("--threads", threads, "Threads to compute with; 0: as many as there are").between(0, 1024);
}
Option Command::option(const std::string& name) const {
  for (OptionInfo& info : info_->options) {
    if (info.name == name) return {app_->get_option(name), &info};
  }
  throw CLI::OptionNotFound(name);
}
void Command::footer(const std::string& text) const {
  info_->footer = text;
}
void Command::callback(std::function<void()> work) const {
  app_->callback([info = info_, work = std::move(work)] {
    for (const auto& check : info->checks) check();
    for (const auto& find : info->models) find();
    work();
  });
}

template <class Value>
Option Command::add_option(const std::string& name, Value& value, const std::string& what) const {
  const size_t space = std::min(name.find(' '), name.size());
  const bool argument = !name.starts_with("--");
  OptionInfo info{.name = name.substr(0, space),
                  .value = space < name.size() ? name.substr(space + 1)
                           : argument          ? name
                                               : word_for<Value>(),
                  .what = what,
                  .repeats = IsMany<Value>::value};
  CLI::Option* option = app_->add_option(info.name, value, what);
  using Number = typename NumberOf<Value>::Type;
  if constexpr (std::is_arithmetic_v<Number>) option->check(beyond<Number>);
  return add(option, std::move(info));
}
template <class Path>
Option Command::add_output_file(const std::string& name, Path& value, const std::string& what) const {
  info_->checks.emplace_back([&value] {
    if (!value.empty() && value != "-") check_output_file(value);  // "-" is standard output
  });
  return add_option(name, value, what);
}
template <class Path>
Option Command::add_output_folder(const std::string& name, Path& value, const std::string& what) const {
  info_->checks.emplace_back([&value] {
    if (!value.empty()) check_output_folder(value);
  });
  return add_option(name, value, what);
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
template Option Command::add_output_file(Name, std::string&, Name) const;
template Option Command::add_output_folder(Name, std::string&, Name) const;
template Option Command::add_output_folder(Name, std::filesystem::path&, Name) const;

}  // namespace qkv::app
