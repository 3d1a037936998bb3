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
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace qkv {
namespace {

constexpr const char* kWrongFile = "this is probably not the file you meant";

std::string errno_text(int code) {
  return std::generic_category().message(code);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

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

int write_and_sync(Descriptor& fd, std::span<const std::byte> bytes) {
  if (const int code = write_all(fd.get(), bytes)) return code;
  if (::fsync(fd.get()) != 0) return errno;
  return fd.close() == 0 ? 0 : errno;  // network file systems report a full disk here
}

int sync_folder(const std::string& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return errno;
  if (::fsync(fd.get()) == 0 || errno == EINVAL) return 0;  // EINVAL: a file system that cannot sync folders
  return errno;
}

}  // namespace

std::string read_file(const std::filesystem::path& path, size_t limit) {
  const std::string name = path.string();
  const OpenedFile file(name, 0);

  const auto size = narrow<size_t>(file.info.st_size, "file size");
  QKV_CHECK(size <= limit, name, " has ", size, " bytes but the limit for this file is ", limit, Hint(kWrongFile));

  // The size is only a first guess: pipes and /proc files say 0, and a file may grow while it is read.
  // One byte more than expected shows the end without another round.
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

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const std::string name = path.string();
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const auto check = [&](int code) {
    QKV_CHECK(code == 0, "cannot write ", name, " (", bytes.size(), " bytes): ", errno_text(code),
              Hint("check the folder ", folder, " and its free space; what the file held before is untouched"));
  };

  // The number counts on when a process killed earlier, with the same id, has left its file.
  static std::atomic<uint64_t> number{0};
  std::string temporary;
  int raw = -1;
  do {
    temporary = fmt::format("{}/{}{}-{}", folder, kTemporaryPrefix, ::getpid(), number++);
    raw = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (raw < 0 && (errno == EEXIST || errno == EINTR));
  check(raw < 0 ? errno : 0);

  Descriptor fd(raw);
  int code = write_and_sync(fd, bytes);
  if (code == 0 && std::rename(temporary.c_str(), name.c_str()) != 0) code = errno;
  if (code != 0) ::unlink(temporary.c_str());
  check(code);

  // From here on the new content is in place; only a power cut could still bring the old one back.
  code = sync_folder(folder);
  QKV_CHECK(code == 0, "wrote ", name, " (", bytes.size(), " bytes) but cannot sync its folder: ", errno_text(code),
            Hint("the disk may be failing: a power cut now could undo the write"));
}

}  // namespace qkv
