// A folder in the system's place for temporary ones, removed with what is in it.
#pragma once

#include <filesystem>
#include <string>

namespace qkv {

class ScratchFolder {
 public:
  // `what` stands in its name; `hint` says what to do where none can be made.
  ScratchFolder(const std::string& what, const std::string& hint);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace qkv
