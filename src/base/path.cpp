#include "base/path.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/printable.h"
#include "base/sync_folder.h"

namespace qkv {

PathKind kind_of_path(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const int code = errno;
    QKV_CHECK(code == ENOENT || code == ENOTDIR, "cannot look at ", printable(path.string()), ": ", errno_text(code),
              Hint(errno_hint(code)));
    return PathKind::absent;
  }
  return S_ISREG(info.st_mode) ? PathKind::file : S_ISDIR(info.st_mode) ? PathKind::folder : PathKind::other;
}

bool is_there(const std::filesystem::path& path) {
  return kind_of_path(path) != PathKind::absent;
}

bool is_file(const std::filesystem::path& path) {
  return kind_of_path(path) == PathKind::file;
}

bool is_folder(const std::filesystem::path& path) {
  return kind_of_path(path) == PathKind::folder;
}

std::vector<std::filesystem::path> folder_entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code failed;
  std::filesystem::directory_iterator at(folder, failed);
  for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) entries.push_back(at->path());
  QKV_CHECK(!failed, "cannot list the folder ", folder.string(), ": ", failed.message(),
            Hint(errno_hint(failed.value())));
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::string errno_hint(int code) {
  switch (code) {
    case EACCES:
    case EPERM:
      return "it is there but may not be used: check the permissions of it and of the folders above it with  ls -ld";
    case ENAMETOOLONG:
      return "use a shorter name: most file systems allow 255 bytes for a name and 4096 for a path";
    case ELOOP:
      return "symbolic links point at one another: see where they lead with  ls -l";
    case EMFILE:
    case ENFILE:
      return "too many files are open: raise the limit with  ulimit -n";
    case ENOSPC:
    case EDQUOT:
      return "free some space (df -h) or some inodes (df -i), or choose another disk";
    case EROFS:
      return "the disk is read-only: choose another";
    case ENOMEM:
      return "free some memory, or raise the limit on the address space with  ulimit -v";
    case EAGAIN:
      return "use fewer threads (--threads), or raise the limits on processes and memory (ulimit -u, ulimit -v)";
    case EIO:
      return "the disk may be failing: see  dmesg";
    case ESTALE:
      return "the network disk went away: mount it again";
    default:
      return "check the path";
  }
}

}  // namespace qkv
