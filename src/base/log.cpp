#include "base/log.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <set>
#include <string>

#include "base/printable.h"
#include "base/terminal.h"

namespace qkv {
namespace {

constexpr size_t kLongestLine = 2000;  // room for an Error: its message, its hint and the place

struct Look {
  std::string_view label, colour;
};

Look look_of(Log level) {
  switch (level) {
    case Log::info:
      return {"", ""};
    case Log::warn:
      return {"warning: ", "\x1b[33m"};
    case Log::error:
      return {"error: ", "\x1b[31m"};
  }
  return {"", ""};
}

std::atomic<bool> dropping = false;

// Whether stderr takes a line now, or within a second if it took the last one.
bool is_read(bool last_was) {
  pollfd out{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&out, 1, last_was ? 1000 : 0) != 0;  // an error is write's to tell
}

void write_whole(std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // stderr is closed; nothing to be done
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void drop_unread_lines() {
  dropping = true;
}

void log_line(Log level, std::string_view text) {
  const Look look = look_of(level);
  std::string line = "qkv: ";
  if (!look.label.empty() && may_colour(STDERR_FILENO)) {
    line.append(look.colour).append(look.label).append("\x1b[0m");
  } else {
    line.append(look.label);
  }
  line.append(shortened(escaped(text), kLongestLine));
  if (!line.ends_with('\n')) line.push_back('\n');

  static std::mutex mutex;  // for the rare write that the system splits, and for what was dropped
  static size_t dropped = 0;
  const std::lock_guard lock(mutex);
  if (dropping && !is_read(dropped == 0)) {
    ++dropped;
    return;
  }
  if (dropped > 0)
    line.insert(0,
                "qkv: warning: " + std::to_string(dropped) + " lines before this one were dropped, nobody read them\n");
  dropped = 0;
  write_whole(line);
}

void warn_once(std::string_view key, std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> seen;
  {
    const std::lock_guard lock(mutex);
    if (!seen.emplace(key).second) return;
  }
  log_line(Log::warn, text);
}

}  // namespace qkv
