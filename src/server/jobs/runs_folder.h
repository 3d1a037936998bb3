// Where trainings that are started from the page are written: the folder that the server was told, or one of its own
// that is removed at the end. Never one that a client names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/scratch_folder.h"

namespace qkv::server {

class RunsFolder {
 public:
  explicit RunsFolder(std::string given) : given_(std::move(given)) {}  // empty: one of its own

  bool kept() const { return !given_.empty(); }
  std::filesystem::path next(const std::string& recipe);  // RECIPE-1, RECIPE-2, ...: the first that is free

 private:
  std::string given_;
  std::optional<ScratchFolder> own_;
};

}  // namespace qkv::server
