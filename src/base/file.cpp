#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/sync_folder.h"

namespace qkv {
namespace {

constexpr const char* kWrongFile = "this is probably not the file you meant";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct OpenedFile {
  OpenedFile(const std::string& name, int flags) : fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | flags)) {
    QKV_CHECK(fd.get() >= 0, "cannot open ", name, ": ", errno_text(errno), Hint("check the path"));
    QKV_CHECK(::fstat(fd.get(), &info) == 0, "cannot open ", name, ": ", errno_text(errno), Hint("check the path"));
    QKV_CHECK(!S_ISDIR(info.st_mode), name, " is a folder but must be a file", Hint("name a file inside it"));
  }

  Descriptor fd;
  struct stat info {};
};

// 0, or the errno of the step that failed.
int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
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

std::string read_file(const std::filesystem::path& path, size_t limit) {
  const std::string name = path.string();
  const OpenedFile file(name, 0);

  const auto size = narrow<size_t>(file.info.st_size, "file size");
  QKV_CHECK(size <= limit, name, " has ", size, " bytes but the limit for this file is ", limit, Hint(kWrongFile));

  // The size is a first guess: pipes and /proc files report 0, and a file may grow while it is read.
  // One extra byte detects the end without another read.
  std::string text(size + 1, '\0');
  size_t filled = 0;
  while (true) {
    const ssize_t got = ::read(file.fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    QKV_CHECK(got >= 0, "cannot read ", name, ": ", errno_text(errno), Hint("the disk may be failing"));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    QKV_CHECK(filled <= limit, name, " has more than ", limit, " bytes, the limit for this file", Hint(kWrongFile));
    if (filled == text.size()) text.resize(text.size() * 2 + 4096);
  }
  text.resize(filled);
  return text;
}

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  const OpenedFile file(name_, O_NONBLOCK);  // opening a pipe must fail below, not wait for a writer
  QKV_CHECK(S_ISREG(file.info.st_mode), name_, " is a pipe or a device but must be a file",
            Hint("copy it to a file first"));
  const auto size = narrow<size_t>(file.info.st_size, "file size");
  if (size == 0) return;  // mmap refuses empty files
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  QKV_CHECK(start != MAP_FAILED, "cannot map ", name_, " (", size, " bytes): ", errno_text(errno),
            Hint("the address space may be limited: see  ulimit -v"));
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release(std::span<const std::byte> bytes) const {
  const auto first = reinterpret_cast<uintptr_t>(bytes_.data()), begin = reinterpret_cast<uintptr_t>(bytes.data());
  if (bytes.empty() || begin < first || begin - first > bytes_.size()) return;
  if (bytes.size() > bytes_.size() - (begin - first)) return;
  // The first and last page may hold other bytes too; those are just read again.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t start = begin / page * page;
  ::madvise(reinterpret_cast<void*>(start), begin - start + bytes.size(), MADV_DONTNEED);  // a hint: may fail
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
  QKV_CHECK(renamed == 0, "cannot move ", temporary_.string(), " to ", target_.string(), ": ", errno_text(errno),
            Hint("choose a name that is free"));
  temporary_.clear();
  sync_after_rename(target_.string(), folder_of(target_));
}

}  // namespace qkv
