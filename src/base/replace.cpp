#include "base/replace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/sync_folder.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

void check_synced(const fs::path& name) {
  const int code = sync_folder(name.has_parent_path() ? name.parent_path().string() : ".");
  QKV_CHECK(code == 0, "changed ", name.string(), " but cannot sync its folder: ", errno_text(code),
            Hint("the disk may be failing: a power cut now could undo it"));
}

}  // namespace

void replace_link(const fs::path& link, const fs::path& target) {
  std::error_code none;
  QKV_CHECK(fs::is_symlink(link, none) || !fs::exists(link, none), link.string(), " is in the way: it is no link",
            Hint("move it away"));
  const fs::path temporary = link.parent_path() / (kTemporaryPrefix + link.filename().string());
  ::unlink(temporary.c_str());  // left by a killed process
  const bool made = ::symlink(target.c_str(), temporary.c_str()) == 0 && ::rename(temporary.c_str(), link.c_str()) == 0;
  const int code = errno;
  if (!made) ::unlink(temporary.c_str());
  QKV_CHECK(made, "cannot link ", link.string(), " to ", target.string(), ": ", errno_text(code),
            Hint("check the folder and its free space"));
  check_synced(link);
}

void replace_folder(const fs::path& fresh, const fs::path& name) {
  // If the file system cannot exchange two names, for a moment neither exists; both folders are complete then.
  const bool exchanged = ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE) == 0;
  std::error_code failed;
  if (!exchanged) {
    QKV_CHECK(errno == EINVAL || errno == ENOSYS, "cannot move ", fresh.string(), " to ", name.string(), ": ",
              errno_text(errno), Hint("check both folders"));
    fs::remove_all(name, failed);
    if (!failed) fs::rename(fresh, name, failed);
    QKV_CHECK(!failed, "cannot move ", fresh.string(), " to ", name.string(), ": ", failed.message(),
              Hint("check both folders"));
  }
  check_synced(name);
  if (exchanged) fs::remove_all(fresh, failed);  // the old one; failing to remove it is harmless
}

}  // namespace qkv
