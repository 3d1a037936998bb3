#include "infer/scheduler.h"

#include <algorithm>

#include "base/error.h"

namespace qkv {
namespace {

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

Scheduler::Scheduler(Runner& runner, const Options& options) : runner_(runner), options_(options) {
  QKV_CHECK(options.most_active > 0 && options.most_waiting > 0 && options.most_kept >= 0, "a scheduler of ",
            options.most_active, " active, ", options.most_waiting, " waiting and ", options.most_kept, " kept",
            Hint("at least one runs and one waits"));
}

Scheduler::~Scheduler() {
  for (const Kept& kept : kept_) runner_.end(kept.sequence);
}

Scheduler::Ticket Scheduler::submit(Request request) {
  const Ticket ticket = next_ticket_++;
  Session session(runner_, std::move(request.options), ticket);
  const int64_t pages = KvCache::pages_for(session.most_ids()) + 1;  // one more: a shared page may have to be copied
  const auto words = static_cast<int64_t>(session.options().source.size());
  const int64_t source_pages = KvCache::pages_for(words);
  QKV_CHECK(source_pages <= runner_.source_pages(), "a source of ", words, " tokens does not fit into the cache of ",
            runner_.source_pages() * KvCache::kPage, Hint("give the cache more positions, or cut the text"));
  const std::lock_guard lock(mutex_);
  // One that finds a free place in the next pass does not wait.
  if (in_queue_ + in_passes_ >= room()) {
    throw QueueFull(Error::Kind::input,
                    detail::message_text({"the queue is full: ", in_queue_ + in_passes_,
                                          " requests are not finished and there is room for ", room()}),
                    "try again later", QKV_HERE);
  }
  ++in_queue_;
  inbox_.push_back({.ticket = ticket,
                    .session = std::move(session),
                    .request = std::move(request),
                    .reserved = std::min(pages, runner_.cache().pages()),
                    .source_pages = source_pages});
  return ticket;
}

bool Scheduler::full() const {
  const std::lock_guard lock(mutex_);
  return in_queue_ + in_passes_ >= room();
}

void Scheduler::cancel(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  cancelled_.insert(ticket);
}

Scheduler::Counts Scheduler::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = shown_;
  counts.waiting = in_queue_;
  return counts;
}

// Requests and cancellations from other threads since the last pass.
void Scheduler::take_inbox() {
  std::set<Ticket> cancelled;
  {
    const std::lock_guard lock(mutex_);
    waiting_.splice(waiting_.end(), inbox_);
    cancelled.swap(cancelled_);
  }
  if (cancelled.empty()) return;
  for (auto job = active_.begin(); job != active_.end();) {
    const auto now = job++;
    if (!cancelled.contains(now->ticket)) continue;
    now->session.end(Ended::cancelled);
    finish(now);
  }
  for (auto job = waiting_.begin(); job != waiting_.end();) {
    if (!cancelled.contains(job->ticket)) {
      ++job;
      continue;
    }
    job->session.end(Ended::cancelled);
    if (job->request.on_end) job->request.on_end(job->session);
    job = waiting_.erase(job);
    const std::lock_guard lock(mutex_);
    --in_queue_;
  }
}

// The longest prefix of the prompt in the cache. The prompt's last token is always computed: its logits choose the
// first token.
Scheduler::Prefix Scheduler::find_prefix(const Session& session) const {
  constexpr int64_t kWorthIt = 16;
  Prefix best;
  if (!session.options().source.empty()) return best;  // keys and values depend on the source too
  if (!session.options().shares_prefixes) return best;
  const std::span<const int32_t> prompt = std::span(session.ids()).first(session.ids().size() - 1);
  const bool long_rope = runner_.uses_long_rope(session.most_ids());
  const auto consider = [&](std::span<const int32_t> ids, int64_t held, const Runner::Sequence& sequence) {
    const int64_t all = common_prefix(prompt, ids), now = std::min(all, held);
    if (now >= kWorthIt && now > best.length && runner_.can_fork(sequence, now)) {
      best.length = now;
      best.from = sequence;
    }
    return all;
  };
  for (const Kept& kept : kept_) {
    if (kept.owner != session.options().owner) continue;
    if (kept.long_rope == long_rope) consider(kept.ids, static_cast<int64_t>(kept.ids.size()), kept.sequence);
  }
  int64_t coming = 0;
  for (const Job& job : active_) {
    if (job.session.options().owner != session.options().owner || !job.session.options().shares_prefixes) continue;
    if (runner_.uses_long_rope(job.session.most_ids()) != long_rope || !job.session.options().source.empty()) continue;
    const int64_t all = consider(job.session.ids(), job.session.done(), job.session.sequence());
    if (job.session.prefilling()) coming = std::max(coming, all);
  }
  best.coming = coming >= best.length + KvCache::kPage;
  return best;
}

// Whether its pages can be reserved. Drops kept texts if needed, least recently used first.
bool Scheduler::make_room(const Job& job) {
  const int64_t all = runner_.cache().pages(), pages = job.reserved;
  if (reserved_ + pages > all || reserved_sources_ + job.source_pages > runner_.source_pages()) return false;
  while (reserved_ + pages + kept_pages_ > all && !kept_.empty()) {
    kept_pages_ -= KvCache::pages_for(static_cast<int64_t>(kept_.front().ids.size()));
    runner_.end(kept_.front().sequence);
    kept_.pop_front();
  }
  return true;
}

void Scheduler::admit() {
  std::vector<Job*> with_source;
  while (!waiting_.empty() && static_cast<int64_t>(active_.size()) < options_.most_active) {
    Job& job = waiting_.front();
    const Prefix before = find_prefix(job.session);
    // Another request is prefilling the same prefix: wait for it instead of computing it twice.
    if (before.coming || !make_room(job)) break;
    const Prefix prefix = find_prefix(job.session);  // make_room may have dropped it
    reserved_ += job.reserved;
    reserved_sources_ += job.source_pages;
    active_.splice(active_.end(), waiting_, waiting_.begin());
    {
      const std::lock_guard lock(mutex_);
      --in_queue_;
      ++in_passes_;
    }
    if (job.session.options().source.empty()) {
      start_job(job, prefix);
    } else {
      with_source.push_back(&job);
    }
  }
  start_sources(with_source);
}

void Scheduler::start_job(Job& job, const Prefix& prefix) {
  if (prefix.length == 0) return job.session.open();
  job.session.open(runner_.fork(prefix.from, prefix.length));
  counts_.shared += prefix.length;
  const auto same = [&](const Kept& kept) { return kept.sequence.own == prefix.from.own; };
  const auto used = std::find_if(kept_.begin(), kept_.end(), same);
  if (used != kept_.end()) kept_.splice(kept_.end(), kept_, used);
}

// Sources of new requests are encoded together, up to a chunk of rows at a time.
void Scheduler::start_sources(std::span<Job* const> jobs) {
  for (size_t first = 0; first < jobs.size();) {
    std::vector<std::vector<int32_t>> sources;
    int64_t rows = 0;
    size_t next = first;
    for (; next < jobs.size() && (sources.empty() || rows < runner_.options().chunk); ++next) {
      sources.push_back(jobs[next]->session.options().source);
      rows += static_cast<int64_t>(sources.back().size());
    }
    const std::vector<Runner::Sequence> started = runner_.start(sources);
    for (size_t i = 0; i < started.size(); ++i) jobs[first + i]->session.open(started[i]);
    first = next;
  }
}

void Scheduler::keep(Session& session) {
  const std::span<const int32_t> held = std::span(session.ids()).first(static_cast<size_t>(session.done()));
  if (options_.most_kept == 0 || held.empty() || !session.options().source.empty()) return;
  if (!session.options().shares_prefixes) return;
  // A longer text with a kept one as its prefix replaces it.
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->owner != session.options().owner) continue;
    const auto common = static_cast<size_t>(common_prefix(kept->ids, held));
    if (common == held.size()) return;
    if (common < kept->ids.size()) continue;
    kept_pages_ -= KvCache::pages_for(static_cast<int64_t>(common));
    runner_.end(kept->sequence);
    kept_.erase(kept);
    break;
  }
  if (static_cast<int64_t>(kept_.size()) == options_.most_kept) {
    kept_pages_ -= KvCache::pages_for(static_cast<int64_t>(kept_.front().ids.size()));
    runner_.end(kept_.front().sequence);
    kept_.pop_front();
  }
  kept_.push_back({.ids = std::vector<int32_t>(held.begin(), held.end()),
                   .sequence = session.release(),
                   .long_rope = runner_.uses_long_rope(session.most_ids()),
                   .owner = session.options().owner});
  kept_pages_ += KvCache::pages_for(static_cast<int64_t>(held.size()));
}

void Scheduler::finish(Jobs::iterator job) {
  reserved_ -= job->reserved;
  reserved_sources_ -= job->source_pages;
  Jobs gone;
  gone.splice(gone.begin(), active_, job);
  {
    const std::lock_guard lock(mutex_);
    --in_passes_;
  }
  Job& ended = gone.front();
  if (ended.session.is_open() && ended.session.ended() != Ended::failed) keep(ended.session);
  if (ended.request.on_end) ended.request.on_end(ended.session);
}

void Scheduler::run_pass() {
  std::vector<Runner::Part> parts;
  std::vector<Job*> in_pass;
  std::vector<PassProbe::Part> watched;
  int64_t rows = 0;
  int64_t room = runner_.options().chunk;  // rows of prompts; sessions that decode always have theirs
  for (Job& job : active_) {
    const bool prefilling = job.session.prefilling();
    if (prefilling && room == 0) continue;
    parts.push_back(job.session.next_part(room));
    in_pass.push_back(&job);
    if (prefilling) room -= std::min(room, static_cast<int64_t>(parts.back().ids.size()));
    job.session.add_probe(watched, rows);
    rows += std::ssize(parts.back().ids);
  }
  counts_.rows += rows;
  const bool is_watched = !watched.empty();
  PassProbe probe(std::move(watched));
  const bool greedy =
      std::all_of(in_pass.begin(), in_pass.end(), [](const Job* job) { return job->session.takes_highest(); });
  Runner::Result result;
  try {
    result =
        runner_.pass(parts, greedy ? Runner::Wanted::highest : Runner::Wanted::logits, is_watched ? &probe : nullptr);
  } catch (const Error& error) {
    for (Job* job : in_pass) job->session.fail(error);
    return;
  }
  ++counts_.passes;
  // Sessions choose in parallel, unless that is done; callbacks run one after the other.
  const auto vocabulary = static_cast<size_t>(runner_.vocabulary());
  std::vector<std::vector<Choice>> chosen(parts.size());
  std::vector<size_t> first_row{0};
  for (const Runner::Part& part : parts) first_row.push_back(first_row.back() + static_cast<size_t>(part.logits));
  const auto choose = [&](int64_t i, int) {
    const auto n = static_cast<size_t>(i), first = first_row[n], count = first_row[n + 1] - first;
    Session& session = in_pass[n]->session;
    try {
      chosen[n] = result.highest.empty() ? session.take(result.logits.subspan(first * vocabulary, count * vocabulary))
                                         : session.take_highest(result.highest.subspan(first, count));
    } catch (const Error& error) {
      session.fail(error);
    }
  };
  if (result.highest.empty()) {
    runner_.engine().exec().pool->run(std::ssize(parts), choose);
  } else {
    for (int64_t i = 0; i < std::ssize(parts); ++i) choose(i, 0);
  }
  for (size_t n = 0; n < parts.size(); ++n) report(*in_pass[n], chosen[n], parts[n].logits);
}

void Scheduler::report(Job& job, std::span<const Choice> chosen, int64_t rows) {
  if (rows > 1) {
    counts_.guessed += rows - 1;
    counts_.guessed_right += std::max<int64_t>(static_cast<int64_t>(chosen.size()) - 1, 0);
  }
  for (const Choice& choice : chosen) {
    if (job.request.on_token && !job.request.on_token(choice)) return job.session.end(Ended::stopped);
  }
}

void Scheduler::show_counts() {
  const std::lock_guard lock(mutex_);
  shown_ = counts_;
  shown_.active = static_cast<int64_t>(active_.size());
  shown_.kept = static_cast<int64_t>(kept_.size());
  shown_.pages = runner_.cache().pages();
  shown_.pages_used = runner_.cache().pages_used();
}

bool Scheduler::step() {
  take_inbox();
  admit();
  if (active_.empty()) {
    show_counts();
    return false;
  }
  run_pass();
  for (auto job = active_.begin(); job != active_.end();) {
    const auto now = job++;
    if (now->session.ended() != Ended::not_yet) finish(now);
  }
  show_counts();
  return true;
}

}  // namespace qkv
