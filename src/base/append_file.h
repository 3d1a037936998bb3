// A file that grows at its end, as logs do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace qkv {

class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);  // made if it is not there
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  // All of it in one write; a disk that is full is an Error and the file is as long as before. Killed processes have
  // written what they appended, a power cut takes what came after the last sync.
  void append(std::string_view bytes);
  void sync() const;

 private:
  std::string name_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace qkv
