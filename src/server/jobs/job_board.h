// What pages see of trainings and labs: their last state, the losses and the movie of the last training, what labs
// measured. Whoever listens is told of every change. Guarded by its owner's mutex.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/http/http.h"
#include "server/jobs/job.h"

namespace qkv::server {

class JobBoard {
 public:
  void begin(const Job& job);  // what the last one of its kind left is void
  void set_state(Job::Kind kind, Job::State state);
  void show(const Job& job, Job::State state, const std::string& error);
  void tell(const Job& job, const JobNews& news);
  void set_busy(std::optional<Job::Kind> kind) { busy_ = kind; }  // what is under way

  std::optional<Job::State> state_of(Job::Kind kind) const;  // nothing: there was none
  OrderedJson json() const;
  const std::shared_ptr<const std::string>& movie() const { return movie_; }
  OrderedJson lab_report(const std::string& name) const;

  void listen(const std::shared_ptr<Exchange>& exchange);
  void close();  // ends the streams

 private:
  struct Shown {
    OrderedJson json = nullptr;
    Job::State state = Job::State::starting;
    std::string error;
  };
  OrderedJson shown_json(Job::Kind kind) const;
  void send(const std::string& event);
  void send_state();

  std::optional<Job::Kind> busy_;
  std::map<Job::Kind, Shown> shown_;
  std::vector<LossPoint> losses_;
  std::shared_ptr<const std::string> movie_;
  // Of the state: answers and events come on different ways, so a page may hear them in any order.
  int64_t version_ = 0;
  int64_t movie_version_ = 0;
  std::map<std::string, OrderedJson> lab_reports_;
  std::vector<std::shared_ptr<Exchange>> listeners_;
};

}  // namespace qkv::server
