// A JSON-lines log that survives a killed process and can be cut back to a step when a run resumes.
#pragma once

#include <memory>

#include "base/append_file.h"
#include "base/json.h"

namespace qkv {

class JsonlFile {
 public:
  explicit JsonlFile(std::filesystem::path path) : path_(std::move(path)) {}

  void append(const Json& line);  // creates the file if needed
  // Removes lines whose "step" is larger, invalid JSON, and a last line without a newline.
  void remove_after(int64_t step);
  std::shared_ptr<const AppendFile> file() const { return file_; }  // null before the first line

 private:
  void drop_partial_line();

  std::filesystem::path path_;
  std::shared_ptr<AppendFile> file_;
};

}  // namespace qkv
