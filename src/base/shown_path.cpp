#include "base/shown_path.h"

#include <map>
#include <mutex>

namespace qkv {
namespace {

std::mutex shown_lock;

std::map<std::string, std::string>& shown_paths() {
  static std::map<std::string, std::string> paths;
  return paths;
}

}  // namespace

void show_path_as(const std::string& path, const std::string& shown) {
  const std::lock_guard lock(shown_lock);
  if (shown.empty()) {
    shown_paths().erase(path);
  } else {
    shown_paths()[path] = shown;
  }
}

std::string with_shown_paths(std::string text) {
  const std::lock_guard lock(shown_lock);
  // From the last: a path may begin with another ("tmp-10" and "tmp-1").
  for (auto entry = shown_paths().rbegin(); entry != shown_paths().rend(); ++entry) {
    const auto& [path, shown] = *entry;
    for (size_t at = text.find(path); at != text.npos; at = text.find(path, at + shown.size())) {
      text.replace(at, path.size(), shown);
    }
  }
  return text;
}

}  // namespace qkv
