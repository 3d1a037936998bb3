// The work that is started from the page, one piece at a time (docs/page.md). Each is a command of this program in a
// process of its own; its state, and for a training its movie, is sent to every page that listens. A page that leaves
// ends nothing, one that comes back gets all there is so far.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/http/http.h"
#include "server/jobs/job.h"
#include "server/requests/fields.h"

namespace qkv::server {

struct JobOptions {
  std::string program = {};                 // whose commands do the work; empty: nothing can be started
  std::vector<std::string> arguments = {};  // of every command: --device, --threads
  std::vector<Json> recipes = {};           // that a page may train, by name; the first is shown first
  std::string runs = {};                    // the folder of trainings; empty: one that is removed at the end
  // A training that is under way from the start, and where (qkv train --serve); what it prints is printed.
  std::vector<std::string> first = {};
  std::string first_run = {};
};

class Jobs {
 public:
  explicit Jobs(const JobOptions& options);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  ~Jobs();

  // From any thread. An ApiError 409 where another job is under way, or there is none to act on.
  void train(const std::string& recipe, const Fields& knobs);  // those that are turned
  void run_lab(const std::string& name, int64_t seeds);
  void pause();
  void resume();  // a paused job; or a training that was stopped, from its last checkpoint
  void stop(Job::Kind kind);
  // A training of this very process, by its folder: shown as any other, but only who started it can stop it.
  void follow(const std::string& run);
  void followed_ended(bool finished);

  const JobOptions& options() const;
  OrderedJson state() const;                               // of the last training and the last lab
  std::shared_ptr<const std::string> movie() const;        // of the last training; null if there is none yet
  OrderedJson lab_report(const std::string& name) const;   // of its last run here; null if there was none
  void listen(const std::shared_ptr<Exchange>& exchange);  // server-sent events from now on
  std::optional<int> first_ended() const;                  // exit code of the first training, once it ended

  void end();   // asks what runs to save and end; nothing begins any more
  void join();  // waits for that
 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qkv::server
