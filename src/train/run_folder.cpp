#include "train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/replace.h"
#include "train/checkpoint_files.h"
#include "train/jsonl_file.h"
#include "train/tensorboard.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestRecipe = 16 << 20;
constexpr const char *kRecipe = "recipe.json", *kCheckpoints = "checkpoints", *kBest = "best", *kLast = "last";
constexpr std::string_view kStep = "step-";

void remove_temporaries(const fs::path& run) {
  std::vector<fs::path> stale;
  for (auto at = fs::recursive_directory_iterator(run); at != fs::recursive_directory_iterator(); ++at) {
    if (!at->path().filename().string().starts_with(kTemporaryPrefix)) continue;
    stale.push_back(at->path());
    if (at->is_directory() && !at->is_symlink()) at.disable_recursion_pending();
  }
  for (const fs::path& path : stale) fs::remove_all(path);
}

std::string checkpoint_name(int64_t step) {
  return fmt::format("{}{:08}", kStep, step);
}

// Steps of the existing checkpoints, newest first. A folder that cannot be listed is an Error, not an empty one.
std::vector<int64_t> checkpoint_steps(const fs::path& checkpoints) {
  std::vector<int64_t> steps;
  if (!is_there(checkpoints)) return steps;
  for (const fs::path& entry : folder_entries(checkpoints)) {
    const std::string name = entry.filename();
    if (!name.starts_with(kStep)) continue;
    int64_t step = 0;
    const char* end = name.data() + name.size();
    const auto [at, code] = std::from_chars(name.data() + kStep.size(), end, step);
    if (code == std::errc() && at == end && checkpoint_name(step) == name) steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

void write_recipe(const fs::path& file, const Recipe& recipe) {
  const std::string text = to_json(recipe).dump(2) + "\n";
  write_file_atomic(file, std::as_bytes(std::span(text)));
}

void point_to(const fs::path& run, const char* link, int64_t step) {
  replace_link(run / link, fs::path(kCheckpoints) / checkpoint_name(step));
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!is_there(folder)) return files;
  for (const fs::path& entry : folder_entries(folder)) {
    if (is_file(entry)) files.push_back(entry);
  }
  return files;
}

}  // namespace

// Locks the folder itself, so no lock file is left behind however the process ends.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    // File systems without locks fail with another errno: then there is no lock.
    const bool taken = fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (taken) ::close(fd_);
    QKV_CHECK(!taken, folder.string(), " is in use: another process trains in it",
              Hint("wait for it, or stop it first"));
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  int fd_;
};

struct RunFolder::State {
  explicit State(const fs::path& run) : path(run), lock(run), log(run / "log.jsonl"), samples(run / "samples.jsonl") {}
  ~State() {
    try {
      finish();
    } catch (const std::exception& e) {
      log_line(Log::error, e.what());
    }
  }

  void finish();
  void write(const CheckpointCopy& copy, bool best);
  void remove_old();

  fs::path path;
  Recipe recipe;
  FolderLock lock;
  JsonlFile log, samples;
  std::shared_ptr<EventFile> events;
  int64_t restarted = -1;  // step the event file resumes from, until that event is written

  std::thread writer;
  std::exception_ptr failure;
  std::mutex mutex;  // guards the members below
  bool writing = false;
  int64_t keep = 0, newest = -1;  // 0: all; -1: nothing saved yet
};

void RunFolder::State::finish() {
  if (writer.joinable()) writer.join();
  if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
}

void RunFolder::State::write(const CheckpointCopy& copy, bool best) {
  const int64_t step = copy.counters.step;
  const fs::path folder = path / kCheckpoints / checkpoint_name(step);
  try {
    write_checkpoint(folder, copy, files_in(path / "prepared" / "tokenizer"));
    point_to(path, kLast, step);
    if (best) point_to(path, kBest, step);
  } catch (const Error& e) {
    throw Error(e.kind(), folder.string() + " was not saved: " + e.message(),
                "earlier checkpoints are as they were; " + e.hint(), e.where());
  } catch (const fs::filesystem_error& e) {
    QKV_FAIL(folder.string(), " was not saved: ", e.what(), Hint("earlier checkpoints are as they were"));
  }
  const std::lock_guard hold(mutex);
  newest = step;
}

// Checkpoints of steps after the newest are left alone: a resumed run replaces them. What cannot be removed is said.
void RunFolder::State::remove_old() {
  if (keep == 0) return;
  std::error_code failed;
  const std::string best = fs::read_symlink(path / kBest, failed).filename();
  int64_t kept = 0;
  std::vector<int64_t> steps;
  try {
    steps = checkpoint_steps(path / kCheckpoints);
  } catch (const Error& e) {
    log_line(Log::warn, "old checkpoints are not removed: " + e.message());
  }
  for (const int64_t step : steps) {
    if (newest >= 0 && step > newest) continue;
    if (++kept <= keep || checkpoint_name(step) == best) continue;
    const fs::path old = path / kCheckpoints / checkpoint_name(step);
    const fs::path away = path / kCheckpoints / (kTemporaryPrefix + checkpoint_name(step));
    fs::rename(old, away, failed);  // a half-removed checkpoint never has a valid name
    if (!failed) fs::remove_all(away, failed);
    if (failed) log_line(Log::warn, fmt::format("cannot remove {}: {}", old.string(), failed.message()));
  }
}

RunFolder::RunFolder(const fs::path& run) : state_(std::make_unique<State>(run)) {}
RunFolder::RunFolder(RunFolder&&) noexcept = default;
RunFolder& RunFolder::operator=(RunFolder&&) noexcept = default;
RunFolder::~RunFolder() = default;

RunFolder RunFolder::create(const fs::path& run, const Recipe& recipe) {
  QKV_CHECK(!is_there(run), run.string(), " exists already", Hint("continue it with --resume, or choose another name"));
  AtomicFolder made(run);
  write_recipe(made.path() / kRecipe, recipe);
  fs::create_directory(made.path() / kCheckpoints);
  made.commit();
  return open(fs::is_symlink(run) ? fs::canonical(run) : run);
}

RunFolder RunFolder::open(const fs::path& run) {
  const fs::path recipe = run / kRecipe;
  QKV_CHECK(is_there(recipe), run.string(), " holds no run: there is no ", kRecipe,
            Hint("name the folder of a run, or start one without --resume"));
  RunFolder made(run);
  remove_temporaries(run);
  made.state_->recipe = read_recipe(parse_json(read_file(recipe, kLargestRecipe), recipe.string()), recipe.string());
  return made;
}

const Recipe& RunFolder::recipe() const {
  return state_->recipe;
}
const fs::path& RunFolder::path() const {
  return state_->path;
}

void RunFolder::save(const Model& model, const Json& config, const Optimizer& optimizer, const TrainCounters& counters,
                     bool best) {
  State* s = state_.get();
  s->finish();
  auto copy = std::make_shared<const CheckpointCopy>(model, config, optimizer, counters);
  // Logs are synced first: after a power cut they are at least as new as the checkpoint.
  s->writing = true;
  s->writer = std::thread([s, copy, best, log = s->log.file(), samples = s->samples.file(), events = s->events] {
    try {
      if (log) log->sync();
      if (samples) samples->sync();
      if (events) events->sync();
      s->write(*copy, best);
    } catch (...) {
      s->failure = std::current_exception();
    }
    const std::lock_guard hold(s->mutex);
    s->writing = false;
    try {
      if (!s->failure) s->remove_old();
    } catch (...) {
      s->failure = std::current_exception();
    }
  });
}

void RunFolder::wait() {
  state_->finish();
}

void RunFolder::keep_last(int64_t keep) {
  QKV_CHECK(keep >= 1, "keeping ", keep, " checkpoints would leave none", Hint("keep at least 1"));
  const std::lock_guard hold(state_->mutex);
  state_->keep = keep;
  if (!state_->writing) state_->remove_old();
}

bool RunFolder::has_checkpoints() const {
  return !checkpoint_steps(path() / kCheckpoints).empty() || fs::is_symlink(path() / kLast);
}

bool RunFolder::load_newest(Model& model, Optimizer& optimizer, TrainCounters& counters) const {
  const fs::path checkpoints = path() / kCheckpoints;
  std::vector<std::string> damaged;
  for (const int64_t step : checkpoint_steps(checkpoints)) {
    const fs::path folder = checkpoints / checkpoint_name(step);
    try {
      check_checkpoint(folder);
    } catch (const Error& e) {
      damaged.push_back(fmt::format("{}: {}", checkpoint_name(step), e.message()));
      continue;
    } catch (const fs::filesystem_error& e) {
      damaged.push_back(fmt::format("{}: {}", checkpoint_name(step), e.what()));
      continue;
    }
    for (const std::string& why : damaged) log_line(Log::warn, "skipping a damaged checkpoint: " + why);
    read_checkpoint(folder, model, optimizer, counters);
    // A process killed right after a save may not have set the links.
    point_to(path(), kLast, step);
    if (is_there(checkpoints / checkpoint_name(counters.best_step))) point_to(path(), kBest, counters.best_step);
    return true;
  }
  const Hint hint("try again if the disk had an error; --from-scratch begins at step 0 and keeps what is there aside");
  for (const std::string& why : damaged) log_line(Log::warn, "a damaged checkpoint: " + why);
  QKV_CHECK(damaged.empty(), "none of the ", damaged.size(), " checkpoints in ", checkpoints.string(),
            " can be read; the newest is ", damaged.empty() ? "" : damaged.front(), hint);
  QKV_CHECK(!fs::is_symlink(path() / kLast), (path() / kLast).string(), " points to ",
            fs::read_symlink(path() / kLast).string(), ", which is not there, and ", checkpoints.string(),
            " holds no checkpoint", hint);
  return false;
}

void RunFolder::set_recipe(const Recipe& recipe) {
  write_recipe(path() / kRecipe, recipe);
  state_->recipe = recipe;
}

fs::path RunFolder::set_aside() {
  state_->finish();
  fs::path aside;
  for (int n = 1; aside.empty() || is_there(aside); ++n) aside = path() / fmt::format("before-{}", n);
  fs::create_directory(aside);
  // Checkpoints first: a process killed in between leaves links to nothing, which no resume takes for a new run.
  std::vector<fs::path> moved{path() / kCheckpoints};
  for (const auto& entry : fs::directory_iterator(path())) {
    const std::string name = entry.path().filename();
    if (name != kRecipe && name != "prepared" && name != kCheckpoints && !name.starts_with("before-")) {
      moved.push_back(entry.path());
    }
  }
  for (const fs::path& old : moved) {
    if (fs::exists(fs::symlink_status(old))) fs::rename(old, aside / old.filename());
  }
  fs::create_directory(path() / kCheckpoints);
  return aside;
}

void RunFolder::remove_after(int64_t step) {
  state_->finish();
  state_->log.remove_after(step);
  state_->samples.remove_after(step);
  state_->restarted = step + 1;
}

void RunFolder::log(const Json& line) {
  state_->log.append(line);
}

void RunFolder::text_sample(int64_t step, const std::string& text) {
  state_->samples.append({{"step", step}, {"text", text}});
}

void RunFolder::scalars(int64_t step, const std::map<std::string, double>& values) {
  State& s = *state_;
  if (!s.events) {
    s.events = std::make_shared<EventFile>(s.path);
    if (s.restarted >= 0) s.events->restarted(s.restarted);
  }
  s.events->scalars(step, values);
}

}  // namespace qkv
