// JSON lines that a killed process leaves whole, and that can be taken back to a step.
#pragma once

#include <memory>

#include "base/append_file.h"
#include "base/json.h"

namespace qkv {

class LineFile {
 public:
  explicit LineFile(std::filesystem::path path) : path_(std::move(path)) {}

  void append(const Json& line);  // the file is made at the first
  void heal();                    // a last line without an end is cut off
  void drop_after(int64_t step);  // lines whose "step" is larger, and those that are no JSON
  std::shared_ptr<const AppendFile> file() const { return file_; }  // null before the first line

 private:
  std::filesystem::path path_;
  std::shared_ptr<AppendFile> file_;
};

}  // namespace qkv
