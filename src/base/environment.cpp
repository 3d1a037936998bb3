#include "base/environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/memory.h"
#include "base/path.h"
#include "base/shown_path.h"

namespace qkv {
namespace {

Error of_environment(std::string message, std::string hint) {
  return {Error::Kind::input, with_shown_paths(std::move(message)), std::move(hint), QKV_HERE};
}

// "filesystem error: cannot copy file: Permission denied [/from] [/to]" -> "cannot copy file"
std::string failed_call(const std::filesystem::filesystem_error& failure) {
  constexpr std::string_view kStart = "filesystem error: ";
  std::string text = failure.what();
  if (text.starts_with(kStart)) text.erase(0, kStart.size());
  return text.substr(0, text.find(": " + failure.code().message()));
}

Error of_files(const std::filesystem::filesystem_error& failure) {
  std::string text = failure.path1().string();
  if (!failure.path2().empty()) text += " to " + failure.path2().string();
  return of_environment(text + ": " + failure.code().message() + " (" + failed_call(failure) + ")",
                        errno_hint(failure.code().value()));
}

bool of_resources(const std::error_code& code) {
  if (code.category() != std::generic_category() && code.category() != std::system_category()) return false;
  for (const int resource : {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT, EIO, EACCES}) {
    if (code.value() == resource) return true;
  }
  return false;
}

}  // namespace

std::optional<Error> environment_error(const std::exception& failure) {
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&failure)) return of_files(*files);
  if (const auto* refused = dynamic_cast<const std::system_error*>(&failure)) {
    if (!of_resources(refused->code())) return std::nullopt;
    return of_environment("the system refused: " + refused->code().message(), errno_hint(refused->code().value()));
  }
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return of_environment("out of memory: " + memory_text(), kMemoryHint);
  }
  if (dynamic_cast<const std::length_error*>(&failure) != nullptr) {
    return of_environment("out of memory: asked for more than any machine has",
                          "one of the numbers given is far too large: a size, a length or a count");
  }
  return std::nullopt;
}

void open_standard_descriptors() {
  constexpr std::array<int, 3> kModes{O_RDONLY, O_WRONLY, O_WRONLY};
  for (int fd = 0; fd < std::ssize(kModes); ++fd) {
    // The lowest free number is the one that was asked for, as those below it are open.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", kModes[static_cast<size_t>(fd)]);
  }
}

}  // namespace qkv
