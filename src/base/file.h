// Reading, mapping and atomic writing of files and folders: after a crash or a full disk, either the old content is
// there or the new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace qkv {

// The whole of a regular file, or of a file of /proc. More than `limit` bytes is an Error.
std::string read_file(const std::filesystem::path& path, size_t limit);

// A text a user names, which may come from a pipe or a terminal: reads to the end.
std::string read_text(const std::filesystem::path& path, size_t limit);

// A read-only mapping. The bytes are valid while this object lives. If the file is shortened meanwhile, reading what is
// gone ends the program with a message (base/mapped_fault.h).
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

  // Drops the pages of these bytes from memory; the next access reads them again. Bytes outside this file are ignored.
  void release(std::span<const std::byte> bytes) const;

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

class Temporary;

// Prefix of temporary names, so that leftovers of killed processes can be found and removed (base/temporaries.h).
inline constexpr const char* kTemporaryPrefix = ".qkv-tmp-";

// Writes a file atomically: a temporary in the same folder, synced and renamed by commit(). Without commit(), or after
// a failed write, the temporary is removed and the old file stays. Through a link, its target is replaced and the link
// stays. A device or a pipe is written to directly.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);  // buffered
  void commit();
  uint64_t size() const { return size_; }

 private:
  void check(int code);
  int flush();
  void drop();

  std::string name_, target_, folder_;
  std::unique_ptr<Temporary> temporary_;  // null for a device or a pipe
  std::vector<std::byte> gathered_;
  uint64_t size_ = 0;
  int fd_ = -1;  // -1 once committed or dropped
};

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes);

// Writes a folder atomically. Files go to path() until commit(); the final name must not exist, at the start and at the
// end. It may be a link to a name that does not exist.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::filesystem::path& path);
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder();

  const std::filesystem::path& path() const { return path_; }
  void commit();

 private:
  std::string name_, target_, folder_;
  std::filesystem::path path_;
  std::unique_ptr<Temporary> temporary_;  // null once committed
};

}  // namespace qkv
