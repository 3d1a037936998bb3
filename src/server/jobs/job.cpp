#include "server/jobs/job.h"

#include <fmt/format.h>

#include <array>

namespace qkv::server {

const char* name_of(Job::Kind kind) {
  return kind == Job::Kind::training ? "training" : "lab";
}

const char* name_of(Job::State state) {
  static constexpr std::array kNames{"starting", "running", "paused", "stopping", "stopped", "finished", "failed"};
  return kNames[static_cast<size_t>(state)];
}

// "qkv: what happened", a hint, and the place in the source, which says nothing to whoever looks at the page.
std::string complaint_of(const std::string& errors, int exit_code) {
  constexpr std::string_view kMark = "qkv: ";
  size_t at = errors.starts_with(kMark) ? 0 : errors.npos;
  if (const size_t later = errors.rfind("\nqkv: "); later != errors.npos) at = later + 1;
  std::string made;
  std::string_view rest = at == errors.npos ? "" : std::string_view(errors).substr(at + kMark.size());
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.empty() || line.starts_with("at ")) continue;
    made += (made.empty() ? "" : "; ") + std::string(line);
  }
  if (exit_code > 128) {
    made =
        fmt::format("it was ended by signal {}{}{}", exit_code - 128,
                    exit_code - 128 == 9 ? " (there may be too little memory)" : "", made.empty() ? "" : ": " + made);
  }
  return made.empty() ? fmt::format("it ended with code {} and said nothing", exit_code) : made;
}

}  // namespace qkv::server
