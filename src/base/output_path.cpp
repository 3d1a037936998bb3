#include "base/output_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/sync_folder.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Place = OutputPlace::Kind;

Place kind_of(mode_t mode) {
  return S_ISREG(mode) ? Place::file : S_ISDIR(mode) ? Place::folder : Place::stream;
}

// N if the link is /dev/fd/N or /proc/self/fd/N, however it is spelt. A file behind it keeps its position that way.
std::optional<int> own_descriptor(const fs::path& link) {
  std::error_code failed;
  const fs::path folder = fs::canonical(link.parent_path(), failed);
  if (failed || folder != fs::path("/proc") / std::to_string(::getpid()) / "fd") return std::nullopt;
  const std::string number = link.filename().string();
  int fd = -1;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), fd);
  return code == std::errc() && end == number.data() + number.size() ? std::optional(fd) : std::nullopt;
}

void check_parent(const OutputPlace& place) {
  const std::string folder = place.folder();
  struct stat info {};
  const bool there = ::stat(folder.c_str(), &info) == 0;
  QKV_CHECK(there, "cannot write ", place.name, ": the folder ", folder, ": ", errno_text(errno),
            Hint("make it first:  mkdir -p ", folder));
  QKV_CHECK(S_ISDIR(info.st_mode), "cannot write ", place.name, ": ", folder, " is not a folder",
            Hint("choose another name"));
  QKV_CHECK(::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0, "cannot write ", place.name,
            ": the folder ", folder, ": ", errno_text(errno), Hint("choose a folder you may write to"));
}

}  // namespace

OutputPlace output_place(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as Linux
  QKV_CHECK(!path.empty(), "the name of an output is empty", Hint("give it a name"));
  OutputPlace place{.name = path.string(), .path = path};
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat info {};
    if (::lstat(place.path.c_str(), &info) != 0) {
      QKV_CHECK(errno == ENOENT, "cannot write ", place.name, ": ", errno_text(errno), Hint("choose another name"));
      return place;
    }
    if (!S_ISLNK(info.st_mode)) {
      place.kind = kind_of(info.st_mode);
      return place;
    }
    std::error_code failed;
    // An absolute target replaces all before it.
    const fs::path target = place.path.parent_path() / fs::read_symlink(place.path, failed);
    QKV_CHECK(!failed, "cannot write ", place.name, ": ", failed.message(), Hint("choose another name"));
    place.name = path.string() + " (a link to " + target.string() + ")";
    const std::optional<int> own = own_descriptor(place.path);
    // A pipe that a link in /proc leads to has no name.
    if (own || (::stat(place.path.c_str(), &info) == 0 && kind_of(info.st_mode) == Place::stream)) {
      place.kind = Place::stream;
      place.descriptor = own.value_or(-1);
      return place;
    }
    place.path = target;
    if (!place.path.has_filename()) place.path = place.path.parent_path();
  }
  QKV_FAIL("cannot write ", path.string(), ": ", errno_text(ELOOP), Hint("it is a link that leads to itself"));
}

OutputPlace new_folder_place(const fs::path& path) {
  const OutputPlace place = output_place(path.has_filename() ? path : path.parent_path());  // "out/" means "out"
  QKV_CHECK(place.kind != Place::stream, place.name, " is a device or a pipe, but a folder is to be made",
            Hint("choose another name"));
  QKV_CHECK(place.kind == Place::absent, place.name, " exists already",
            Hint("nothing is overwritten: choose another name, or remove it first"));
  return place;
}

void check_output_file(const fs::path& path, Existing existing) {
  const OutputPlace place = output_place(path);
  const bool folder = place.kind == Place::folder || !path.has_filename();
  QKV_CHECK(!folder, place.name, " is a folder but must be a file", Hint("name a file inside it"));
  QKV_CHECK(place.kind != Place::file || existing == Existing::replaced, place.name, " exists already",
            Hint("nothing is overwritten: choose another name, or remove it first"));
  if (place.kind != Place::stream) return check_parent(place);
  if (place.descriptor >= 0) return;
  QKV_CHECK(::faccessat(AT_FDCWD, place.path.c_str(), W_OK, AT_EACCESS) == 0, "cannot write ", place.name, ": ",
            errno_text(errno), Hint("choose what you may write to"));
}

void check_output_folder(const fs::path& path) {
  check_parent(new_folder_place(path));
}

}  // namespace qkv
