#include "infer/beam_runner.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "infer/logits.h"

namespace qkv {

BeamRunner::BeamRunner(Runner& runner, int64_t most_rows)
    : runner_(runner), most_rows_(most_rows > 0 ? most_rows : runner.options().chunk) {}

BeamRunner::BeamRunner(Runner& runner, std::span<const BeamRequest> requests, const BeamOptions& options,
                       int64_t most_rows)
    : BeamRunner(runner, most_rows) {
  results_.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    try {
      add(requests[i], options, [this, i](Hypotheses found, const std::exception_ptr& failed) {
        if (failed) std::rethrow_exception(failed);
        results_[i] = std::move(found);
      });
    } catch (const Error& error) {
      throw Error(error.kind(), "text " + std::to_string(i) + ": " + error.message(), error.hint(), error.where());
    }
  }
}

BeamRunner::~BeamRunner() {
  for (const Text& text : active_) {
    for (const Runner::Sequence& beam : text.beams) runner_.end(beam);
  }
}

void BeamRunner::check(const BeamRequest& request, const BeamOptions& options) const {
  const ModelSpec& spec = runner_.model().spec();
  const bool translates = spec.has_source();
  const auto source_words = static_cast<size_t>(spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary);
  const std::vector<int32_t> prompt = decoder_prompt(request.prompt, spec);
  const BeamSearch checked(options, prompt);  // throws if they are out of range
  QKV_CHECK(options.max_length <= runner_.context(), "max_length is ", options.max_length,
            " but this model's context has ", runner_.context(), Hint("ask for fewer tokens"));
  const int64_t pages = options.beams * KvCache::pages_for(options.max_length);
  QKV_CHECK(pages <= runner_.cache().pages(), options.beams, " beams of ", options.max_length, " tokens need ",
            pages * KvCache::kPage, " positions but the cache has ", runner_.positions(),
            Hint("use fewer beams, fewer tokens, or a larger cache"));
  check_ids(prompt, static_cast<size_t>(spec.vocabulary));
  check_ids(request.source, source_words);
  const auto length = static_cast<int64_t>(request.source.size());
  QKV_CHECK(translates == (length > 0), "it has a source of ", length, " tokens but a ", spec.family,
            translates ? " translates one of at least 1" : " has no encoder",
            Hint(translates ? "give the text to translate" : "give the text as its prompt"));
  QKV_CHECK(length <= runner_.context(), "the source has ", length, " tokens but this model reads ", runner_.context(),
            Hint("cut it into sentences"));
  QKV_CHECK(KvCache::pages_for(length) <= KvCache::pages_for(runner_.options().sources), "the source has ", length,
            " tokens but the cache has room for ", runner_.options().sources, Hint("use a larger cache"));
}

BeamRunner::Ticket BeamRunner::add(BeamRequest request, const BeamOptions& options, OnEnd on_end) {
  check(request, options);
  BeamSearch search(options, decoder_prompt(request.prompt, runner_.model().spec()));
  waiting_.push_back({.ticket = next_ticket_,
                      .request = std::move(request),
                      .options = options,
                      .search = std::move(search),
                      .on_end = std::move(on_end)});
  return next_ticket_++;
}

void BeamRunner::drop(Texts::iterator text) {
  for (const Runner::Sequence& beam : text->beams) runner_.end(beam);
  rows_ -= text->options.beams;
  pages_ -= text->pages();
  source_pages_ -= text->source_pages();
  active_.erase(text);
}

void BeamRunner::cancel(Ticket ticket) {
  const auto same = [&](const Text& text) { return text.ticket == ticket; };
  if (const auto text = std::find_if(active_.begin(), active_.end(), same); text != active_.end()) drop(text);
  std::erase_if(waiting_, same);
}

bool BeamRunner::has_room(const Text& text) const {
  return active_.empty() ||
         (rows_ + text.options.beams <= most_rows_ && pages_ + text.pages() <= runner_.cache().pages() &&
          source_pages_ + text.source_pages() <= KvCache::pages_for(runner_.options().sources));
}

void BeamRunner::admit() {
  std::vector<Text*> started;
  while (!waiting_.empty() && has_room(waiting_.front())) {
    active_.splice(active_.end(), waiting_, waiting_.begin());
    Text& text = active_.back();
    rows_ += text.options.beams;
    pages_ += text.pages();
    source_pages_ += text.source_pages();
    started.push_back(&text);
  }
  most_active_ = std::max(most_active_, std::ssize(active_));
  // Sources are encoded together, up to a chunk of rows at a time.
  for (size_t first = 0; first < started.size();) {
    size_t end = first;
    for (int64_t rows = 0; end < started.size() && (end == first || rows < runner_.options().chunk); ++end) {
      rows += std::ssize(started[end]->request.source);
    }
    start(std::span(started).subspan(first, end - first));
    first = end;
  }
}

void BeamRunner::start(std::span<Text* const> texts) {
  std::vector<std::vector<int32_t>> sources;
  for (const Text* text : texts) sources.push_back(text->request.source);
  if (!sources[0].empty()) {
    const std::vector<Runner::Sequence> begun = runner_.start(sources);
    for (size_t i = 0; i < texts.size(); ++i) texts[i]->beams = {begun[i]};
  } else {
    for (Text* text : texts) text->beams = {runner_.start()};
  }
  // Prefill prompts without their last token, which is the first row of the search.
  for (const Text* text : texts) {
    const std::span<const int32_t> prompt = text->search.live()[0].ids;
    if (prompt.size() == 1) continue;
    runner_.prefill({.sequence = text->beams[0],
                     .ids = prompt.first(prompt.size() - 1),
                     .logits = 0,
                     .request = text->ticket,
                     .reach = text->options.max_length});
  }
}

// The first continuation of a beam takes over its sequence, others fork it; beams without one end.
void BeamRunner::fork_beams(Text& text, std::span<const BeamSearch::Step> steps) {
  std::vector<bool> taken(text.beams.size());
  std::vector<Runner::Sequence> next;
  for (const BeamSearch::Step& step : steps) {
    const auto parent = static_cast<size_t>(step.parent);
    const Runner::Sequence& from = text.beams[parent];
    next.push_back(taken[parent] ? runner_.fork(from, runner_.length(from)) : from);
    taken[parent] = true;
  }
  for (size_t b = 0; b < text.beams.size(); ++b) {
    if (!taken[b]) runner_.end(text.beams[b]);
  }
  text.beams = std::move(next);
}

bool BeamRunner::step() try {
  admit();
  if (active_.empty()) return false;
  std::vector<Runner::Part> parts;
  std::vector<Text*> texts;
  std::vector<size_t> first_row;
  for (Text& text : active_) {
    texts.push_back(&text);
    first_row.push_back(parts.size());
    for (size_t b = 0; b < text.beams.size(); ++b) {
      parts.push_back({.sequence = text.beams[b],
                       .ids = std::span(text.search.live()[b].ids).last(1),
                       .request = text.ticket,
                       .reach = text.options.max_length});
    }
  }
  const std::span<const float> logits = runner_.pass(parts);
  const auto vocabulary = static_cast<size_t>(runner_.vocabulary());
  std::vector<std::vector<BeamSearch::Step>> steps(texts.size());
  std::vector<std::exception_ptr> failed(texts.size());
  runner_.engine().exec().pool->run(static_cast<int64_t>(texts.size()), [&](int64_t i, int) {
    const auto n = static_cast<size_t>(i);
    try {
      steps[n] =
          texts[n]->search.advance(logits.subspan(first_row[n] * vocabulary, texts[n]->beams.size() * vocabulary));
    } catch (...) {
      failed[n] = std::current_exception();  // of this text alone
    }
  });
  for (size_t n = 0; n < texts.size(); ++n) {
    if (!failed[n]) fork_beams(*texts[n], steps[n]);
  }
  size_t n = 0;  // in the order of texts
  for (auto text = active_.begin(); text != active_.end(); ++n) {
    const auto now = text++;
    if (!failed[n] && !now->search.done()) continue;
    const OnEnd on_end = std::move(now->on_end);
    Hypotheses best = failed[n] ? Hypotheses() : now->search.best();
    drop(now);
    ++finished_;
    if (on_end) on_end(std::move(best), failed[n]);
  }
  return true;
} catch (...) {
  while (!active_.empty()) drop(active_.begin());
  throw;
}

std::vector<BeamRunner::Hypotheses> beam_search(Runner& runner, std::span<const BeamRequest> requests,
                                                const BeamOptions& options) {
  BeamRunner run(runner, requests, options);
  while (run.step()) {
  }
  return std::move(run.results());
}

}  // namespace qkv
