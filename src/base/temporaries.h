// Temporary files and folders: what is being written stands beside its final name until it is complete. A process ended
// by a signal removes its own on the way out. Those of killed processes are removed when a file or folder is next
// written beside them; a lock, held as long as the process lives, tells them from those still in use.
#pragma once

#include <cstdint>
#include <string>

namespace qkv {

struct TemporaryEntry;

class Temporary {
 public:
  enum class Kind : uint8_t { file, folder };

  // Made in `folder`, under a free name. On failure fd() is -1, with errno set.
  Temporary(const std::string& folder, Kind kind);
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary();  // removes it, unless it was renamed

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }  // of a file, to write to it

  // 0, or an errno. With `flags` of renameat2 where the file system knows them.
  int rename_to(const std::string& name, unsigned flags);

 private:
  void forget();

  std::string path_;
  TemporaryEntry* entry_ = nullptr;  // null if there is none on disk
  int fd_ = -1;
};

// SIGINT, SIGTERM and SIGHUP, unless handled or ignored already, remove the temporaries before they end the process.
void remove_temporaries_on_signals();

// Called by signal handlers: removes the temporaries and ends the process as the signal would have. Returns only where
// another call is doing so.
void die_of_signal(int signal);

}  // namespace qkv
