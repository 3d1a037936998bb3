#include "server/jobs/runs_folder.h"

#include "base/error.h"
#include "base/path.h"

namespace qkv::server {

namespace fs = std::filesystem;

fs::path RunsFolder::next(const std::string& recipe) {
  if (!kept() && !own_) own_.emplace("page", "name one with --runs DIR");
  const fs::path folder = kept() ? fs::path(given_) : own_->path();
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
