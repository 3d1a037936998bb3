#include "server/models/embedding_queue.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/host_values.h"
#include "infer/scheduler.h"

namespace qkv::server {
namespace {

std::vector<float> pooled(std::span<const float> states, int64_t width, Pooling pooling) {
  const auto c = static_cast<size_t>(width);
  const size_t tokens = states.size() / c;
  std::vector<double> sum(c);
  const size_t first = pooling == Pooling::last ? tokens - 1 : 0;
  const size_t end = pooling == Pooling::first ? 1 : tokens;
  for (size_t t = first; t < end; ++t) {
    for (size_t i = 0; i < c; ++i) sum[i] += static_cast<double>(states[t * c + i]);
  }
  double square = 0;
  for (const double x : sum) square += x * x;
  QKV_CHECK(std::isfinite(square), "the model made numbers that are not finite",
            Hint("its weights or its precision are broken;  qkv verify  tells more"));
  const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
  std::vector<float> vector;
  for (const double x : sum) vector.push_back(static_cast<float>(x * scale));
  return vector;
}

}  // namespace

Pooling usual_pooling(const ModelSpec& spec) {
  return spec.kind == ModelSpec::Kind::decoder_only ? Pooling::last : Pooling::mean;
}

EmbeddingQueue::EmbeddingQueue(const OpenModel& model, int64_t most_rows, size_t most_waiting)
    : model_(model), most_rows_(most_rows), most_waiting_(most_waiting), arena_(model.engine().device()) {}

Tensor EmbeddingQueue::states(Context& cx, const std::vector<int32_t>& ids, const std::vector<int32_t>& lengths) const {
  const Rows rows = Rows::ragged(cx, lengths);
  const Tensor words = cx.upload(ids);
  if (model_.spec().has_source()) return static_cast<const EncoderDecoder&>(model_.model()).encode(cx, words, rows);
  return model_.model().states(cx, {.ids = words, .rows = &rows});
}

int64_t EmbeddingQueue::bytes() const {
  Arena plan(model_.engine().device(), 0, Arena::Mode::plan);
  Context cx{
      .kernels = Kernels::none(), .exec = model_.engine().exec(), .arena = plan, .precision = model_.precision()};
  const auto rows = static_cast<size_t>(most_rows_);
  states(cx, std::vector<int32_t>(rows, 0), {static_cast<int32_t>(most_rows_)});
  return plan.peak() + most_rows_ * model_.spec().width * size_of(DType::f32);
}

EmbeddingQueue::Ticket EmbeddingQueue::submit(Job job) {
  const int64_t vocabulary =
      model_.spec().source_vocabulary > 0 ? model_.spec().source_vocabulary : model_.spec().vocabulary;
  for (const std::vector<int32_t>& text : job.texts) {
    QKV_CHECK(!text.empty() && std::ssize(text) <= most_rows_, "a text has ", text.size(),
              " tokens but must have from 1 to ", most_rows_, Hint("cut it into shorter ones"));
    const auto wrong = std::find_if(text.begin(), text.end(), [&](int32_t id) { return id < 0 || id >= vocabulary; });
    QKV_CHECK(wrong == text.end(), "a text has the token ", *wrong, " but the model knows ", vocabulary,
              Hint("ids are those of the model's tokenizer"));
  }
  const std::lock_guard lock(mutex_);
  if (waiting_ > 0 && waiting_ + job.texts.size() > most_waiting_) {
    throw QueueFull(Error::Kind::input, "the queue is full: too many texts wait for their vectors", "try again later",
                    QKV_HERE);
  }
  waiting_ += job.texts.size();
  inbox_.push_back({.ticket = next_ticket_, .job = std::move(job)});
  return next_ticket_++;
}

void EmbeddingQueue::cancel(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  cancelled_.insert(ticket);
}

void EmbeddingQueue::take_inbox() {
  const std::lock_guard lock(mutex_);
  running_.splice(running_.end(), inbox_);
  for (const Ticket ticket : std::exchange(cancelled_, {})) {
    const auto found =
        std::find_if(running_.begin(), running_.end(), [&](const Running& r) { return r.ticket == ticket; });
    if (found == running_.end()) continue;
    waiting_ -= found->job.texts.size() - found->next;
    running_.erase(found);
  }
}

std::vector<float> EmbeddingQueue::pass(const std::vector<std::vector<int32_t>>& texts) {
  std::vector<int32_t> ids, lengths;
  for (const std::vector<int32_t>& text : texts) {
    ids.insert(ids.end(), text.begin(), text.end());
    lengths.push_back(static_cast<int32_t>(text.size()));
  }
  arena_.rewind({});
  Context cx = model_.engine().context(arena_, model_.precision());
  return host_floats(states(cx, ids, lengths));
}

// Texts of several jobs share a pass; one that fails ends its own job.
bool EmbeddingQueue::step() {
  take_inbox();
  if (running_.empty()) return false;
  struct Part {
    Running* of;
    size_t tokens;
  };
  std::vector<Part> parts;
  std::vector<std::vector<int32_t>> texts;
  int64_t rows = 0;
  for (Running& running : running_) {
    for (; running.next < running.job.texts.size(); ++running.next) {
      std::vector<int32_t>& text = running.job.texts[running.next];
      if (!texts.empty() && rows + std::ssize(text) > std::min<int64_t>(most_rows_, 512)) break;
      rows += std::ssize(text);
      parts.push_back({&running, text.size()});
      texts.push_back(std::move(text));
    }
    if (running.next < running.job.texts.size()) break;
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_ -= parts.size();
  }
  std::map<const Running*, std::exception_ptr> failed;
  try {
    const std::vector<float> states = pass(texts);
    const int64_t width = model_.spec().width;
    size_t at = 0;
    for (const Part& part : parts) {
      const size_t count = part.tokens * static_cast<size_t>(width);
      try {
        part.of->made.push_back(pooled(std::span(states).subspan(at, count), width, part.of->job.pooling));
      } catch (...) {
        failed[part.of] = std::current_exception();
      }
      at += count;
    }
  } catch (...) {
    for (const Part& part : parts) failed[part.of] = std::current_exception();
  }
  finish(failed);
  return true;
}

void EmbeddingQueue::finish(const std::map<const Running*, std::exception_ptr>& failed) {
  for (auto running = running_.begin(); running != running_.end();) {
    const auto now = running++;
    const auto bad = failed.find(&*now);
    if (bad == failed.end() && now->made.size() < now->job.texts.size()) continue;
    std::list<Running> ended;
    ended.splice(ended.begin(), running_, now);
    Running& one = ended.front();
    {
      const std::lock_guard lock(mutex_);
      waiting_ -= one.job.texts.size() - one.next;
    }
    one.job.on_end(std::move(one.made), bad == failed.end() ? nullptr : bad->second);
  }
}

}  // namespace qkv::server
