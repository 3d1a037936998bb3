// Whole files: read, map, and write so that a crash or a full disk leaves either the old content or the new. The same
// for a folder of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace qkv {

// Pipes and /proc files are read to their end too. More than limit bytes is an Error.
std::string read_file(const std::filesystem::path& path, size_t limit);

// A file mapped read-only. The bytes stay valid as long as this object and nobody shortens the file.
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

  // Gives the pages under these bytes back to the system; touching the bytes again reads them again. What is not of
  // this file is left alone.
  void release(std::span<const std::byte> bytes) const;

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

// Temporaries are named kTemporaryPrefix + something: what a killed process left behind can be found and removed.
inline constexpr const char* kTemporaryPrefix = ".qkv-tmp-";

// A file written piece by piece that appears under its name whole or not at all: a temporary in the same folder, synced
// and renamed by commit. Without commit, or after a write that failed, nothing is left and what the name held stays.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);  // small pieces are gathered
  void commit();
  uint64_t size() const { return size_; }

 private:
  void check(int code);
  int flush();
  void drop();

  std::string name_, folder_, temporary_;
  std::vector<std::byte> gathered_;
  uint64_t size_ = 0;
  int fd_ = -1;  // -1 once committed or dropped
};

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes);

// A folder that appears under its name with all its files or not at all. Files go to path() until commit; the name must
// be free, at the start and at the end.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::filesystem::path& path);
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder();

  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_, temporary_;  // temporary_ is empty once committed
};

}  // namespace qkv
