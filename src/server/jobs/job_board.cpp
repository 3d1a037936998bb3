#include "server/jobs/job_board.h"

#include <span>

#include "server/http/api_error.h"
#include "server/http/sse.h"
#include "server/jobs/lab_job.h"

namespace qkv::server {
namespace {

constexpr size_t kMostListeners = 8;  // they count as requests under way
constexpr size_t kMostPoints = 4000;  // of the losses so far that a page gets when it comes

std::string loss_event(bool all, std::span<const LossPoint> points) {
  const size_t every = all ? points.size() / kMostPoints + 1 : 1;
  OrderedJson made = OrderedJson::array();
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % every != 0 && !points[i].held_out && i + 1 < points.size()) continue;
    made.push_back({points[i].step, points[i].loss, points[i].held_out ? 1 : 0});
  }
  return sse("loss", {{"all", all}, {"points", std::move(made)}});
}

}  // namespace

void JobBoard::begin(const Job& job) {
  busy_ = job.kind();
  shown_[job.kind()] = {.json = job.json()};
  if (job.kind() == Job::Kind::training) {
    losses_.clear();
    movie_.reset();
    send(loss_event(true, losses_));
  }
  send_state();
}

void JobBoard::set_state(Job::Kind kind, Job::State state) {
  shown_[kind].state = state;
  send_state();
}

void JobBoard::show(const Job& job, Job::State state, const std::string& error) {
  shown_[job.kind()] = {job.json(), state, error};
  if (const auto* lab = dynamic_cast<const LabJob*>(&job); lab != nullptr && state == Job::State::finished) {
    lab_reports_[lab->name()] = lab->report();
  }
  send_state();
}

void JobBoard::tell(const Job& job, const JobNews& news) {
  if (!news.any) return;
  shown_[job.kind()].json = job.json();
  if (news.losses_restarted) losses_.clear();
  losses_.insert(losses_.end(), news.losses.begin(), news.losses.end());
  if (news.losses_restarted) {
    send(loss_event(true, losses_));
  } else if (!news.losses.empty()) {
    send(loss_event(false, news.losses));
  }
  if (news.movie) {
    movie_ = news.movie;
    ++movie_version_;
  }
  send_state();
}

std::optional<Job::State> JobBoard::state_of(Job::Kind kind) const {
  const auto found = shown_.find(kind);
  return found == shown_.end() ? std::nullopt : std::optional(found->second.state);
}

OrderedJson JobBoard::shown_json(Job::Kind kind) const {
  const auto found = shown_.find(kind);
  if (found == shown_.end()) return nullptr;
  OrderedJson made{{"state", name_of(found->second.state)}};
  if (!found->second.error.empty()) made["error"] = found->second.error;
  if (found->second.json.is_object()) made.update(found->second.json);
  return made;
}

OrderedJson JobBoard::json() const {
  return {{"version", version_},
          {"busy", busy_ ? OrderedJson(name_of(*busy_)) : OrderedJson(nullptr)},
          {"training", shown_json(Job::Kind::training)},
          {"lab", shown_json(Job::Kind::lab)},
          {"movie", movie_ ? movie_version_ : 0}};
}

OrderedJson JobBoard::lab_report(const std::string& name) const {
  const auto found = lab_reports_.find(name);
  return found == lab_reports_.end() ? OrderedJson(nullptr) : found->second;
}

void JobBoard::send(const std::string& event) {
  std::erase_if(listeners_, [](const auto& exchange) { return exchange->gone(); });
  for (const auto& exchange : listeners_) exchange->write(event);
}

void JobBoard::send_state() {
  ++version_;
  send(sse("jobs", json()));
}

void JobBoard::listen(const std::shared_ptr<Exchange>& exchange) {
  std::erase_if(listeners_, [](const auto& each) { return each->gone(); });
  if (listeners_.size() >= kMostListeners) {
    return exchange->respond(ApiError(429, "too many pages are watching; close one").response());
  }
  exchange->begin({.type = "text/event-stream", .headers = {{"X-Accel-Buffering", "no"}}}, kSsePing);
  exchange->write(sse("jobs", json()));
  exchange->write(loss_event(true, losses_));
  listeners_.push_back(exchange);
}

void JobBoard::close() {
  for (const auto& exchange : listeners_) exchange->end();
  listeners_.clear();
}

}  // namespace qkv::server
