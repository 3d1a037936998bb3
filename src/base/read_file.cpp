#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/checked.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mapped_fault.h"
#include "base/path.h"
#include "base/sync_folder.h"

namespace qkv {
namespace {

constexpr const char* kWrongFile = "this is probably not the file you meant";

struct OpenedFile {
  OpenedFile(const std::string& name, int flags) : fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | flags)) {
    const int code = fd.get() < 0 || ::fstat(fd.get(), &info) != 0 ? errno : 0;
    QKV_CHECK(code == 0, "cannot open ", name, ": ", errno_text(code), Hint(errno_hint(code)));
    QKV_CHECK(!S_ISDIR(info.st_mode), name, " is a folder but must be a file", Hint("name a file inside it"));
  }

  Descriptor fd;
  struct stat info {};
};

struct RegularFile : OpenedFile {
  // Opening a pipe must fail, not wait for a writer.
  explicit RegularFile(const std::string& name) : OpenedFile(name, O_NONBLOCK) {
    QKV_CHECK(S_ISREG(info.st_mode), name, " is a pipe or a device but must be a file",
              Hint("copy it to a file first"));
  }
};

std::string read_all(const OpenedFile& file, const std::string& name, size_t limit) {
  const auto size = narrow<size_t>(file.info.st_size, "file size");
  QKV_CHECK(size <= limit, name, " has ", size, " bytes but the limit for this file is ", limit, Hint(kWrongFile));

  // The size is a first guess: pipes and /proc files report 0, and a file may grow while it is read.
  // One extra byte detects the end without another read.
  std::string text(size + 1, '\0');
  size_t filled = 0;
  while (true) {
    const ssize_t got = ::read(file.fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    QKV_CHECK(got >= 0, "cannot read ", name, ": ", errno_text(errno), Hint(errno_hint(errno)));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    QKV_CHECK(filled <= limit, name, " has more than ", limit, " bytes, the limit for this file", Hint(kWrongFile));
    if (filled == text.size()) text.resize(text.size() * 2 + 4096);
  }
  text.resize(filled);
  return text;
}

}  // namespace

std::string read_file(const std::filesystem::path& path, size_t limit) {
  const std::string name = path.string();
  return read_all(RegularFile(name), name, limit);
}

std::string read_text(const std::filesystem::path& path, size_t limit) {
  const std::string name = path.string();
  return read_all(OpenedFile(name, 0), name, limit);
}

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  const RegularFile file(name_);
  const auto size = narrow<size_t>(file.info.st_size, "file size");
  if (size == 0) return;  // mmap refuses empty files
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  QKV_CHECK(start != MAP_FAILED, "cannot map ", name_, " (", size, " bytes): ", errno_text(errno),
            Hint(errno_hint(errno)));
  bytes_ = {static_cast<const std::byte*>(start), size};
  note_mapping(bytes_, name_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
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
