#include "server/models/translate_queue.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "infer/scheduler.h"

namespace qkv::server {

TranslateQueue::TranslateQueue(const OpenModel& model, Runner& runner, size_t most_waiting)
    : model_(model), beams_(runner), most_waiting_(most_waiting) {}

TranslateQueue::Ticket TranslateQueue::submit(Job job) {
  for (const BeamRequest& text : job.texts) {
    if (!text.source.empty()) beams_.check(text, job.options);
  }
  const std::lock_guard lock(mutex_);
  if (waiting_ > 0 && waiting_ + job.texts.size() > most_waiting_) {
    throw QueueFull(Error::Kind::input, "the queue is full: too many texts wait to be translated", "try again later",
                    QKV_HERE);
  }
  waiting_ += job.texts.size();
  inbox_.push_back({.ticket = next_ticket_, .job = std::move(job)});
  return next_ticket_++;
}

void TranslateQueue::cancel(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  cancelled_.insert(ticket);
}

size_t TranslateQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

void TranslateQueue::take_inbox() {
  std::list<Running> come;
  std::set<Ticket> cancelled;
  {
    const std::lock_guard lock(mutex_);
    come.swap(inbox_);
    cancelled.swap(cancelled_);
    const auto leaves = [&](const Running& running) {
      if (!cancelled.contains(running.ticket)) return false;
      waiting_ -= running.job.texts.size();
      for (const BeamRunner::Ticket search : running.searches) beams_.cancel(search);
      return true;
    };
    std::erase_if(come, leaves);
    std::erase_if(running_, leaves);
  }
  for (Running& running : come) start(running);
  running_.splice(running_.end(), come);
}

// A list keeps its elements where they are, so the callbacks may point to them.
void TranslateQueue::start(Running& running) {
  running.made.resize(running.job.texts.size());
  for (size_t i = 0; i < running.job.texts.size(); ++i) {
    if (running.job.texts[i].source.empty()) continue;  // nothing to translate
    ++running.left;
    running.searches.push_back(
        beams_.add(running.job.texts[i], running.job.options,
                   [&running, i](BeamRunner::Hypotheses found, const std::exception_ptr& failed) {
                     running.made[i].found = std::move(found);
                     if (failed) running.failed = failed;
                     if (!running.job.align || running.made[i].found.empty()) --running.left;
                   }));
  }
}

// Of the first text that has its translation but not yet its alignment.
bool TranslateQueue::align_one() {
  for (Running& running : running_) {
    if (!running.job.align || running.failed) continue;
    for (size_t i = 0; i < running.made.size(); ++i) {
      Translation& made = running.made[i];
      if (made.found.empty() || made.alignment || !made.unaligned.empty()) continue;
      try {
        const TokenText pair{.ids = made.found.front().ids, .source = running.job.texts[i].source};
        made.alignment =
            align(model_.model(), model_.engine(), model_.tokenizer(), pair, {.precision = model_.precision()});
      } catch (const Error& error) {  // such as ids without a token: the translation is good
        made.unaligned = error.message();
      }
      --running.left;
      return true;
    }
  }
  return false;
}

void TranslateQueue::finish() {
  for (auto running = running_.begin(); running != running_.end();) {
    const auto now = running++;
    if (now->left > 0 && !now->failed) continue;
    std::list<Running> ended;
    ended.splice(ended.begin(), running_, now);
    Running& one = ended.front();
    for (const BeamRunner::Ticket search : one.searches) beams_.cancel(search);  // of one that failed
    {
      const std::lock_guard lock(mutex_);
      waiting_ -= one.job.texts.size();
    }
    one.job.on_end(std::move(one.made), one.failed);
  }
}

bool TranslateQueue::step() {
  take_inbox();
  if (running_.empty()) return false;
  try {
    beams_.step();
  } catch (...) {
    for (Running& running : running_) running.failed = std::current_exception();
  }
  align_one();
  finish();
  return true;
}

}  // namespace qkv::server
