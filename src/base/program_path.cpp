#include "base/program_path.h"

#include <sys/auxv.h>

namespace qkv {
namespace {

namespace fs = std::filesystem;

fs::path started_file() {
  const auto* name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (name == nullptr) return {};
  std::error_code failed;
  const fs::path file = fs::canonical(name, failed);
  return failed ? fs::path() : file;
}

}  // namespace

fs::path program_path(const fs::path& root) {
  static const fs::path started = started_file();
  std::error_code failed;
  const fs::path program = fs::read_symlink(root / "proc/self/exe", failed);
  return failed ? started : program;
}

}  // namespace qkv
