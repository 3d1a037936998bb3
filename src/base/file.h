// Whole files: read, map, and write so that a crash or a full disk leaves either the old content or the new.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

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

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

// Temporaries are named kTemporaryPrefix + something: what a killed process left behind can be found and removed.
inline constexpr const char* kTemporaryPrefix = ".qkv-tmp-";

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace qkv
