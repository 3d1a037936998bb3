// What goes to standard output and standard error.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace qkv::app {

// A terminal sequence of ours, "[31m" or "[2K", which SafeOutput lets pass.
std::string terminal_code(std::string_view code);

// While it lives, text from elsewhere cannot steer a terminal, whoever prints it: what std::cout and std::cerr get is
// escaped (base/printable.h), all but our own terminal codes. Files and pipes get from std::cout what was printed,
// unchanged. A character that comes in pieces is shown once it is whole.
class SafeOutput {
 public:
  SafeOutput();
  ~SafeOutput();
  SafeOutput(const SafeOutput&) = delete;
  SafeOutput& operator=(const SafeOutput&) = delete;

 private:
  class Filter;
  std::unique_ptr<Filter> out_, err_;  // none: unfiltered
};

}  // namespace qkv::app
