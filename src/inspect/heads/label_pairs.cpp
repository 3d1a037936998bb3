#include "inspect/heads/label_pairs.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace qkv {
namespace {

constexpr const char* kPronouns = "coreference of a pronoun";
constexpr size_t kTries = 8;  // other words tried in one place

std::string form_of(const LabelledText& text, size_t word) {
  return text.text.substr(text.words[word].begin, text.words[word].end - text.words[word].begin);
}

// The first word of the sentence a word is in.
size_t sentence_of(const LabelledText& text, size_t word) {
  const auto after = std::upper_bound(text.sentences.begin(), text.sentences.end(), word);
  return after == text.sentences.begin() ? 0 : *(after - 1);
}

// A name of one word: nothing in the text is the rest of it.
bool is_name(const LabelledText& text, size_t word) {
  const bool named = std::any_of(text.mentions.begin(), text.mentions.end(),
                                 [&](const auto& m) { return m.word == word && m.kind == "name"; });
  return named && std::none_of(text.words.begin(), text.words.end(),
                               [&](const auto& w) { return w.head == static_cast<int>(word) && w.relation == "flat"; });
}

bool occurs_twice(const LabelledText& text, size_t first, size_t last, size_t word) {
  for (size_t w = first; w <= last; ++w) {
    if (w != word && form_of(text, w) == form_of(text, word)) return true;
  }
  return false;
}

}  // namespace

const char* LabelPairs::name_of(Change change) {
  return change == Change::names ? "two names exchanged" : "another word in its place";
}

bool LabelPairs::is_pronoun(size_t label) const {
  return decided_.labels[label].name == kPronouns;
}
bool LabelPairs::is_choice(size_t label) const {
  return decided_.labels[label].direction == "pronoun to name";
}

// Forms of the words that the label points to, by how often they occur; for pronouns names alone.
std::vector<std::string> LabelPairs::words_in_relation(size_t label) const {
  std::map<std::string, int64_t> counts;
  for (size_t t = 0; t < labelled_.size(); ++t) {
    for (const Decision& d : decided_.texts[t].decisions) {
      if (d.label != label) continue;
      for (const size_t w : d.right) {
        if (!is_pronoun(label) || is_name(labelled_[t], w)) ++counts[form_of(labelled_[t], w)];
      }
    }
  }
  std::vector<std::string> words;
  for (const auto& [word, count] : counts) words.push_back(word);
  std::stable_sort(words.begin(), words.end(),
                   [&](const auto& a, const auto& b) { return counts.at(a) > counts.at(b); });
  return words;
}

// The word the label points to and the nearest other name before the query; empty if there are no two.
std::vector<LabelPairs::Replaced> LabelPairs::exchanged(const LabelledText& text, const Decision& d,
                                                        bool choice) const {
  const size_t right = d.right.front(), first = sentence_of(text, d.query);
  if (choice) {
    const size_t wrong = d.candidates.front() == right ? d.candidates.back() : d.candidates.front();
    return {{right, form_of(text, wrong)}, {wrong, form_of(text, right)}};
  }
  if (d.right.size() != 1 || right < first || right >= d.query || !is_name(text, right)) return {};
  for (size_t w = d.query; w-- > first;) {
    if (w == right || !is_name(text, w)) continue;
    if (occurs_twice(text, first, d.query, right) || occurs_twice(text, first, d.query, w)) return {};
    return {{right, form_of(text, w)}, {w, form_of(text, right)}};
  }
  return {};
}

// Both texts, from the first sentence that is needed to the query; none if they are not cut into tokens alike.
std::optional<LabelPair> LabelPairs::pair_of(size_t t, const Decision& d, std::span<const Replaced> change) const {
  const LabelledText& text = labelled_[t];
  size_t first = text.sentences.empty() ? 0 : sentence_of(text, d.query);
  for (const Replaced& r : change) first = std::min(first, text.sentences.empty() ? 0 : sentence_of(text, r.word));
  const size_t query_begin = text.words[d.query].begin, end = text.words[d.query].end;
  struct Span {
    size_t begin, end;
    const std::string* by;
  };
  std::vector<Span> spans;
  for (const Replaced& r : change) spans.push_back({text.words[r.word].begin, text.words[r.word].end, &r.by});
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  LabelPair made{.text = t, .clean = {}, .corrupt = {}, .query = {}};
  std::vector<int32_t> query_tokens[2];
  for (const bool changed : {false, true}) {
    size_t at = text.sentences.empty() ? 0 : text.words[first].begin, query_at = 0;
    std::string written;
    const auto copy_to = [&](size_t until) {
      if (at <= query_begin && query_begin < until) query_at = written.size() + query_begin - at;
      written += text.text.substr(at, until - at);
      at = until;
    };
    for (const Span& span : spans) {
      if (!changed) break;
      if (span.begin < at || span.end > query_begin) return std::nullopt;  // words that share bytes, or a later one
      copy_to(span.begin);
      written += *span.by;
      at = span.end;
    }
    copy_to(end);
    Encoding encoding = tokenizer_.encode_full(written, {.unit = OffsetUnit::bytes});
    const LabelledText query{.text = written, .words = {{query_at, written.size()}}};
    query_tokens[changed ? 1 : 0] = tokens_of_words(query, encoding).front();
    (changed ? made.corrupt : made.clean).ids = std::move(encoding.ids);
  }
  if (made.clean.ids.size() != made.corrupt.ids.size() || made.clean.ids == made.corrupt.ids) return std::nullopt;
  if (query_tokens[0] != query_tokens[1] || query_tokens[0].empty()) return std::nullopt;
  made.query = query_tokens[0];
  const auto shorten = [&](TokenText& to) { to.ids.resize(static_cast<size_t>(made.query.back()) + 1); };
  shorten(made.clean);  // a token that ends the text says nothing
  shorten(made.corrupt);
  for (const int32_t q : made.query) {
    if (made.clean.ids[static_cast<size_t>(q)] != made.corrupt.ids[static_cast<size_t>(q)]) return std::nullopt;
  }
  return made;
}

std::vector<LabelPair> LabelPairs::of(size_t label, bool judging, Change change, size_t each) const {
  std::vector<LabelPair> made;
  const std::vector<std::string> others =
      change == Change::word ? words_in_relation(label) : std::vector<std::string>();
  const bool choice = is_choice(label), pronoun = is_pronoun(label);
  if (!possible(label)) return made;
  if (pronoun && change == Change::names) return made;
  std::map<std::string, std::set<std::string>> names_of;  // of each pronoun
  for (size_t t = 0; pronoun && t < labelled_.size(); ++t) {
    for (const Decision& d : decided_.texts[t].decisions) {
      if (d.label != label) continue;
      for (const size_t w : d.right) {
        if (is_name(labelled_[t], w)) names_of[form_of(labelled_[t], d.query)].insert(form_of(labelled_[t], w));
      }
    }
  }
  size_t turn = 0;
  for (size_t t = 0; t < labelled_.size(); ++t) {
    if (judges(t) != judging) continue;
    const LabelledText& text = labelled_[t];
    size_t of_text = 0;
    for (const Decision& d : decided_.texts[t].decisions) {
      if (d.label != label || of_text == each) continue;
      if (change == Change::names) {
        const std::vector<Replaced> swapped = exchanged(text, d, choice);
        if (swapped.empty()) continue;
        if (std::optional<LabelPair> pair = pair_of(t, d, swapped)) {
          made.push_back(std::move(*pair));
          ++of_text;
        }
        continue;
      }
      const auto nearest = std::find_if(d.right.rbegin(), d.right.rend(),
                                        [&](size_t w) { return w < d.query && (!pronoun || is_name(text, w)); });
      if (nearest == d.right.rend()) continue;
      const std::string own = form_of(text, *nearest);
      for (size_t tried = 0; tried < std::min(kTries, others.size()); ++tried, ++turn) {
        const std::string& other = others[turn % others.size()];
        const bool there = pronoun && !names_of[form_of(text, d.query)].contains(other);
        if (other == own || there) continue;
        // Everywhere in these sentences: the name must not be found beside its replacement.
        std::vector<Replaced> all;
        const size_t first = sentence_of(text, *nearest);
        for (size_t w = first; w < d.query; ++w) {
          if (w == *nearest || (pronoun && form_of(text, w) == own)) all.push_back({w, other});
        }
        if (std::optional<LabelPair> pair = pair_of(t, d, all)) {
          made.push_back(std::move(*pair));
          ++of_text;
          break;
        }
      }
    }
  }
  return made;
}

}  // namespace qkv
