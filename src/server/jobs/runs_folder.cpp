#include "server/jobs/runs_folder.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/path.h"

namespace qkv::server {

namespace fs = std::filesystem;

RunsFolder::~RunsFolder() {
  std::error_code ignored;
  if (!own_.empty()) fs::remove_all(own_, ignored);
}

fs::path RunsFolder::next(const std::string& recipe) {
  if (!kept() && own_.empty()) {
    std::string name = (fs::temp_directory_path() / "qkv-page-XXXXXX").string();
    QKV_CHECK(::mkdtemp(name.data()) != nullptr, "no folder can be made in ", fs::temp_directory_path().string(),
              Hint("name one with --runs DIR"));
    own_ = name;
  }
  const fs::path folder = kept() ? given_ : own_;
  std::error_code failed;
  fs::create_directories(folder, failed);
  QKV_CHECK(!failed, "cannot make the folder ", folder.string(), ": ", failed.message(),
            Hint("name another with --runs DIR"));
  for (int n = 1;; ++n) {
    fs::path run = folder / (recipe + "-" + std::to_string(n));
    if (!is_there(run)) return run;
  }
}

}  // namespace qkv::server
