#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
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

}  // namespace qkv
