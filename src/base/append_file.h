// A file that is only appended to, such as a log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace qkv {

class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);  // created if absent
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  // One write. If the disk is full, an Error, and the file keeps its length. Appended bytes survive a killed process;
  // after a power cut, only bytes before the last sync() are certain.
  void append(std::string_view bytes);
  void sync() const;

 private:
  std::string name_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace qkv
