#include "base/scratch_folder.h"

#include <stdlib.h>

#include "base/error.h"

namespace qkv {

ScratchFolder::ScratchFolder(const std::string& what, const std::string& hint) {
  const std::filesystem::path place = std::filesystem::temp_directory_path();
  std::string name = (place / ("qkv-" + what + "-XXXXXX")).string();
  QKV_CHECK(::mkdtemp(name.data()) != nullptr, "no folder can be made in ", place.string(), Hint(hint));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace qkv
