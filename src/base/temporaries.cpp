#include "base/temporaries.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/file.h"

namespace qkv {

// The list a signal handler walks. Entries are never freed but used again, so that it needs no lock.
struct TemporaryEntry {
  enum State : int { kFree, kFilling, kLive, kRemoving };
  std::atomic<int> state{kFilling};
  std::string path;  // fixed while kLive or kRemoving
  TemporaryEntry* next = nullptr;

  bool moves(int from, int to) { return state.compare_exchange_strong(from, to); }
};

namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<TemporaryEntry*> all_entries{nullptr};
std::atomic<bool> dying{false};

[[noreturn]] void wait_for_the_end() {
  while (true) ::pause();
}

TemporaryEntry* note_temporary(const std::string& path) {
  TemporaryEntry* entry = all_entries;
  while (entry != nullptr && !entry->moves(TemporaryEntry::kFree, TemporaryEntry::kFilling)) entry = entry->next;
  if (entry == nullptr) {
    entry = new TemporaryEntry;
    entry->next = all_entries;
    while (!all_entries.compare_exchange_weak(entry->next, entry)) continue;
  }
  entry->path = path;
  entry->state = TemporaryEntry::kLive;
  return entry;
}

// Calls only what is safe in a signal handler. Links are removed, not followed.
void remove_tree(int folder, const char* name, int depth) {
  if (::unlinkat(folder, name, 0) == 0 || (errno != EISDIR && errno != EPERM) || depth == 0) return;
  const int fd = ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  alignas(dirent64) char buffer[2048];
  for (ssize_t got = 0; (got = ::getdents64(fd, buffer, sizeof buffer)) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* inside = reinterpret_cast<const dirent64*>(buffer + at);
      at += inside->d_reclen;
      if (std::strcmp(inside->d_name, ".") == 0 || std::strcmp(inside->d_name, "..") == 0) continue;
      remove_tree(fd, inside->d_name, depth - 1);
    }
  }
  ::close(fd);
  ::unlinkat(folder, name, AT_REMOVEDIR);
}

// Several times: other threads may still be adding files.
void remove_all_of(const char* path) {
  constexpr int kTimes = 20, kDeepest = 32;
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
  struct stat info {};
  for (int i = 0; i < kTimes && ::lstat(path, &info) == 0; ++i) {
    if (i > 0) ::nanosleep(&kPause, nullptr);
    remove_tree(AT_FDCWD, path, kDeepest);
  }
}

// The lock of a file system may be known to one machine alone, so names carry the machine.
const std::string& prefix_here() {
  static const std::string kPrefix = [] {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    uint32_t hash = 0x811c9dc5;  // FNV-1a
    for (const char* c = host; *c != '\0'; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 0x01000193;
    return fmt::format("{}{:08x}-", kTemporaryPrefix, hash);
  }();
  return kPrefix;
}

// Locks work on one opening of a file, so those of this process are held too.
void remove_if_stale(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || info.st_uid != ::geteuid()) return;
  const bool folder = S_ISDIR(info.st_mode);
  if (!folder && !S_ISREG(info.st_mode)) return;
  const int fd = ::open(path.c_str(), (folder ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) remove_all_of(path.c_str());
  ::close(fd);
}

// Once for each folder that this process writes to.
void remove_stale_temporaries(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::string> done;
  {
    const std::lock_guard hold(mutex);
    if (!done.insert(folder).second) return;
  }
  std::vector<std::string> found;
  std::error_code failed;
  for (auto at = std::filesystem::directory_iterator(folder, failed);
       !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
    if (at->path().filename().string().starts_with(prefix_here())) found.push_back(at->path().string());
  }
  for (const std::string& path : found) remove_if_stale(path);
}

// A descriptor of the new file or folder, or -1.
int make_on_disk(const char* path, Temporary::Kind kind) {
  if (kind == Temporary::Kind::file) return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (::mkdir(path, 0777) != 0) return -1;
  const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) return fd;
  const int code = errno;
  ::rmdir(path);
  errno = code;
  return -1;
}

// False where another process took it for stale before it could be locked. Without locks, none is ever taken for stale.
bool lock_new(int fd, const char* path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat opened {
  }, there{};
  return ::fstat(fd, &opened) == 0 && ::lstat(path, &there) == 0 && opened.st_ino == there.st_ino &&
         opened.st_dev == there.st_dev;
}

}  // namespace

Temporary::Temporary(const std::string& folder, Kind kind) {
  static std::atomic<uint64_t> number{0};
  if (dying) wait_for_the_end();
  remove_stale_temporaries(folder);
  while (true) {
    path_ = fmt::format("{}/{}{}-{}", folder, prefix_here(), ::getpid(), number++);
    fd_ = make_on_disk(path_.c_str(), kind);
    if (fd_ < 0 && (errno == EEXIST || errno == EINTR)) continue;
    if (fd_ < 0) return;
    if (lock_new(fd_, path_.c_str())) break;
    ::close(fd_);
  }
  entry_ = note_temporary(path_);
}

Temporary::~Temporary() {
  if (entry_ == nullptr) return;
  remove_all_of(path_.c_str());
  forget();
}

int Temporary::rename_to(const std::string& name, unsigned flags) {
  int renamed = ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name.c_str(), flags);
  if (renamed != 0 && errno == EINVAL && flags != 0) renamed = std::rename(path_.c_str(), name.c_str());
  if (renamed != 0) return errno;
  forget();
  return 0;
}

void Temporary::forget() {
  if (!std::exchange(entry_, nullptr)->moves(TemporaryEntry::kLive, TemporaryEntry::kFree)) wait_for_the_end();
  ::close(std::exchange(fd_, -1));
}

void remove_temporaries_on_signals() {
  struct sigaction action = {};
  action.sa_handler = die_of_signal;
  for (const int signal : kEndingSignals) sigaddset(&action.sa_mask, signal);
  for (const int signal : kEndingSignals) {
    struct sigaction now = {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
}

void die_of_signal(int signal) {
  if (dying.exchange(true)) return;
  for (TemporaryEntry* entry = all_entries; entry != nullptr; entry = entry->next) {
    if (entry->moves(TemporaryEntry::kLive, TemporaryEntry::kRemoving)) remove_all_of(entry->path.c_str());
  }
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace qkv
