#include "torch_peer.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <iostream>

#include "base/error.h"

namespace qkv::bench {
namespace {

// The standard output of a program, or nothing if it failed.
std::string output_of(std::vector<std::string> command) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "";
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const bool started = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), ::environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; started && (got = ::read(ends[0], piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 1;
  if (started) ::waitpid(child, &status, 0);
  return status == 0 ? text : "";
}

}  // namespace

Json torch_peer(const std::string& script, const std::string& work, const Json& spec) {
  if (script.empty()) return {};
  constexpr const char* kSees =
      "from importlib.util import find_spec as find; print(bool(find('torch')) and "
      "__import__('torch').cuda.is_available())";
  if (output_of({"python3", "-c", kSees}) != "True\n") {
    std::cerr << "bench: python3 has no PyTorch that sees a GPU; it is not measured\n";
    return {};
  }
  const std::string text = output_of({"python3", script, work, spec.dump()});
  if (text.empty()) {
    std::cerr << "bench: PyTorch failed; it is not measured\n";
    return {};
  }
  return parse_json(text, script);
}

}  // namespace qkv::bench
