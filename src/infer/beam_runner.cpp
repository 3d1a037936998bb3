#include "infer/beam_runner.h"

#include <algorithm>

#include "base/error.h"
#include "infer/logits.h"

namespace qkv {

BeamRunner::BeamRunner(Runner& runner, std::span<const BeamRequest> requests, const BeamOptions& options,
                       int64_t most_rows)
    : runner_(runner), requests_(requests), options_(options), results_(requests.size()) {
  if (requests.empty()) return;
  const ModelSpec& spec = runner.model().spec();
  const bool translates = spec.has_source();
  const auto source_words = static_cast<size_t>(spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary);
  QKV_CHECK(options.max_length <= runner.context(), "max_length is ", options.max_length,
            " but this model's context has ", runner.context(), Hint("ask for fewer tokens"));
  QKV_CHECK(pages_of_a_text() <= runner.cache().pages(), options.beams, " beams of ", options.max_length,
            " tokens need ", pages_of_a_text() * KvCache::kPage, " positions but the cache has ", runner.positions(),
            Hint("use fewer beams, fewer tokens, or a larger cache"));
  for (size_t i = 0; i < requests.size(); ++i) {
    const BeamRequest& request = requests[i];
    const std::vector<int32_t> prompt = decoder_prompt(request.prompt, spec);
    BeamSearch checked(options, prompt);  // throws if they are out of range
    check_ids(prompt, static_cast<size_t>(spec.vocabulary));
    check_ids(request.source, source_words);
    const auto length = static_cast<int64_t>(request.source.size());
    QKV_CHECK(translates == (length > 0), "text ", i, " has a source of ", length, " tokens but a ", spec.family,
              translates ? " translates one of at least 1" : " has no encoder",
              Hint(translates ? "give the text to translate" : "give the text as its prompt"));
    QKV_CHECK(length <= runner.context(), "the source of text ", i, " has ", length, " tokens but this model reads ",
              runner.context(), Hint("cut it into sentences"));
    QKV_CHECK(KvCache::pages_for(length) <= KvCache::pages_for(runner.options().sources), "the source of text ", i,
              " has ", length, " tokens but the cache has room for ", runner.options().sources,
              Hint("use a larger cache"));
  }
  const int64_t rows = most_rows > 0 ? most_rows : runner.options().chunk;
  most_at_once_ = std::max<int64_t>(1, std::min(rows / options.beams, runner.cache().pages() / pages_of_a_text()));
}

BeamRunner::~BeamRunner() {
  for (const Text& text : active_) {
    for (const Runner::Sequence& beam : text.beams) runner_.end(beam);
  }
}

// Upper bound: beams may share no page.
int64_t BeamRunner::pages_of_a_text() const {
  return options_.beams * KvCache::pages_for(options_.max_length);
}

void BeamRunner::admit() {
  std::vector<Text*> started;
  while (next_ < requests_.size() && static_cast<int64_t>(active_.size()) < most_at_once_) {
    const BeamRequest& request = requests_[next_];
    const int64_t source = KvCache::pages_for(static_cast<int64_t>(request.source.size()));
    if (source_pages_ + source > KvCache::pages_for(runner_.options().sources)) break;
    source_pages_ += source;
    active_.push_back({.index = next_++,
                       .search = BeamSearch(options_, decoder_prompt(request.prompt, runner_.model().spec())),
                       .source_pages = source});
    started.push_back(&active_.back());
  }
  // Sources are encoded together, up to a chunk of rows at a time.
  for (size_t first = 0; first < started.size();) {
    size_t end = first;
    for (int64_t rows = 0; end < started.size() && (end == first || rows < runner_.options().chunk); ++end) {
      rows += static_cast<int64_t>(requests_[started[end]->index].source.size());
    }
    start(std::span(started).subspan(first, end - first));
    first = end;
  }
}

void BeamRunner::start(std::span<Text* const> texts) {
  std::vector<std::vector<int32_t>> sources;
  for (const Text* text : texts) sources.push_back(requests_[text->index].source);
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
                     .request = static_cast<int32_t>(text->index),
                     .reach = options_.max_length});
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

bool BeamRunner::step() {
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
                       .request = static_cast<int32_t>(text.index),
                       .reach = options_.max_length});
    }
  }
  const std::span<const float> logits = runner_.pass(parts);
  const auto vocabulary = static_cast<size_t>(runner_.vocabulary());
  std::vector<std::vector<BeamSearch::Step>> steps(texts.size());
  runner_.engine().exec().pool->run(static_cast<int64_t>(texts.size()), [&](int64_t i, int) {
    const auto n = static_cast<size_t>(i);
    steps[n] = texts[n]->search.advance(logits.subspan(first_row[n] * vocabulary, texts[n]->beams.size() * vocabulary));
  });
  for (size_t n = 0; n < texts.size(); ++n) fork_beams(*texts[n], steps[n]);
  for (auto text = active_.begin(); text != active_.end();) {
    const auto now = text++;
    if (!now->search.done()) continue;
    results_[now->index] = now->search.best();
    source_pages_ -= now->source_pages;
    ++finished_;
    active_.erase(now);
  }
  return true;
}

std::vector<BeamRunner::Hypotheses> beam_search(Runner& runner, std::span<const BeamRequest> requests,
                                                const BeamOptions& options) {
  BeamRunner run(runner, requests, options);
  while (run.step()) {
  }
  return std::move(run.results());
}

}  // namespace qkv
