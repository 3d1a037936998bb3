#include "infer/likelihood.h"

#include <algorithm>

#include "base/error.h"
#include "base/log_sum_exp.h"
#include "infer/logits.h"

namespace qkv {
namespace {

// The last token predicts nothing.
int64_t rows_of(const TokenText& text) {
  return std::ssize(text.ids) - 1;
}

class Likelihood {
 public:
  Likelihood(Runner& runner, std::span<const TokenText> texts) : runner_(runner), texts_(texts), found_(texts.size()) {
    const ModelSpec& spec = runner.model().spec();
    const bool translates = spec.has_source();
    const auto source_words =
        static_cast<size_t>(spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary);
    for (size_t i = 0; i < texts.size(); ++i) {
      const TokenText& text = texts[i];
      QKV_ASSERT(text.first >= 1 && text.targets.empty(), "first is ", text.first, ", ", text.targets.size(),
                 " targets");
      check_ids(text.ids, static_cast<size_t>(spec.vocabulary));
      check_ids(text.source, source_words);
      const int64_t most = std::min(runner.context(), runner.positions());
      QKV_CHECK(rows_of(text) <= most, "text ", i, " has ", text.ids.size(), " tokens but ",
                runner.context() <= runner.positions() ? "this model's context" : "the cache", " has room for ", most,
                Hint("cut it into shorter ones"));
      QKV_CHECK(translates == !text.source.empty(), "text ", i, " has a source of ", text.source.size(),
                " tokens but a ", spec.family, translates ? " reads one of at least 1" : " has no encoder",
                Hint(translates ? "give source and target" : "give the text alone"));
      QKV_CHECK(KvCache::whole_pages(std::ssize(text.source)) <= KvCache::whole_pages(runner.options().sources),
                "the source of text ", i, " has ", text.source.size(), " tokens but the cache has room for ",
                runner.options().sources, Hint("use a larger cache"));
    }
  }

  Likelihood(const Likelihood&) = delete;
  Likelihood& operator=(const Likelihood&) = delete;
  ~Likelihood() { close(); }

  // One past the last text that fits into a pass with `first`; at least one does.
  size_t group_end(size_t first) const {
    int64_t rows = 0, pages = 0, source_rows = 0, source_pages = 0;
    size_t end = first;
    for (; end < texts_.size(); ++end) {
      const TokenText& text = texts_[end];
      rows += rows_of(text);
      pages += KvCache::whole_pages(rows_of(text));
      source_rows += std::ssize(text.source);
      source_pages += KvCache::whole_pages(std::ssize(text.source));
      const bool fits = rows <= runner_.options().chunk && pages <= runner_.positions() &&
                        source_rows <= runner_.options().chunk && source_pages <= runner_.options().sources;
      if (end > first && !fits) break;
    }
    return end;
  }

  void run(size_t first, size_t end) {
    start(first, end);
    std::vector<int64_t> done(end - first);
    for (bool more = true; more;) {
      std::vector<Runner::Part> parts;
      std::vector<Asked> asked;
      more = false;
      for (size_t i = first; i < end; ++i) {
        const TokenText& text = texts_[i];
        int64_t& at = done[i - first];
        const int64_t count = std::min(rows_of(text) - at, runner_.options().chunk);
        if (count <= 0) continue;
        const int64_t logits = std::clamp<int64_t>(at + count + 1 - text.first, 0, count);
        parts.push_back({.sequence = open_[i - first],
                         .ids = std::span(text.ids).subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
                         .logits = logits,
                         .request = static_cast<int32_t>(i),
                         .reach = rows_of(text)});
        at += count;
        for (int64_t row = at - logits; row < at; ++row) asked.push_back({i, static_cast<size_t>(row)});
        more = more || at < rows_of(text);
      }
      if (!parts.empty()) score(asked, runner_.pass(parts));
    }
    close();
  }

  std::vector<std::vector<double>> take() { return std::move(found_); }

 private:
  struct Asked {  // a row whose logits predict a token
    size_t text, row;
  };

  void start(size_t first, size_t end) {
    std::vector<std::vector<int32_t>> sources;
    for (size_t i = first; i < end; ++i) {
      if (texts_[i].source.empty()) {
        open_.push_back(runner_.start());
      } else {
        sources.push_back(texts_[i].source);
      }
    }
    if (!sources.empty()) open_ = runner_.start(sources);
  }
  void close() {
    for (const Runner::Sequence& sequence : open_) runner_.end(sequence);
    open_.clear();
  }

  void score(std::span<const Asked> asked, std::span<const float> logits) {
    const auto vocabulary = static_cast<size_t>(runner_.vocabulary());
    std::vector<double> scores(asked.size());
    runner_.engine().exec().pool->run(std::ssize(asked), [&](int64_t n, int) {
      const auto [text, row] = asked[static_cast<size_t>(n)];
      const std::span<const float> values = logits.subspan(static_cast<size_t>(n) * vocabulary, vocabulary);
      check_logits(values, row + 1);
      const auto id = static_cast<size_t>(texts_[text].ids[row + 1]);
      scores[static_cast<size_t>(n)] = static_cast<double>(values[id]) - log_sum_exp(values);
    });
    for (size_t n = 0; n < asked.size(); ++n) found_[asked[n].text].push_back(scores[n]);
  }

  Runner& runner_;
  std::span<const TokenText> texts_;
  std::vector<std::vector<double>> found_;
  std::vector<Runner::Sequence> open_;  // of the texts in the pass
};

}  // namespace

std::vector<std::vector<double>> log_probabilities(Runner& runner, std::span<const TokenText> texts,
                                                   const std::function<bool(size_t)>& finished) {
  Likelihood likelihood(runner, texts);
  for (size_t first = 0; first < texts.size();) {
    const size_t end = likelihood.group_end(first);
    likelihood.run(first, end);
    first = end;
    if (finished && !finished(end)) break;
  }
  return likelihood.take();
}

}  // namespace qkv
