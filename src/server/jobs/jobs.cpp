#include "server/jobs/jobs.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/path.h"
#include "server/http/api_error.h"
#include "server/http/sse.h"
#include "server/jobs/child.h"
#include "server/jobs/knobs.h"
#include "server/jobs/lab_job.h"
#include "server/jobs/training_job.h"

namespace qkv::server {
namespace {

namespace fs = std::filesystem;

constexpr auto kBetweenLooks = std::chrono::milliseconds(150);
constexpr auto kMostToSave = std::chrono::seconds(60);  // after a stop; then it is killed, older checkpoints are whole
constexpr size_t kMostListeners = 8;                    // they count as requests under way
constexpr size_t kMostPoints = 4000;                    // of the losses so far that a page gets when it comes

OrderedJson points_json(std::span<const LossPoint> points, size_t every) {
  OrderedJson made = OrderedJson::array();
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % every != 0 && !points[i].held_out && i + 1 < points.size()) continue;
    made.push_back({points[i].step, points[i].loss, points[i].held_out ? 1 : 0});
  }
  return made;
}

ApiError conflict(const std::string& what, const char* code) {
  ApiError error(409, what);
  error.code = code;
  return error;
}

}  // namespace

struct Jobs::Impl {
  explicit Impl(const JobOptions& given) : options(given) {
    if (!options.first.empty()) {
      next = std::make_unique<TrainingJob>(options.first, options.first_run, true);
      run = options.first_run;
      begin_next();
    }
    thread = std::thread([this] { work(); });
  }

  // --- what others see; under the mutex -------------------------------------------------------------------------------

  struct Wanted {
    bool pause = false, resume = false, stop = false;
  };
  struct Shown {
    OrderedJson json = nullptr;
    Job::State state = Job::State::starting;
    std::string error;
  };

  bool busy() const { return next != nullptr || running; }

  void check_free() const {
    if (ending) throw ApiError(503, "the server is stopping");
    if (options.program.empty()) throw ApiError(403, "nothing can be started from this page");
    if (!busy()) return;
    throw conflict(fmt::format("a {} is under way ({}): one piece of work at a time; wait for it, or stop it first",
                               name_of(kind), name_of(shown.at(kind).state)),
                   "job_running");
  }

  void begin_next() {
    kind = next->kind();
    shown[kind] = {.json = next->json()};
    wanted = {};
    ++id;
    if (kind == Job::Kind::training) {
      losses.clear();
      movie.reset();
    }
    tell_all();
    if (kind == Job::Kind::training) send(sse("loss", loss_event(true, losses)));
    woken.notify_all();
  }

  OrderedJson shown_json(Job::Kind which) const {
    const auto found = shown.find(which);
    if (found == shown.end()) return nullptr;
    OrderedJson made{{"state", name_of(found->second.state)}};
    if (!found->second.error.empty()) made["error"] = found->second.error;
    if (found->second.json.is_object()) made.update(found->second.json);
    return made;
  }
  OrderedJson state_json() const {
    return {{"busy", busy() ? OrderedJson(name_of(kind)) : OrderedJson(nullptr)},
            {"training", shown_json(Job::Kind::training)},
            {"lab", shown_json(Job::Kind::lab)},
            {"movie", movie ? movie_version : 0}};
  }
  static OrderedJson loss_event(bool all, std::span<const LossPoint> points) {
    return {{"all", all}, {"points", points_json(points, all ? points.size() / kMostPoints + 1 : 1)}};
  }

  void send(const std::string& event) {
    std::erase_if(listeners, [](const auto& exchange) { return exchange->gone(); });
    for (const auto& exchange : listeners) exchange->write(event);
  }
  void tell_all() { send(sse("jobs", state_json())); }
  // The thread does it within a moment; whoever asks next sees it done.
  void want(const Wanted& now, Job::State state) {
    wanted = now;
    shown[kind].state = state;
    tell_all();
  }

  // --- the thread -----------------------------------------------------------------------------------------------------

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      woken.wait(lock, [&] { return ending || next; });
      if (!next) return;
      const std::unique_ptr<Job> job = std::move(next);
      running = true;
      lock.unlock();
      watch(*job);
      lock.lock();
    }
  }

  void watch(Job& job) {
    bool asked = false;
    try {
      std::vector<std::string> arguments = job.command();
      const bool first = arguments == options.first;
      if (!first) arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
      Child child({.program = options.program, .arguments = std::move(arguments), .echo = first});
      show(job, Job::State::running, "");
      std::optional<std::chrono::steady_clock::time_point> kill_at;
      while (!child.exit_code()) {
        child.wait(kBetweenLooks);
        for (const std::string& line : child.take_lines()) job.hear(line);
        if (!child.exit_code()) publish(job, job.news());
        obey(job, child, asked);
        if (asked && !kill_at) kill_at = std::chrono::steady_clock::now() + kMostToSave;
        if (kill_at && std::chrono::steady_clock::now() > *kill_at) child.kill();
      }
      for (const std::string& line : child.take_lines()) job.hear(line);
      const int code = *child.exit_code();
      publish(job, job.last_news(code));
      const Job::State state = job.end_state(code, asked);
      const bool failed = state == Job::State::failed;
      if (failed)
        log_line(Log::warn, fmt::format("a {} failed: {}", name_of(job.kind()), complaint_of(child.complaint(), code)));
      finish(job, state, failed ? complaint_of(child.complaint(), code) : "");
      if (first) note_first(code);
    } catch (const std::exception& failure) {
      log_line(Log::error, failure.what());
      const auto* known = dynamic_cast<const Error*>(&failure);
      finish(job, Job::State::failed, known != nullptr ? known->message() : failure.what());
    }
  }

  // What was asked since the last time.
  void obey(Job& job, Child& child, bool& asked) {
    Wanted now;
    {
      const std::lock_guard lock(mutex);
      now = std::exchange(wanted, {});
      now.stop |= ending;
    }
    if (now.stop && !asked) {
      asked = true;
      child.stop();
      show(job, Job::State::stopping, "");
    } else if (now.pause && !asked) {
      child.pause();
      show(job, Job::State::paused, "");
    } else if (now.resume && !asked) {
      child.go_on();
      show(job, Job::State::running, "");
    }
  }

  void show(const Job& job, Job::State state, const std::string& error) {
    const std::lock_guard lock(mutex);
    shown[job.kind()] = {job.json(), state, error};
    tell_all();
  }

  void finish(const Job& job, Job::State state, const std::string& error) {
    const std::lock_guard lock(mutex);
    running = false;
    shown[job.kind()] = {job.json(), state, error};
    if (const auto* lab = dynamic_cast<const LabJob*>(&job); lab != nullptr && state == Job::State::finished) {
      lab_reports[job.json()["name"].get<std::string>()] = lab->report();
    }
    tell_all();
  }

  void publish(const Job& job, const JobNews& news) {
    if (!news.any) return;
    const std::lock_guard lock(mutex);
    Shown& now = shown[job.kind()];
    now.json = job.json();
    if (news.losses_restarted) losses.clear();
    losses.insert(losses.end(), news.losses.begin(), news.losses.end());
    if (!news.losses.empty() || news.losses_restarted) {
      send(sse("loss", news.losses_restarted ? loss_event(true, losses) : loss_event(false, news.losses)));
    }
    if (news.movie) {
      movie = news.movie;
      ++movie_version;
    }
    tell_all();
  }

  void note_first(int code) {
    const std::lock_guard lock(mutex);
    first_code = code;
  }

  // A name that is free, in the folder that was given or in one of this server's own.
  fs::path new_run(const std::string& recipe) {
    if (options.runs.empty() && own_folder.empty()) {
      std::string name = (fs::temp_directory_path() / "qkv-page-XXXXXX").string();
      QKV_CHECK(::mkdtemp(name.data()) != nullptr, "no folder can be made in ", fs::temp_directory_path().string(),
                Hint("name one with --runs DIR"));
      own_folder = name;
    }
    const fs::path folder = options.runs.empty() ? fs::path(own_folder) : fs::path(options.runs);
    std::error_code failed;
    fs::create_directories(folder, failed);
    QKV_CHECK(!failed, "cannot make the folder ", folder.string(), ": ", failed.message(),
              Hint("name another with --runs DIR"));
    for (int n = 1;; ++n) {
      fs::path run_folder = folder / fmt::format("{}-{}", recipe, n);
      if (!is_there(run_folder)) return run_folder;
    }
  }

  JobOptions options;
  mutable std::mutex mutex;
  std::condition_variable woken;
  std::unique_ptr<Job> next;
  bool running = false, ending = false;
  Job::Kind kind = Job::Kind::training;  // of what runs, or ran last
  std::map<Job::Kind, Shown> shown;
  Wanted wanted;
  int64_t id = 0, movie_version = 0;
  std::vector<LossPoint> losses;
  std::shared_ptr<const std::string> movie;
  std::map<std::string, OrderedJson> lab_reports;
  std::vector<std::shared_ptr<Exchange>> listeners;
  fs::path run;
  std::string own_folder;
  std::optional<int> first_code;
  std::thread thread;
};

Jobs::Jobs(const JobOptions& options) : impl_(std::make_unique<Impl>(options)) {}

Jobs::~Jobs() {
  end();
  join();
  std::error_code ignored;
  if (!impl_->own_folder.empty()) fs::remove_all(impl_->own_folder, ignored);
}

void Jobs::train(const std::string& recipe, const Fields& knobs) {
  Impl& impl = *impl_;
  const auto found = std::find_if(impl.options.recipes.begin(), impl.options.recipes.end(),
                                  [&](const Json& each) { return each.value("name", "") == recipe; });
  if (found == impl.options.recipes.end()) knobs.fail("recipe", "is none that can be trained from this page");
  const std::lock_guard lock(impl.mutex);
  impl.check_free();
  const std::vector<std::string> turned = turned_knobs(*found, knobs);
  impl.run = impl.new_run(recipe);
  std::vector<std::string> command{"train", recipe, "--watch", "--json", "--out", impl.run.string()};
  for (const std::string& assignment : turned) command.insert(command.end(), {"--set", assignment});
  impl.next = std::make_unique<TrainingJob>(std::move(command), impl.run, !impl.options.runs.empty());
  impl.begin_next();
}

void Jobs::run_lab(const std::string& name, int64_t seeds) {
  Impl& impl = *impl_;
  const Lab& lab = lab_named(name);
  const std::lock_guard lock(impl.mutex);
  impl.check_free();
  impl.next = std::make_unique<LabJob>(lab, seeds > 0 ? seeds : lab.seeds);
  impl.begin_next();
}

void Jobs::pause() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->busy() || impl_->shown[impl_->kind].state == Job::State::stopping) {
    throw conflict("nothing is under way that could be paused", "no_job");
  }
  impl_->want({.pause = true}, Job::State::paused);
}

void Jobs::resume() {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  if (impl.busy() && impl.shown[impl.kind].state == Job::State::paused) {
    return impl.want({.resume = true}, Job::State::running);
  }
  impl.check_free();
  const auto last = impl.shown.find(Job::Kind::training);
  if (last == impl.shown.end() || last->second.state == Job::State::finished || !is_there(impl.run / "recipe.json")) {
    throw conflict("there is no training that could go on", "no_job");
  }
  impl.next =
      std::make_unique<TrainingJob>(std::vector<std::string>{"train", "--resume", "--json", "--out", impl.run.string()},
                                    impl.run, !impl.options.runs.empty() || !impl.options.first.empty());
  impl.begin_next();
}

void Jobs::stop(Job::Kind kind) {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->busy() || impl_->kind != kind) throw conflict(fmt::format("no {} is under way", name_of(kind)), "no_job");
  impl_->want({.stop = true}, Job::State::stopping);
}

const JobOptions& Jobs::options() const {
  return impl_->options;
}

OrderedJson Jobs::state() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->state_json();
}

std::shared_ptr<const std::string> Jobs::movie() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->movie;
}

OrderedJson Jobs::lab_report(const std::string& name) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->lab_reports.find(name);
  return found == impl_->lab_reports.end() ? OrderedJson(nullptr) : found->second;
}

void Jobs::listen(const std::shared_ptr<Exchange>& exchange) {
  const std::lock_guard lock(impl_->mutex);
  std::erase_if(impl_->listeners, [](const auto& each) { return each->gone(); });
  if (impl_->ending) return exchange->respond(ApiError(503, "the server is stopping").response());
  if (impl_->listeners.size() >= kMostListeners) {
    return exchange->respond(ApiError(429, "too many pages are watching; close one").response());
  }
  exchange->begin({.type = "text/event-stream", .headers = {{"X-Accel-Buffering", "no"}}}, kSsePing);
  exchange->write(sse("jobs", impl_->state_json()));
  exchange->write(sse("loss", Impl::loss_event(true, impl_->losses)));
  impl_->listeners.push_back(exchange);
}

std::optional<int> Jobs::first_ended() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->first_code;
}

void Jobs::end() {
  const std::lock_guard lock(impl_->mutex);
  if (std::exchange(impl_->ending, true)) return;
  for (const auto& exchange : impl_->listeners) exchange->end();
  impl_->listeners.clear();
  impl_->next.reset();
  impl_->woken.notify_all();
}

void Jobs::join() {
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace qkv::server
