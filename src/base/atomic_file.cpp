#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/mapped_fault.h"
#include "base/output_path.h"
#include "base/shown_path.h"
#include "base/sync_folder.h"
#include "base/temporaries.h"

namespace qkv {
namespace {

// 0, or the errno of the step that failed.
int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int code = errno;
      if (code == EFAULT) touch_pages(bytes);
      return code;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

// Opening a pipe waits for its reader.
int open_stream(const OutputPlace& place) {
  if (place.descriptor >= 0) return ::fcntl(place.descriptor, F_DUPFD_CLOEXEC, 0);
  int fd = -1;
  do {
    fd = ::open(place.path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// The new content is in place; until the folder is synced, a power cut may bring the old one back.
void sync_after_rename(const std::string& name, const std::string& folder) {
  const int code = sync_folder(folder);
  QKV_CHECK(code == 0, "wrote ", name, " but cannot sync its folder: ", errno_text(code),
            Hint("the disk may be failing: a power cut now could undo the write"));
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path) {
  const OutputPlace place = output_place(path);
  name_ = place.name;
  target_ = place.path.string();
  folder_ = place.folder();
  if (place.kind == OutputPlace::Kind::stream) {
    fd_ = open_stream(place);
    QKV_CHECK(fd_ >= 0, "cannot write ", name_, ": ", errno_text(errno), Hint("choose what you may write to"));
    return;
  }
  QKV_CHECK(place.kind != OutputPlace::Kind::folder, name_, " is a folder but must be a file",
            Hint("name a file inside it"));
  temporary_ = std::make_unique<Temporary>(folder_, Temporary::Kind::file);
  fd_ = temporary_->fd();
  QKV_CHECK(fd_ >= 0, "cannot write ", name_, ": ", errno_text(errno), Hint("check the folder ", folder_));
}

AtomicFile::~AtomicFile() {
  drop();
}

void AtomicFile::drop() {
  if (temporary_ == nullptr && fd_ >= 0) ::close(fd_);
  temporary_.reset();
  fd_ = -1;
}

void AtomicFile::check(int code) {
  if (code == 0) return;
  const bool stream = temporary_ == nullptr;
  drop();
  QKV_FAIL("cannot write ", name_, " (", size_, " bytes): ", errno_text(code),
           stream ? Hint("it is a device or a pipe: it may be full, or its reader went away")
                  : Hint("check the folder ", folder_, " and its free space; what the file held before is untouched"));
}

int AtomicFile::flush() {
  const int code = write_all(fd_, gathered_);
  gathered_.clear();
  return code;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  constexpr size_t kGathered = size_t{1} << 16;
  QKV_ASSERT(fd_ >= 0, name_, ": a write after commit or after a write that failed");
  size_ += bytes.size();
  if (gathered_.size() + bytes.size() > kGathered) check(flush());
  if (bytes.size() > kGathered) {
    check(write_all(fd_, bytes));
  } else {
    gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::commit() {
  QKV_ASSERT(fd_ >= 0, name_, ": a commit after commit or after a write that failed");
  check(flush());
  const bool synced = ::fsync(fd_) == 0;
  if (temporary_ == nullptr) {
    check(synced || errno == EINVAL || errno == EROFS || errno == ENOTSUP ? 0 : errno);  // pipes have nothing to sync
    check(::close(std::exchange(fd_, -1)) == 0 ? 0 : errno);
    return;
  }
  check(synced ? 0 : errno);  // network file systems report a full disk here
  check(temporary_->rename_to(target_, 0));
  drop();
  sync_after_rename(name_, folder_);
}

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

AtomicFolder::AtomicFolder(const std::filesystem::path& path) {
  const OutputPlace place = new_folder_place(path);
  name_ = place.name;
  target_ = place.path.string();
  folder_ = place.folder();
  temporary_ = std::make_unique<Temporary>(folder_, Temporary::Kind::folder);
  QKV_CHECK(temporary_->fd() >= 0, "cannot make ", name_, ": ", errno_text(errno), Hint("check the folder ", folder_));
  path_ = temporary_->path();
  show_path_as(path_.string(), name_);
}

AtomicFolder::~AtomicFolder() = default;

void AtomicFolder::commit() {
  QKV_ASSERT(temporary_ != nullptr, name_, ": committed twice");
  const int synced = sync_folder(path_.string());
  QKV_CHECK(synced == 0, "cannot write ", name_, ": ", errno_text(synced), Hint("the disk may be failing"));
  // Some file systems know only a plain rename, which would replace an empty folder made meanwhile.
  const int renamed = temporary_->rename_to(target_, RENAME_NOREPLACE);
  QKV_CHECK(renamed == 0, "cannot make ", name_, ": ", errno_text(renamed), Hint("choose a name that is free"));
  show_path_as(path_.string(), "");
  temporary_.reset();
  sync_after_rename(name_, folder_);
}

}  // namespace qkv
