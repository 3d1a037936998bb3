#include "base/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/sync_folder.h"

namespace qkv {
AppendFile::AppendFile(const std::filesystem::path& path) : name_(path.string()) {
  fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  QKV_CHECK(fd_ >= 0, "cannot open ", name_, ": ", errno_text(errno), Hint("check the folder it is in"));
  size_ = ::lseek(fd_, 0, SEEK_END);
  sync_folder(path.has_parent_path() ? path.parent_path().string() : ".");  // errors show at the first sync()
}

AppendFile::~AppendFile() {
  ::close(fd_);
}

void AppendFile::append(std::string_view bytes) {
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t written = ::write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    const int code = errno;
    if (written < 0) {
      const bool cut = ::ftruncate(fd_, size_) == 0;
      QKV_FAIL("cannot write ", name_, " (", size_, " bytes and ", bytes.size(), " more): ", errno_text(code),
               cut ? Hint("check its free space; what it held is untouched")
                   : Hint("check its free space; its end may be incomplete"));
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(bytes.size());
}

void AppendFile::sync() const {
  QKV_CHECK(::fsync(fd_) == 0, "cannot sync ", name_, " (", size_, " bytes): ", errno_text(errno),
            Hint("the disk may be full or failing"));
}

}  // namespace qkv
