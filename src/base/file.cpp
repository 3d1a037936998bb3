#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/mapped_fault.h"
#include "base/shown_path.h"
#include "base/sync_folder.h"

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

std::string folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

// Calls make(name) with names in the folder until one is free: a killed process with the same id may have left files.
// make returns < 0 on failure, with errno set.
template <class Make>
std::pair<std::string, int> make_temporary(const std::string& folder, const Make& make) {
  static std::atomic<uint64_t> number{0};
  std::string name;
  int made = -1;
  do {
    name = fmt::format("{}/{}{}-{}", folder, kTemporaryPrefix, ::getpid(), number++);
    made = make(name.c_str());
  } while (made < 0 && (errno == EEXIST || errno == EINTR));
  return {std::move(name), made};
}

// The new content is in place; until the folder is synced, a power cut may bring the old one back.
void sync_after_rename(const std::string& name, const std::string& folder) {
  const int code = sync_folder(folder);
  QKV_CHECK(code == 0, "wrote ", name, " but cannot sync its folder: ", errno_text(code),
            Hint("the disk may be failing: a power cut now could undo the write"));
}

}  // namespace

std::string errno_text(int code) {
  return std::generic_category().message(code);
}

int sync_folder(const std::string& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return errno;
  if (::fsync(fd.get()) == 0 || errno == EINVAL) return 0;  // EINVAL: a file system that cannot sync folders
  return errno;
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : name_(path.string()), folder_(folder_of(path)) {
  std::tie(temporary_, fd_) = make_temporary(
      folder_, [](const char* name) { return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  QKV_CHECK(fd_ >= 0, "cannot write ", name_, ": ", errno_text(errno), Hint("check the folder ", folder_));
}

AtomicFile::~AtomicFile() {
  drop();
}

void AtomicFile::drop() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(temporary_.c_str());
}

void AtomicFile::check(int code) {
  if (code == 0) return;
  drop();
  QKV_FAIL("cannot write ", name_, " (", size_, " bytes): ", errno_text(code),
           Hint("check the folder ", folder_, " and its free space; what the file held before is untouched"));
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
  check(::fsync(fd_) == 0 ? 0 : errno);
  const int closed = ::close(fd_) == 0 ? 0 : errno;  // network file systems report a full disk here
  const int renamed = closed == 0 && std::rename(temporary_.c_str(), name_.c_str()) != 0 ? errno : closed;
  fd_ = -1;
  if (renamed != 0) ::unlink(temporary_.c_str());
  check(renamed);
  sync_after_rename(name_, folder_);
}

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

AtomicFolder::AtomicFolder(const std::filesystem::path& path) : target_(path) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "out/" means "out"
  struct stat info {};
  QKV_CHECK(::lstat(target_.c_str(), &info) != 0, target_.string(), " exists already",
            Hint("choose another name, or remove it first"));
  int made = -1;
  std::tie(temporary_, made) = make_temporary(folder_of(target_), [](const char* name) { return ::mkdir(name, 0777); });
  const int code = errno;
  if (made < 0) temporary_.clear();
  QKV_CHECK(made >= 0, "cannot make ", target_.string(), ": ", errno_text(code),
            Hint("check the folder ", folder_of(target_)));
  show_path_as(temporary_.string(), target_.string());
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

void AtomicFolder::commit() {
  QKV_ASSERT(!temporary_.empty(), target_.string(), ": committed twice");
  const int synced = sync_folder(temporary_.string());
  QKV_CHECK(synced == 0, "cannot write ", target_.string(), ": ", errno_text(synced), Hint("the disk may be failing"));
  // Some file systems know only a plain rename, which would replace an empty folder made meanwhile.
  int renamed = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE);
  if (renamed != 0 && errno == EINVAL) renamed = std::rename(temporary_.c_str(), target_.c_str());
  QKV_CHECK(renamed == 0, "cannot make ", target_.string(), ": ", errno_text(errno),
            Hint("choose a name that is free"));
  show_path_as(temporary_.string(), "");
  temporary_.clear();
  sync_after_rename(target_.string(), folder_of(target_));
}

}  // namespace qkv
