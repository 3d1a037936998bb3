#include "inspect/heads/head_labels.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/label_decisions.h"

namespace qkv {
namespace {

constexpr size_t kMostGroups = 256;  // even: a group is of one half of the texts

// Sums attention over the tokens of words and counts correct decisions per label and head.
class LabelProbe : public ReadingProbe {
 public:
  LabelProbe(const ModelSpec& spec, std::span<const DecidedText> texts, size_t labels)
      : has_source_(spec.has_source()), texts_(texts), labels_(labels), groups_(std::min(texts.size(), kMostGroups)) {
    size_t first = 0;
    for (const Place place : all_attentions(spec)) {
      first_head_[{place.stack, place.layer}] = first;
      first += static_cast<size_t>(attention_at(spec, place).heads);
    }
    heads_ = first;
    right_.resize(heads_ * labels * groups_);
    mass_.resize(right_.size());
  }

  void begin(Context&, const PassTexts& pass) override { pass_ = &pass; }
  Ask ask(Place place, Site site) const override {
    const bool wanted = has_source_ ? place.stack == Stack::encoder : true;
    return wanted && site == Site::attn_probs ? Ask::pattern : Ask::none;
  }

  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    const std::vector<float> pattern = host_floats(x);
    const auto keys = static_cast<size_t>(x.dim(2)), heads = static_cast<size_t>(x.dim(1));
    const size_t first_head = first_head_.at({tap.place.stack, tap.place.layer});
    const std::vector<Segment>& list = tap.rows->list;
    cx.exec.pool->run(static_cast<int64_t>(heads), [&](int64_t head, int) {
      const auto h = static_cast<size_t>(head);
      for (const Segment& s : list) {
        const DecidedText& text = texts_[static_cast<size_t>(s.request)];
        const auto row = [&](size_t t) {
          return pattern.data() + ((static_cast<size_t>(s.first_row) + t) * heads + h) * keys;
        };
        decide(text, first_head + h, static_cast<size_t>(s.request) % groups_, row);
      }
    });
  }

  std::span<const TextSum> right(size_t label) const { return of(right_, label); }
  std::span<const TextSum> mass(size_t label) const { return of(mass_, label); }
  size_t groups() const { return groups_; }

 private:
  std::span<const TextSum> of(const std::vector<TextSum>& all, size_t label) const {
    return std::span(all).subspan(label * heads_ * groups_, heads_ * groups_);
  }
  size_t index(size_t label, size_t head, size_t group) const { return (label * heads_ + head) * groups_ + group; }

  template <class Row>
  void decide(const DecidedText& text, size_t head, size_t group, const Row& row) {
    std::vector<double> to(text.words.size());
    size_t of_word = text.words.size();  // query word that `to` was computed for
    for (size_t label = 0; label < labels_; ++label) mass_[index(label, head, group)].count += text.rows;
    for (const Decision& d : text.decisions) {
      if (d.query != of_word) {
        of_word = d.query;
        std::fill(to.begin(), to.end(), 0);
        const auto count = static_cast<double>(text.words[d.query].size());
        for (size_t w = 0; w < text.words.size(); ++w) {
          for (const int32_t from : text.words[d.query]) {
            for (const int32_t key : text.words[w])
              to[w] += static_cast<double>(row(static_cast<size_t>(from))[key]) / count;
          }
        }
      }
      size_t best = d.candidates.front();
      for (const size_t w : d.candidates) {
        if (to[w] > to[best]) best = w;
      }
      const bool right = std::find(d.right.begin(), d.right.end(), best) != d.right.end();
      right_[index(d.label, head, group)].add(right ? 1 : 0);
      for (const size_t w : d.right) {
        mass_[index(d.label, head, group)].sum += to[w] * static_cast<double>(text.words[d.query].size());
      }
    }
  }

  bool has_source_;
  std::span<const DecidedText> texts_;
  size_t labels_, groups_, heads_ = 0;
  std::map<std::pair<Stack, int16_t>, size_t> first_head_;
  std::vector<TextSum> right_, mass_;  // [label, head, group]
  const PassTexts* pass_ = nullptr;
};

}  // namespace

const LabelScore::Baseline& LabelScore::best_baseline() const {
  return *std::max_element(baselines.begin(), baselines.end(),
                           [](const Baseline& a, const Baseline& b) { return a.score.mean < b.score.mean; });
}
bool LabelScore::found() const {
  const double baseline = best_baseline().score.mean;
  return judged.has_interval() && judged.mean >= baseline + kMargin && judged.low > baseline;
}

std::vector<TextSum> of_half(std::span<const TextSum> texts, bool judging) {
  std::vector<TextSum> half;
  for (size_t t = 0; t < texts.size(); ++t) {
    if (judges(t) == judging) half.push_back(texts[t]);
  }
  return half;
}

size_t choose_head(std::span<const TextSum> right, size_t texts) {
  size_t best = 0;
  double most = -1;
  for (size_t h = 0; h < right.size() / texts; ++h) {
    TextSum all;
    for (const TextSum& text : of_half(right.subspan(h * texts, texts), false)) all += text;
    const double share = all.count > 0 ? all.sum / static_cast<double>(all.count) : -1;
    if (share > most) {
      best = h;
      most = share;
    }
  }
  return best;
}

std::vector<std::vector<int32_t>> tokens_of_words(const LabelledText& text, const Encoding& encoding) {
  std::vector<std::vector<int32_t>> found(text.words.size());
  for (size_t w = 0; w < text.words.size(); ++w) {
    for (size_t t = 0; t < encoding.offsets.size(); ++t) {
      const Offset& at = encoding.offsets[t];
      if (std::max(at.begin, text.words[w].begin) < std::min(at.end, text.words[w].end)) {
        found[w].push_back(static_cast<int32_t>(t));
      }
    }
  }
  return found;
}

LabelScores label_scores(Reader& reader, const Tokenizer& tokenizer, std::span<const LabelledText> texts,
                         const LabelOptions& options) {
  const ModelSpec& spec = reader.model().spec();
  LabelOptions whole = options;  // a text that is read in several passes has no whole pattern
  whole.length = std::min(options.length, reader.options().rows);
  const Decisions decided(spec, tokenizer, texts, whole);
  LabelScores scores{.texts = std::ssize(texts),
                     .words = decided.words,
                     .lost = decided.lost,
                     .earlier_only = spec.kind == ModelSpec::Kind::decoder_only};
  LabelProbe probe(spec, decided.texts, decided.labels.size());
  reader.look(decided.seen, probe, options.finished);
  for (size_t l = 0; l < decided.labels.size(); ++l) {
    const DecidedLabel& label = decided.labels[l];
    LabelScore one{.name = label.name, .direction = label.direction};
    for (const auto& [name, right] : label.baselines) {
      one.baselines.push_back({name, estimate(of_half(right, true), options.seed)});
    }
    one.accuracy = estimates(probe.right(l), probe.groups(), options.seed);
    one.coverage = estimates(probe.mass(l), probe.groups(), options.seed);
    const size_t groups = probe.groups();
    one.head = choose_head(probe.right(l), groups);
    const auto half = [&](std::span<const TextSum> all, bool judging) {
      return estimate(of_half(all.subspan(one.head * groups, groups), judging), options.seed);
    };
    one.chosen = half(probe.right(l), false);
    one.judged = half(probe.right(l), true);
    one.judged_coverage = half(probe.mass(l), true);
    scores.decisions += one.decisions();
    scores.labels.push_back(std::move(one));
  }
  std::stable_sort(scores.labels.begin(), scores.labels.end(),
                   [](const LabelScore& a, const LabelScore& b) { return a.decisions() > b.decisions(); });
  return scores;
}

}  // namespace qkv
