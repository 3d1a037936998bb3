#include "server/jobs/jobs.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/path.h"
#include "server/http/api_error.h"
#include "server/jobs/child.h"
#include "server/jobs/job_board.h"
#include "server/jobs/knobs.h"
#include "server/jobs/lab_job.h"
#include "server/jobs/runs_folder.h"
#include "server/jobs/training_job.h"

namespace qkv::server {
namespace {

namespace fs = std::filesystem;

constexpr auto kBetweenLooks = std::chrono::milliseconds(150);
constexpr auto kMostToSave = std::chrono::seconds(60);  // after a stop; then it is killed, older checkpoints are whole

ApiError conflict(const std::string& what, const char* code) {
  ApiError error(409, what);
  error.code = code;
  return error;
}

}  // namespace

struct Jobs::Impl {
  explicit Impl(const JobOptions& given) : options(given), runs(given.runs) {
    if (!options.first.empty()) {
      run = options.first_run;
      begin(std::make_unique<TrainingJob>(options.first, run, true));
    }
    thread = std::thread([this] { work(); });
  }

  // --- under the mutex ------------------------------------------------------------------------------------------------

  void check_free() const {
    if (ending) throw ApiError(503, "the server is stopping");
    if (options.program.empty()) throw ApiError(403, "nothing can be started from this page");
    if (!busy) return;
    throw conflict(fmt::format("a {} is under way ({}): one piece of work at a time; wait for it, or stop it first",
                               name_of(*busy), name_of(*board.state_of(*busy))),
                   "job_running");
  }

  void begin(std::unique_ptr<Job> job) {
    busy = job->kind();
    wanted = {};
    board.begin(*job);
    next = std::move(job);
    woken.notify_all();
  }

  struct Wanted {
    bool pause = false, resume = false, stop = false;
  };
  // The thread does it within a moment; whoever asks next sees it done.
  void want(const Wanted& now, Job::State state) {
    wanted = now;
    board.set_state(*busy, state);
  }

  void check_ours() const {
    if (followed) throw conflict("this training was started in a terminal: Ctrl-C there stops it", "not_ours");
  }

  // --- the thread -----------------------------------------------------------------------------------------------------

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      woken.wait(lock, [&] { return ending || next; });
      if (!next) return;
      const std::unique_ptr<Job> job = std::move(next);
      lock.unlock();
      watch(*job);
      lock.lock();
    }
  }

  // Nothing but its folder tells of it; whoever trains says when it is over.
  void follow_on(Job& job) {
    show(job, Job::State::running);
    std::unique_lock lock(mutex);
    while (!followed_finished && !ending) {
      woken.wait_for(lock, kBetweenLooks);
      lock.unlock();
      const JobNews news = job.news();
      lock.lock();
      board.tell(job, news);
    }
    const bool finished = followed_finished.value_or(false);
    lock.unlock();
    const JobNews last = job.last_news(finished ? 0 : 1);
    lock.lock();
    board.tell(job, last);
    followed = false;
    finish(job, finished ? Job::State::finished : Job::State::stopped, "");
  }

  void watch(Job& job) {
    if (job.command().empty()) return follow_on(job);
    const bool first = job.command() == options.first;
    try {
      std::vector<std::string> arguments = job.command();
      if (!first) arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
      Child child({.program = options.program, .arguments = std::move(arguments), .echo = first});
      show(job, Job::State::running);
      const bool asked = follow(job, child);
      const int code = *child.exit_code();
      const JobNews last = job.last_news(code);
      const Job::State state = job.end_state(code, asked);
      const std::string why = state == Job::State::failed ? complaint_of(child.complaint(), code) : "";
      if (!why.empty()) log_line(Log::warn, fmt::format("a {} failed: {}", name_of(job.kind()), why));
      const std::lock_guard lock(mutex);
      board.tell(job, last);
      finish(job, state, why);
      if (first) first_code = code;
    } catch (const std::exception& failure) {
      log_line(Log::error, failure.what());
      const auto* known = dynamic_cast<const Error*>(&failure);
      const std::lock_guard lock(mutex);
      finish(job, Job::State::failed, known != nullptr ? known->message() : failure.what());
      if (first) first_code = 1;
    }
  }

  // Until the process has ended; true if it was asked to.
  bool follow(Job& job, Child& child) {
    std::optional<std::chrono::steady_clock::time_point> kill_at;
    while (!child.exit_code()) {
      child.wait(kBetweenLooks);
      for (const std::string& line : child.take_lines()) job.hear(line);
      if (child.exit_code()) break;
      const JobNews news = job.news();
      Wanted now;
      {
        const std::lock_guard lock(mutex);
        board.tell(job, news);
        now = std::exchange(wanted, {});
        now.stop |= ending;
      }
      if (kill_at) {
        if (std::chrono::steady_clock::now() > *kill_at) child.kill();
      } else if (now.stop) {
        kill_at = std::chrono::steady_clock::now() + kMostToSave;
        child.stop();
        show(job, Job::State::stopping);
      } else if (now.pause) {
        child.pause();
      } else if (now.resume) {
        child.go_on();
      }
    }
    for (const std::string& line : child.take_lines()) job.hear(line);
    return kill_at.has_value();
  }

  void show(const Job& job, Job::State state) {
    const std::lock_guard lock(mutex);
    if (!wanted.pause && !wanted.stop) board.show(job, state, "");  // what was asked since is shown already
  }

  void finish(const Job& job, Job::State state, const std::string& error) {
    busy.reset();
    board.set_busy(busy);
    board.show(job, state, error);
  }

  JobOptions options;
  mutable std::mutex mutex;
  std::condition_variable woken;
  std::unique_ptr<Job> next;
  std::optional<Job::Kind> busy;  // of what is under way, or about to be
  bool ending = false;
  Wanted wanted;
  JobBoard board;
  fs::path run;  // of the last training
  RunsFolder runs;
  std::optional<int> first_code;
  bool followed = false;                  // what runs is follow()'s
  std::optional<bool> followed_finished;  // it ended, and so
  std::thread thread;
};

Jobs::Jobs(const JobOptions& options) : impl_(std::make_unique<Impl>(options)) {}

Jobs::~Jobs() {
  end();
  join();
}

void Jobs::train(const std::string& recipe, const Fields& knobs) {
  Impl& impl = *impl_;
  const auto found = std::find_if(impl.options.recipes.begin(), impl.options.recipes.end(),
                                  [&](const Json& each) { return each.value("name", "") == recipe; });
  if (found == impl.options.recipes.end()) knobs.fail("recipe", "is none that can be trained from this page");
  const std::lock_guard lock(impl.mutex);
  impl.check_free();
  const std::vector<std::string> turned = turned_knobs(*found, knobs);
  impl.run = impl.runs.next(recipe);
  std::vector<std::string> command{"train", recipe, "--watch", "--json", "--out", impl.run.string()};
  for (const std::string& assignment : turned) command.insert(command.end(), {"--set", assignment});
  impl.begin(std::make_unique<TrainingJob>(std::move(command), impl.run, impl.runs.kept()));
}

void Jobs::run_lab(const std::string& name, int64_t seeds) {
  const Lab& lab = lab_named(name);
  const std::lock_guard lock(impl_->mutex);
  impl_->check_free();
  impl_->begin(std::make_unique<LabJob>(lab, seeds > 0 ? seeds : lab.seeds));
}

void Jobs::follow(const std::string& run) {
  const std::lock_guard lock(impl_->mutex);
  impl_->check_free();
  impl_->run = run;
  impl_->followed = true;
  impl_->followed_finished.reset();
  impl_->begin(std::make_unique<TrainingJob>(std::vector<std::string>{}, run, true));
}

void Jobs::followed_ended(bool finished) {
  const std::lock_guard lock(impl_->mutex);
  impl_->followed_finished = finished;
  impl_->woken.notify_all();
}

void Jobs::pause() {
  const std::lock_guard lock(impl_->mutex);
  impl_->check_ours();
  if (!impl_->busy || impl_->board.state_of(*impl_->busy) == Job::State::stopping) {
    throw conflict("nothing is under way that could be paused", "no_job");
  }
  impl_->want({.pause = true}, Job::State::paused);
}

void Jobs::resume() {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  if (impl.busy && impl.board.state_of(*impl.busy) == Job::State::paused) {
    return impl.want({.resume = true}, Job::State::running);
  }
  impl.check_free();
  const std::optional<Job::State> last = impl.board.state_of(Job::Kind::training);
  if (!last || last == Job::State::finished || !is_there(impl.run / "recipe.json")) {
    throw conflict("there is no training that could go on", "no_job");
  }
  const bool kept = impl.runs.kept() || impl.run == impl.options.first_run;
  impl.begin(std::make_unique<TrainingJob>(
      std::vector<std::string>{"train", "--resume", "--json", "--out", impl.run.string()}, impl.run, kept));
}

void Jobs::stop(Job::Kind kind) {
  const std::lock_guard lock(impl_->mutex);
  impl_->check_ours();
  if (impl_->busy != kind) throw conflict(fmt::format("no {} is under way", name_of(kind)), "no_job");
  impl_->want({.stop = true}, Job::State::stopping);
}

const JobOptions& Jobs::options() const {
  return impl_->options;
}

OrderedJson Jobs::state() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->board.json();
}

std::shared_ptr<const std::string> Jobs::movie() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->board.movie();
}

OrderedJson Jobs::lab_report(const std::string& name) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->board.lab_report(name);
}

void Jobs::listen(const std::shared_ptr<Exchange>& exchange) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->ending) return exchange->respond(ApiError(503, "the server is stopping").response());
  impl_->board.listen(exchange);
}

std::optional<int> Jobs::first_ended() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->first_code;
}

void Jobs::end() {
  const std::lock_guard lock(impl_->mutex);
  if (std::exchange(impl_->ending, true)) return;
  impl_->board.close();
  impl_->next.reset();
  impl_->woken.notify_all();
}

void Jobs::join() {
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace qkv::server
