#include "base/sync_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/descriptor.h"

namespace qkv {

std::string errno_text(int code) {
  return std::generic_category().message(code);
}

int sync_folder(const std::string& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return errno;
  if (::fsync(fd.get()) == 0 || errno == EINVAL) return 0;  // EINVAL: a file system that cannot sync folders
  return errno;
}

}  // namespace qkv
