#include "inspect/heads/label_decisions.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"

namespace qkv {
namespace {

constexpr int32_t kFirstDecided = 2;  // earlier rows have too few keys, as for all measures
constexpr const char* kOffset = "offset";

bool contains(const std::vector<size_t>& words, size_t word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "the word before", "2 words after"
std::string offset_name(int64_t offset) {
  if (offset == -1) return "the word before";
  if (offset == 1) return "the word after";
  return std::to_string(offset < 0 ? -offset : offset) + (offset < 0 ? " words before" : " words after");
}

}  // namespace

Decisions::Decisions(const ModelSpec& spec, const Tokenizer& tokenizer, std::span<const LabelledText> labelled,
                     const LabelOptions& options)
    : earlier_only_(spec.kind == ModelSpec::Kind::decoder_only) {
  const int64_t most = spec.context > 0 ? std::min(options.length, spec.context) : options.length;
  const auto balanced = [&](bool feminine) {
    return std::count_if(labelled.begin(), labelled.end(), [&](const LabelledText& text) {
      return std::any_of(text.choices.begin(), text.choices.end(),
                         [&](const auto& c) { return c.feminine == feminine && visible(text, c); });
    });
  };
  fair_share_ = static_cast<size_t>(std::min(balanced(false), balanced(true)));
  for (const LabelledText& text : labelled) {
    Encoding encoding = tokenizer.encode_full(text.text, {.unit = OffsetUnit::bytes});
    const auto cut = static_cast<size_t>(std::min(most, std::ssize(encoding.ids)));
    QKV_CHECK(cut > 0, "a text of ", text.text.size(), " bytes has no tokens", Hint("leave empty texts out"));
    encoding.ids.resize(cut);
    encoding.offsets.resize(cut);
    DecidedText& decided = texts.emplace_back();
    decided.words = tokens_of_words(text, encoding);
    for (const auto& tokens : decided.words) decided.rows += std::ssize(tokens);
    words += std::ssize(text.words);
    if (spec.has_source()) {
      seen.push_back({.ids = {spec.tokens.decoder_start.value_or(0)}, .source = std::move(encoding.ids)});
    } else {
      seen.push_back({.ids = std::move(encoding.ids)});
    }
    add_arcs(text);
    add_mentions(text);
    add_choices(text);
    std::stable_sort(decided.decisions.begin(), decided.decisions.end(),
                     [](const Decision& a, const Decision& b) { return a.query < b.query; });
  }
  guess_offsets();
  drop_small(options.fewest);
  QKV_CHECK(!labels.empty(), "no label has ", options.fewest, " cases in each half of ", labelled.size(), " texts",
            Hint(earlier_only_ ? "this model sees only earlier words; give more texts" : "give more texts"));
}

size_t Decisions::label(const std::string& name, const std::string& direction) {
  for (size_t l = 0; l < labels.size(); ++l) {
    if (labels[l].name == name && labels[l].direction == direction) return l;
  }
  labels.push_back({.name = name, .direction = direction});
  return labels.size() - 1;
}

bool Decisions::usable(size_t word) const {
  const std::vector<int32_t>& tokens = texts.back().words[word];
  return !tokens.empty() && tokens.front() >= kFirstDecided;
}

bool Decisions::apart(size_t word, size_t query) const {
  const std::vector<int32_t>&tokens = texts.back().words[word], &own = texts.back().words[query];
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](int32_t token) { return std::find(own.begin(), own.end(), token) == own.end(); });
}

void Decisions::add(Decision decision, std::initializer_list<std::pair<const char*, size_t>> guesses) {
  DecidedLabel& one = labels[decision.label];
  if (one.baselines.empty()) {
    for (const auto& [name, guess] : guesses) one.baselines.push_back({name, {}});
  }
  size_t at = 0;
  for (const auto& [name, guess] : guesses) {
    std::vector<TextSum>& sums = one.baselines[at++].second;
    sums.resize(texts.size());
    sums.back().add(contains(decision.right, guess) ? 1 : 0);
  }
  texts.back().decisions.push_back(std::move(decision));
}

// Each arc gives two decisions: from dependent to head and from head to dependent.
void Decisions::add_arcs(const LabelledText& text) {
  for (size_t w = 0; w < text.words.size(); ++w) {
    if (text.words[w].head < 0) continue;
    const auto head = static_cast<size_t>(text.words[w].head);
    for (const auto& [query, other, direction] :
         {std::tuple(w, head, "dependent to head"), std::tuple(head, w, "head to dependent")}) {
      if (earlier_only_ && other > query) continue;
      if (!usable(query) || !apart(other, query)) {
        ++lost;
        continue;
      }
      Decision d{.label = label(text.words[w].relation, direction), .query = query, .right = {other}};
      for (size_t c = 0; c < (earlier_only_ ? query : text.words.size()); ++c) {
        if (c != query && apart(c, query)) d.candidates.push_back(c);
      }
      add(std::move(d), {{kOffset, std::numeric_limits<size_t>::max()}});  // filled in by guess_offsets()
    }
  }
}

void Decisions::add_mentions(const LabelledText& text) {
  for (size_t m = 0; m < text.mentions.size(); ++m) {
    const LabelledText::Mention& mention = text.mentions[m];
    if (mention.same.empty()) continue;  // no antecedent
    const auto form = [&](size_t word) {
      return text.text.substr(text.words[word].begin, text.words[word].end - text.words[word].begin);
    };
    Decision d{.query = mention.word};
    size_t nearest = mention.word, match = mention.word;
    for (size_t e = 0; e < m; ++e) {
      const size_t word = text.mentions[e].word;
      if (word == mention.word || texts.back().words[word].empty() || contains(d.candidates, word)) continue;
      d.candidates.push_back(word);
      if (contains(mention.same, e)) d.right.push_back(word);
      nearest = word;
      if (form(word) == form(mention.word)) match = word;
    }
    if (!usable(mention.word) || d.right.empty()) {
      ++lost;
      continue;
    }
    if (match == mention.word) match = nearest;  // no earlier copy of the word: take the nearest
    for (const std::string& name : {std::string("coreference"), "coreference of a " + mention.kind}) {
      d.label = label(name, "mention to antecedent");
      add(d, {{"nearest mention", nearest}, {"same word", match}});
    }
  }
}

bool Decisions::visible(const LabelledText& text, const LabelledText::Choice& choice) const {
  const auto at = [&](size_t word) { return text.words[word].begin; };
  return !earlier_only_ || std::max(at(choice.right), at(choice.wrong)) < at(choice.pronoun);
}

// The label "GAP" has equally many decisions of each gender.
void Decisions::add_choices(const LabelledText& text) {
  for (const LabelledText::Choice& choice : text.choices) {
    const auto at = [&](size_t word) { return static_cast<int64_t>(text.words[word].begin); };
    const auto& tokens = texts.back().words;
    const int64_t pronoun = at(choice.pronoun);
    if (!visible(text, choice)) continue;
    if (!usable(choice.pronoun) || tokens[choice.right].empty() || tokens[choice.wrong].empty()) {
      ++lost;
      continue;
    }
    Decision d{.label = label(choice.feminine ? "GAP, she" : "GAP, he", "pronoun to name"),
               .query = choice.pronoun,
               .candidates = {choice.right, choice.wrong},
               .right = {choice.right}};
    const bool near = std::abs(at(choice.right) - pronoun) < std::abs(at(choice.wrong) - pronoun);
    const size_t nearest = near ? choice.right : choice.wrong;
    add(d, {{"nearest name", nearest}});
    if (++choices_[choice.feminine ? 1 : 0] > fair_share_) continue;
    d.label = label("GAP", "pronoun to name");
    add(std::move(d), {{"nearest name", nearest}});
  }
}

// The baseline of a relation: its most frequent distance.
void Decisions::guess_offsets() {
  std::vector<std::map<int64_t, int64_t>> seen_offsets(labels.size());
  const auto offset_of = [](const Decision& d) {
    return static_cast<int64_t>(d.right.front()) - static_cast<int64_t>(d.query);
  };
  for (const DecidedText& text : texts) {
    for (const Decision& d : text.decisions) ++seen_offsets[d.label][offset_of(d)];
  }
  std::vector<int64_t> best(labels.size());
  for (size_t l = 0; l < labels.size(); ++l) {
    if (labels[l].baselines.front().first != kOffset) continue;
    const auto most = std::max_element(seen_offsets[l].begin(), seen_offsets[l].end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    best[l] = most->first;
    labels[l].baselines.front() = {offset_name(best[l]), std::vector<TextSum>(texts.size())};
  }
  for (size_t t = 0; t < texts.size(); ++t) {
    for (const Decision& d : texts[t].decisions) {
      if (best[d.label] != 0) labels[d.label].baselines.front().second[t].add(offset_of(d) == best[d.label] ? 1 : 0);
    }
  }
}

void Decisions::drop_small(int64_t fewest) {
  constexpr size_t kDropped = std::numeric_limits<size_t>::max();
  std::vector<size_t> kept(labels.size(), kDropped);
  std::vector<DecidedLabel> large;
  for (size_t l = 0; l < labels.size(); ++l) {
    const auto count = [&](bool judging) {
      TextSum all;
      for (const TextSum& one : of_half(labels[l].baselines.front().second, judging)) all += one;
      return all.count;
    };
    if (std::min(count(false), count(true)) < fewest) continue;
    kept[l] = large.size();
    large.push_back(std::move(labels[l]));
  }
  labels = std::move(large);
  for (DecidedText& text : texts) {
    std::erase_if(text.decisions, [&](const Decision& d) { return kept[d.label] == kDropped; });
    for (Decision& d : text.decisions) d.label = kept[d.label];
  }
}

}  // namespace qkv
