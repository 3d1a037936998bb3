#include "inspect/look/alignment_error.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "core/host_values.h"
#include "inspect/look/gold_tokens.h"

namespace qkv {
namespace {

constexpr std::array kLeast{0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
constexpr size_t kRowKinds = 2;  // predicting, reading
constexpr size_t kChoices = kRowKinds * kLeast.size();

class GoldProbe : public ReadingProbe {
 public:
  GoldProbe(const ModelSpec& spec, std::span<const PairTokens> tokens, std::span<const GoldPair> gold)
      : tokens_(tokens), gold_(gold) {
    for (const HeadId& head : all_heads(spec)) {
      if (head.stack != Stack::cross) continue;
      if (head.head == 0) first_head_[head.layer] = heads_.size();
      heads_.push_back(head);
    }
    sums_.resize(heads_.size() * kChoices * gold.size());
  }

  void begin(Context&, const PassTexts& pass) override { pass_ = &pass; }
  Ask ask(Place place, Site site) const override {
    return place.stack == Stack::cross && site == Site::attn_probs ? Ask::pattern : Ask::none;
  }
  void visit(Context& cx, const Tap& tap, Tensor& x) override {
    const std::vector<float> pattern = host_floats(x);  // [N, H, S]
    const auto heads = static_cast<size_t>(x.dim(1)), keys = static_cast<size_t>(x.dim(2));
    const std::map<size_t, std::vector<size_t>> rows_of = rows_of_texts(*pass_);
    const size_t first = first_head_.at(tap.place.layer);
    cx.exec.pool->run(static_cast<int64_t>(heads), [&](int64_t head, int) {
      const auto h = static_cast<size_t>(head);
      for (const auto& [text, rows] : rows_of) {
        const auto row = [&, &mine = rows](size_t position) {
          return pattern.data() + (mine[position] * heads + h) * keys;
        };
        link(text, first + h, row);
      }
    });
  }

  const std::vector<HeadId>& heads() const { return heads_; }
  std::span<const TextSum> sums(size_t head, size_t choice) const {
    return std::span(sums_).subspan((head * kChoices + choice) * gold_.size(), gold_.size());
  }

 private:
  template <class Row>
  void link(size_t text, size_t head, const Row& row) {
    const PairTokens& tokens = tokens_[text];
    for (size_t reading = 0; reading < kRowKinds; ++reading) {
      std::array<WordPairs, kLeast.size()> found;
      for (size_t t = 0; t < tokens.target.size(); ++t) {
        const std::vector<double> to = source_weights(tokens, t, reading == 1, row);
        if (to.empty()) continue;
        const auto most = std::max_element(to.begin(), to.end());
        for (size_t l = 0; l < kLeast.size(); ++l) {
          if (*most > 0 && *most >= kLeast[l]) found[l].emplace_back(most - to.begin(), t);
        }
      }
      for (size_t l = 0; l < kLeast.size(); ++l) {
        sums_[(head * kChoices + reading * kLeast.size() + l) * gold_.size() + text] = error_sum(found[l], gold_[text]);
      }
    }
  }

  std::span<const PairTokens> tokens_;
  std::span<const GoldPair> gold_;
  std::vector<HeadId> heads_;
  std::map<int16_t, size_t> first_head_;
  std::vector<TextSum> sums_;  // [head, choice, sentence]
  const PassTexts* pass_ = nullptr;
};

std::string_view word_text(const LabelledText& text, size_t word) {
  return std::string_view(text.text).substr(text.words[word].begin, text.words[word].end - text.words[word].begin);
}

// --- reading gold files ----------------------------------------------------------------------------------------------

void read_side(const Json& line, const std::string& side, const std::string& where, LabelledText& into) {
  into.text = line.at(side).get<std::string>();
  for (const Json& range : line.at(side + "_words")) {
    const auto begin = range.at(0).get<size_t>(), end = range.at(1).get<size_t>();
    QKV_CHECK(begin < end && end <= into.text.size(), where, ": a word of the ", side, " is [", begin, ", ", end,
              ") but the text has ", into.text.size(), " bytes", Hint("words are ranges of bytes"));
    into.words.push_back({.begin = begin, .end = end});
  }
}

void read_links(const Json& links, const std::string& where, const GoldPair& pair, WordPairs& into) {
  for (const Json& link : links) {
    const auto s = link.at(0).get<size_t>(), t = link.at(1).get<size_t>();
    QKV_CHECK(s < pair.source.words.size() && t < pair.target.words.size(), where, ": the pair [", s, ", ", t,
              "] is beyond ", pair.source.words.size(), " source and ", pair.target.words.size(), " target words",
              Hint("words are counted from 0"));
    into.emplace_back(s, t);
  }
  std::sort(into.begin(), into.end());
}

}  // namespace

double alignment_error(const WordPairs& found, const GoldPair& gold) {
  const TextSum sum = error_sum(found, gold);
  return sum.count > 0 ? sum.sum / static_cast<double>(sum.count) : 0;
}

std::vector<GoldPair> read_gold_pairs(std::string_view content, const std::string& what) {
  std::vector<GoldPair> pairs;
  size_t number = 0;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    const std::string where = what + ":" + std::to_string(++number);
    if (line.empty()) continue;
    const Json json = parse_json(line, where);
    GoldPair& pair = pairs.emplace_back();
    try {
      read_side(json, "source", where, pair.source);
      read_side(json, "target", where, pair.target);
      read_links(json.at("pairs"), where, pair, pair.links);
      if (json.contains("possible")) read_links(json.at("possible"), where, pair, pair.possible);
    } catch (const Json::exception& e) {
      QKV_FAIL(where, ": ", e.what(),
               Hint("a line is {\"source\", \"target\", \"source_words\", \"target_words\", \"pairs\"}; see "
                    "docs/looking.md"));
    }
  }
  return pairs;
}

WordPairs diagonal_links(const GoldPair& pair) {
  WordPairs links;
  const size_t sources = pair.source.words.size(), targets = pair.target.words.size();
  for (size_t t = 0; t < targets && sources > 0; ++t) {
    const double share = (static_cast<double>(t) + 0.5) / static_cast<double>(targets);
    links.emplace_back(std::min(static_cast<size_t>(share * static_cast<double>(sources)), sources - 1), t);
  }
  return links;
}

std::vector<WordPairs> model1_links(std::span<const GoldPair> pairs) {
  constexpr int kRounds = 10;
  constexpr size_t kNull = 0;  // the source word of target words without one
  std::map<std::string_view, size_t> ids;
  const auto id = [&](std::string_view word) { return ids.try_emplace(word, ids.size() + 1).first->second; };
  std::vector<std::pair<std::vector<size_t>, std::vector<size_t>>> words;
  for (const GoldPair& pair : pairs) {
    auto& [source, target] = words.emplace_back();
    source.push_back(kNull);
    for (size_t s = 0; s < pair.source.words.size(); ++s) source.push_back(id(word_text(pair.source, s)));
    for (size_t t = 0; t < pair.target.words.size(); ++t) target.push_back(id(word_text(pair.target, t)));
  }
  using Table = std::map<std::pair<size_t, size_t>, double>;  // p(target | source)
  Table table;
  for (const auto& [source, target] : words) {
    for (const size_t s : source) {
      for (const size_t t : target) table[{s, t}] = 1;
    }
  }
  for (int round = 0; round < kRounds; ++round) {
    Table counts;
    std::map<size_t, double> totals;
    for (const auto& [source, target] : words) {
      for (const size_t t : target) {
        double all = 0;
        for (const size_t s : source) all += table[{s, t}];
        for (const size_t s : source) {
          const double share = table[{s, t}] / all;
          counts[{s, t}] += share;
          totals[s] += share;
        }
      }
    }
    for (auto& [pair, p] : counts) p /= totals[pair.first];
    table = std::move(counts);
  }
  std::vector<WordPairs> links;
  for (const auto& [source, target] : words) {
    WordPairs& of = links.emplace_back();
    for (size_t t = 0; t < target.size(); ++t) {
      size_t best = kNull;
      for (size_t s = 1; s < source.size(); ++s) {
        if (table[{source[s], target[t]}] > table[{source[best], target[t]}]) best = s;
      }
      if (best != kNull) of.emplace_back(best - 1, t);
    }
  }
  return links;
}

AlignmentScore score_alignment(Reader& reader, const PairTokenizers& tokenizers, std::span<const GoldPair> pairs,
                               const Reader::Finished& finished) {
  const ModelSpec& spec = reader.model().spec();
  QKV_CHECK(spec.has_source(), "a ", spec.family, " has no cross-attention to align by",
            Hint("take a model that translates"));
  const int64_t fewest = 2 * Estimate::kFewestTexts;
  QKV_CHECK(std::ssize(pairs) >= fewest, "there are ", pairs.size(), " gold sentence pairs but ", fewest,
            " are needed: heads are chosen on one half and judged on the other", Hint("give more"));
  std::vector<PairTokens> tokens;
  std::vector<TokenText> texts;
  for (const GoldPair& pair : pairs) texts.push_back(tokens.emplace_back(tokens_of(tokenizers, pair)).text);
  GoldProbe probe(spec, tokens, pairs);
  reader.look(texts, probe, finished);

  AlignmentScore score{.sentences = std::ssize(pairs)};
  size_t best_head = 0, best_choice = 0;
  double least_error = 2;
  for (size_t h = 0; h < probe.heads().size(); ++h) {
    size_t own = 0;
    for (size_t c = 0; c < kChoices; ++c) {
      const double error = mean_of_half(probe.sums(h, c), false);
      if (error < mean_of_half(probe.sums(h, own), false)) own = c;
      if (error < least_error) {
        least_error = error;
        best_head = h;
        best_choice = c;
      }
    }
    score.best.push_back(estimate(of_half(probe.sums(h, own), false)));
  }
  score.choice = {.head = probe.heads()[best_head],
                  .reading = best_choice >= kLeast.size(),
                  .least = kLeast[best_choice % kLeast.size()]};
  score.chosen = estimate(of_half(probe.sums(best_head, best_choice), false));
  score.judged = estimate(of_half(probe.sums(best_head, best_choice), true));
  const std::vector<WordPairs> model1 = model1_links(pairs);
  std::vector<TextSum> diagonal_sums, model1_sums;
  for (size_t p = 0; p < pairs.size(); ++p) {
    score.links += std::ssize(pairs[p].links);
    diagonal_sums.push_back(error_sum(diagonal_links(pairs[p]), pairs[p]));
    model1_sums.push_back(error_sum(model1[p], pairs[p]));
  }
  score.diagonal = estimate(of_half(diagonal_sums, true));
  score.model1 = estimate(of_half(model1_sums, true));
  const std::vector<TextSum> own = of_half(probe.sums(best_head, best_choice), true);
  score.below_diagonal = paired_ratios(own, of_half(diagonal_sums, true));
  score.below_model1 = paired_ratios(own, of_half(model1_sums, true));
  return score;
}

}  // namespace qkv
