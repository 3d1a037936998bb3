#include "inspect/heads/head_labels.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/label_cause.h"

namespace qkv {
namespace {

constexpr size_t kMostGroups = 256;  // even: a group is of one half of the texts
// Pairs that are patched: of each text, on the texts heads are judged on, and on those they are chosen on.
constexpr size_t kOfText = 2, kJudgedPairs = 40, kChoosingPairs = 24;

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
    for (std::vector<TextSum>* all : {&right_, &covered_, &mass_, &own_}) all->resize(heads_ * labels * groups_);
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
  std::span<const TextSum> covered(size_t label) const { return of(covered_, label); }  // of all tokens' attention
  std::span<const TextSum> mass(size_t label) const { return of(mass_, label); }        // of the query word's
  std::span<const TextSum> own(size_t label) const { return of(own_, label); }
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
    for (size_t label = 0; label < labels_; ++label) covered_[index(label, head, group)].count += text.rows;
    for (const Decision& d : text.decisions) {
      if (d.query != of_word) {
        of_word = d.query;
        std::fill(to.begin(), to.end(), 0);
        const std::vector<int32_t>& own = text.words[d.query];
        const auto count = static_cast<double>(own.size());
        for (size_t w = 0; w < text.words.size(); ++w) {
          for (const int32_t key : text.words[w]) {
            if (w != d.query && std::find(own.begin(), own.end(), key) != own.end()) continue;  // a token of both
            for (const int32_t from : own) to[w] += static_cast<double>(row(static_cast<size_t>(from))[key]) / count;
          }
        }
      }
      size_t best = d.candidates.front();
      for (const size_t w : d.candidates) {
        if (to[w] > to[best]) best = w;
      }
      const bool right = std::find(d.right.begin(), d.right.end(), best) != d.right.end();
      const size_t at = index(d.label, head, group);
      double mass = 0;
      for (const size_t w : d.right) mass += to[w];
      right_[at].add(right ? 1 : 0);
      covered_[at].sum += mass * static_cast<double>(text.words[d.query].size());
      mass_[at].add(mass);
      own_[at].add(to[d.query]);
    }
  }

  bool has_source_;
  std::span<const DecidedText> texts_;
  size_t labels_, groups_, heads_ = 0;
  std::map<std::pair<Stack, int16_t>, size_t> first_head_;
  std::vector<TextSum> right_, covered_, mass_, own_;  // [label, head, group]
  const PassTexts* pass_ = nullptr;
};

double share_of_half(std::span<const TextSum> texts, bool judging) {
  TextSum all;
  for (const TextSum& text : of_half(texts, judging)) all += text;
  return all.count > 0 ? all.sum / static_cast<double>(all.count) : -1;
}

// Patches the heads that look where a label points. Of those the one that carries most on the texts heads are chosen on
// becomes the label's head; it is judged on the others, beside all heads.
class CauseFinder {
 public:
  CauseFinder(Reader& reader, const LabelPairs& pairs, const LabelOptions& options, size_t texts)
      : reader_(reader), pairs_(pairs), options_(options), texts_(texts) {}

  // `looking`: heads that pass on the texts they are chosen on.
  void find(size_t label, const std::vector<size_t>& looking, LabelScore& score) const {
    using enum LabelPairs::Change;
    for (const LabelPairs::Change change : {names, word}) {
      const std::vector<LabelPair> made = pairs_.of(label, true, change, kOfText);
      const PatchedPairs tried = patch_pairs(reader_, made, {}, {.most = kJudgedPairs, .finished = watched()});
      score.no_cause = "only " + std::to_string(tried.usable) + " of " + std::to_string(tried.made) +
                       " pairs have different answers, in " + std::to_string(tried.texts) + " texts, but " +
                       std::to_string(Estimate::kFewestTexts) + " are needed";
      if (tried.texts < Estimate::kFewestTexts) continue;
      const PatchedPairs choosing = patch_pairs(reader_, pairs_.of(label, false, change, kOfText), looking,
                                                {.most = kChoosingPairs, .finished = watched()});
      double most = -1e300;
      for (const size_t h : looking) {
        TextSum all;
        for (const TextSum& text : choosing.restored[h]) all += text;
        const double mean = all.count > 0 ? all.sum / static_cast<double>(all.count) : 0;
        if (mean > most) {
          most = mean;
          score.head = h;
        }
      }
      std::vector<size_t> all(all_heads(reader_.model().spec()).size());
      for (size_t h = 0; h < all.size(); ++h) all[h] = h;
      const PatchedPairs judged = patch_pairs(reader_, made, all, {.most = kJudgedPairs, .finished = watched()});
      LabelCause cause{.change = LabelPairs::name_of(change), .made = judged.made, .usable = judged.usable};
      const std::vector<TextSum> others = mean_of_others(judged, score.head);
      cause.restored = estimate(judged.restored[score.head], options_.seed);
      cause.others = estimate(others, options_.seed);
      for (size_t h = 0; h < all.size(); ++h) {
        const Estimate one = estimate(judged.restored[h], options_.seed);
        if (h > 0 && one.mean <= cause.most.mean) continue;
        cause.most_head = h;
        cause.most = one;
      }
      cause.above = paired_difference(others, judged.restored[score.head], options_.seed);
      score.no_cause.clear();
      score.cause = std::move(cause);
      return;
    }
  }

 private:
  Reader::Finished watched() const {
    if (!options_.finished) return {};
    return [this](size_t) { return options_.finished(texts_); };
  }

  Reader& reader_;
  const LabelPairs& pairs_;
  const LabelOptions& options_;
  size_t texts_;
};

}  // namespace

const LabelScore::Baseline& LabelScore::best_baseline() const {
  return *std::max_element(baselines.begin(), baselines.end(),
                           [](const Baseline& a, const Baseline& b) { return a.score.mean < b.score.mean; });
}
bool LabelScore::right() const {
  return judged.has_interval() && judged.mean >= best_baseline().score.mean + kMargin && above.low > 0;
}
bool LabelScore::attends() const {
  return judged_mass.has_interval() && judged_mass.low >= kLeastMass;
}

std::vector<TextSum> of_half(std::span<const TextSum> texts, bool judging) {
  std::vector<TextSum> half;
  for (size_t t = 0; t < texts.size(); ++t) {
    if (judges(t) == judging) half.push_back(texts[t]);
  }
  return half;
}

size_t choose_head(std::span<const TextSum> right, std::span<const TextSum> mass, size_t texts) {
  const auto of = [&](std::span<const TextSum> all, size_t head) {
    return share_of_half(all.subspan(head * texts, texts), false);
  };
  size_t best = 0;
  double most = -1;
  for (const bool must_look : {true, false}) {
    for (size_t h = 0; h < right.size() / texts; ++h) {
      if (of(right, h) <= most || (must_look && of(mass, h) < LabelScore::kLeastMass)) continue;
      best = h;
      most = of(right, h);
    }
    if (most >= 0) break;
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

namespace {

// Everything but what depends on the chosen head.
LabelScore score_of(size_t l, const DecidedLabel& label, const LabelProbe& probe, const LabelOptions& options) {
  LabelScore one{.name = label.name, .direction = label.direction};
  for (const auto& [name, right] : label.baselines) {
    one.baselines.push_back({name, estimate(of_half(right, true), options.seed, Quantity::outcome)});
  }
  one.accuracy = estimates(probe.right(l), probe.groups(), options.seed, Quantity::outcome);
  one.coverage = estimates(probe.covered(l), probe.groups(), options.seed, Quantity::share);
  one.mass = estimates(probe.mass(l), probe.groups(), options.seed, Quantity::share);
  one.own = estimates(probe.own(l), probe.groups(), options.seed, Quantity::share);
  one.head = choose_head(probe.right(l), probe.mass(l), probe.groups());
  return one;
}

// Heads that look where the label points, on the texts they are chosen on: enough of their attention goes there, and
// they are right often enough, or at least oftener than the best guess if there is none of these.
std::vector<size_t> looking_heads(size_t l, const DecidedLabel& label, const LabelProbe& probe) {
  const size_t groups = probe.groups();
  double guess = 0;
  for (const auto& [name, right] : label.baselines) guess = std::max(guess, share_of_half(right, false));
  std::vector<size_t> looking;
  for (const double margin : {LabelScore::kMargin, 0.0}) {
    for (size_t h = 0; h < probe.right(l).size() / groups; ++h) {
      const double right = share_of_half(probe.right(l).subspan(h * groups, groups), false);
      const double mass = share_of_half(probe.mass(l).subspan(h * groups, groups), false);
      if (right > guess + margin && mass >= LabelScore::kLeastMass) looking.push_back(h);
    }
    if (!looking.empty()) break;
  }
  return looking;
}

// What the chosen head does on the texts it is judged on.
void judge(size_t l, const DecidedLabel& label, const LabelProbe& probe, const LabelOptions& options, LabelScore& one) {
  const size_t groups = probe.groups();
  const auto half = [&](std::span<const TextSum> all, bool judging) {
    return of_half(all.subspan(one.head * groups, groups), judging);
  };
  one.chosen = estimate(half(probe.right(l), false), options.seed, Quantity::outcome);
  one.judged = estimate(half(probe.right(l), true), options.seed, Quantity::outcome);
  one.judged_coverage = estimate(half(probe.covered(l), true), options.seed, Quantity::share);
  one.judged_mass = estimate(half(probe.mass(l), true), options.seed, Quantity::share);
  one.judged_own = estimate(half(probe.own(l), true), options.seed, Quantity::share);
  const auto best = std::find_if(label.baselines.begin(), label.baselines.end(),
                                 [&](const auto& of) { return of.first == one.best_baseline().name; });
  std::vector<TextSum> guessed(groups);  // texts that share a group in the probe
  for (size_t t = 0; t < best->second.size(); ++t) guessed[t % groups] += best->second[t];
  one.above = paired_difference(of_half(guessed, true), half(probe.right(l), true), options.seed);
}

}  // namespace

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
  const LabelPairs pairs(tokenizer, texts, decided);
  const CauseFinder causes(reader, pairs, options, texts.size());
  for (size_t l = 0; l < decided.labels.size(); ++l) {
    const DecidedLabel& label = decided.labels[l];
    const auto wanted = std::find(options.names.begin(), options.names.end(), label.name);
    if (!options.names.empty() && wanted == options.names.end()) continue;
    scores.labels.push_back(score_of(l, label, probe, options));
    LabelScore& one = scores.labels.back();
    const std::vector<size_t> looking = looking_heads(l, label, probe);
    if (looking.empty()) {
      one.no_cause = "no head looks there";
    } else if (!scores.earlier_only) {
      one.unpaired = true;
      one.no_cause = "pairs are made for decoders alone";
    } else if (!pairs.possible(l)) {
      one.unpaired = true;
      one.no_cause = "pairs would differ in the query too";
    } else {
      causes.find(l, looking, one);
    }
    judge(l, label, probe, options, one);
    scores.decisions += one.decisions();
  }
  scores.comparisons = scores.labels.size();
  std::stable_sort(scores.labels.begin(), scores.labels.end(),
                   [](const LabelScore& a, const LabelScore& b) { return a.decisions() > b.decisions(); });
  return scores;
}

}  // namespace qkv
