#include "server/models/attribution_queue.h"

#include <algorithm>

#include "base/error.h"
#include "infer/scheduler.h"

namespace qkv::server {

std::shared_ptr<const void> AttributionQueue::reserve(int64_t count) {
  const int64_t before = reserved_.fetch_add(count);
  std::shared_ptr<const void> held(this, [this, count](const void*) { reserved_ -= count; });
  if (before + count > most_) {
    throw QueueFull(Error::Kind::input,
                    detail::message_text({"the queue of attributions is full: ", before, " are not finished and ",
                                          count, " more do not fit into ", most_}),
                    "try again later", QKV_HERE);
  }
  return held;
}

void AttributionQueue::submit(Job job) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(job));
}

FoundAttribution AttributionQueue::attribute(const Job& job) const {
  FoundAttribution found{.position = std::ssize(job.ids) - 1};
  if (!job.has_row) {
    found.error = "the text ended before this position";
    return found;
  }
  if (std::ssize(job.ids) > kMostAttributedTokens) {
    found.error = "attributions are for the first " + std::to_string(kMostAttributedTokens) + " tokens of a text";
    return found;
  }
  try {
    const Attributor attributor(model_.model(), model_.engine(), model_.precision(), {.ids = job.ids}, found.position);
    const std::vector<float>& logits = attributor.logits();
    const auto best_but = [&](int32_t left_out) {
      int32_t best = left_out == 0 ? 1 : 0;
      for (int32_t v = best + 1; v < static_cast<int32_t>(logits.size()); ++v) {
        if (v != left_out && logits[static_cast<size_t>(v)] > logits[static_cast<size_t>(best)]) best = v;
      }
      return best;
    };
    found.target = job.target ? *job.target : best_but(job.against.value_or(-1));
    found.against = job.against ? *job.against : best_but(found.target);
    QKV_CHECK(found.target != found.against, "the token that was chosen is the one to compare with",
              Hint("ask against another"));
    found.parts = attributor.of(found.target, found.against);
    found.linearised = attributor.linearised();
  } catch (const Error& error) {
    found.error = error.message();
  }
  return found;
}

bool AttributionQueue::step() {
  std::list<Job> now;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    now.splice(now.begin(), waiting_, waiting_.begin());
  }
  const Job& job = now.front();
  job.on_end(job.wanted() ? attribute(job) : FoundAttribution{.error = "nobody waits for it"});
  return true;
}

}  // namespace qkv::server
