#include "inspect/texts/labelled_text.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

std::vector<std::string_view> split(std::string_view line, char by) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(by, at), line.size());
    parts.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::optional<size_t> number(std::string_view text) {
  size_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Calls line(number from 1, text) for each line, and once more with an empty one at the end.
template <class Line>
void for_lines(std::string_view content, const Line& line) {
  size_t count = 0;
  while (!content.empty()) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view one = content.substr(0, end);
    if (one.ends_with('\r')) one.remove_suffix(1);
    line(++count, one);
    content.remove_prefix(std::min(end + 1, content.size()));
  }
  line(++count, std::string_view());
}

class ConlluReader {
 public:
  ConlluReader(const std::string& what, std::vector<LabelledText>& into) : what_(what), into_(into) {}

  void line(size_t at, std::string_view text) {
    constexpr std::string_view kText = "# text = ";
    if (text.empty()) return finish();
    if (text.starts_with(kText)) sentence_.text = text.substr(kText.size());
    if (text.starts_with('#')) return;
    const std::vector<std::string_view> columns = split(text, '\t');
    QKV_CHECK(columns.size() == 10, what_, ":", at, " has ", columns.size(), " columns but CoNLL-U has 10",
              Hint("is this a CoNLL-U file?"));
    QKV_CHECK(!sentence_.text.empty(), what_, ":", at, ": a sentence without its text",
              Hint("sentences have a line  # text = ..."));
    const std::string_view id = columns[0], form = columns[1];
    if (id.find('.') != std::string_view::npos) return;  // an empty node
    if (const size_t dash = id.find('-'); dash != std::string_view::npos) {
      const std::optional<size_t> last = number(id.substr(dash + 1));
      QKV_CHECK(last.has_value(), what_, ":", at, ": words ", printable(std::string(id)), " are no range",
                Hint("1-2, say"));
      surface_ = find(at, form);
      surface_end_ = *last;
      inside_ = surface_.begin;
      return;
    }
    const std::optional<size_t> number_of = number(id), head = number(columns[6]);
    QKV_CHECK(number_of == sentence_.words.size() + 1 && head.has_value(), what_, ":", at, ": word ",
              printable(std::string(id)), " with head ", printable(std::string(columns[6])), " after ",
              sentence_.words.size(), " words", Hint("words are counted from 1, heads are their numbers, 0 for none"));
    LabelledText::Word word = *number_of <= surface_end_ ? part(form) : find(at, form);
    word.head = static_cast<int>(*head) - 1;
    word.relation = columns[7].substr(0, columns[7].find(':'));  // without language-specific subtypes
    sentence_.words.push_back(std::move(word));
    line_ = at;
  }

 private:
  LabelledText::Word find(size_t at, std::string_view form) {
    size_t begin = next_;
    while (begin < sentence_.text.size() && sentence_.text[begin] == ' ') ++begin;
    QKV_CHECK(sentence_.text.compare(begin, form.size(), form) == 0, what_, ":", at, ": the word ",
              printable(std::string(form)), " does not stand at byte ", begin, " of its sentence, ",
              printable(sentence_.text.substr(begin, 20)), Hint("labels and text must be of one file"));
    next_ = begin + form.size();
    return {.begin = begin, .end = next_};
  }
  // A word of a multiword token: its own letters if they occur there, otherwise the whole token.
  LabelledText::Word part(std::string_view form) {
    if (inside_ < surface_.end && sentence_.text.compare(inside_, form.size(), form) == 0 &&
        inside_ + form.size() <= surface_.end) {
      const size_t begin = inside_;
      inside_ += form.size();
      return {.begin = begin, .end = inside_};
    }
    inside_ = surface_.end;
    return {.begin = surface_.begin, .end = surface_.end};
  }
  void finish() {
    for (const LabelledText::Word& word : sentence_.words) {
      QKV_CHECK(word.head < static_cast<int>(sentence_.words.size()), what_, ":", line_, ": a word depends on word ",
                word.head + 1, " of ", sentence_.words.size(), Hint("heads are numbers of words of the same sentence"));
    }
    if (!sentence_.words.empty()) into_.push_back(std::move(sentence_));
    sentence_ = {};
    surface_end_ = next_ = 0;
  }

  const std::string& what_;
  std::vector<LabelledText>& into_;
  LabelledText sentence_;
  LabelledText::Word surface_;
  size_t next_ = 0, inside_ = 0, surface_end_ = 0, line_ = 0;
};

// GAP has offsets in characters.
std::optional<size_t> byte_of_character(std::string_view text, size_t character) {
  size_t at = 0;
  for (; character > 0 && at < text.size(); --character) at += first_character(text.substr(at)).size();
  return character == 0 ? std::optional(at) : std::nullopt;
}

}  // namespace

std::vector<LabelledText> read_conllu(std::string_view content, const std::string& what) {
  std::vector<LabelledText> found;
  ConlluReader reader(what, found);
  for_lines(content, [&](size_t at, std::string_view line) { reader.line(at, line); });
  QKV_CHECK(!found.empty(), what, " has no sentence", Hint("is this a CoNLL-U file?"));
  return found;
}

std::vector<LabelledText> read_gap(std::string_view content, const std::string& what) {
  std::vector<LabelledText> found;
  for_lines(content, [&](size_t at, std::string_view line) {
    if (line.empty() || line.starts_with("ID\t")) return;
    const std::vector<std::string_view> c = split(line, '\t');
    QKV_CHECK(c.size() == 11, what, ":", at, " has ", c.size(), " columns but GAP has 11",
              Hint("ID, Text, Pronoun, its offset, A, its offset, whether it is meant, the same of B, URL"));
    const bool a = c[6] == "TRUE", b = c[9] == "TRUE";
    LabelledText made{.text = std::string(c[1])};
    for (const size_t column : {size_t{2}, size_t{4}, size_t{7}}) {
      const std::optional<size_t> offset = number(c[column + 1]);
      const std::optional<size_t> begin = offset ? byte_of_character(c[1], *offset) : std::nullopt;
      QKV_CHECK(begin && c[1].compare(*begin, c[column].size(), c[column]) == 0, what, ":", at, ": ",
                printable(std::string(c[column])), " does not stand at character ",
                printable(std::string(c[column + 1])), " of its text", Hint("offsets count characters from 0"));
      made.words.push_back({.begin = *begin, .end = *begin + c[column].size()});
    }
    if (a == b) return;                                         // both or none is meant
    const char first = static_cast<char>(c[2].front() | 0x20);  // he, him, his against she, her, hers
    made.choices.push_back({.pronoun = 0,
                            .right = a ? size_t{1} : size_t{2},
                            .wrong = a ? size_t{2} : size_t{1},
                            .feminine = first == 's' || c[2].substr(1).starts_with("er")});
    found.push_back(std::move(made));
  });
  QKV_CHECK(!found.empty(), what, " has no line with a pronoun that means one of two names",
            Hint("is this a GAP file?"));
  return found;
}

LabelledText labelled(const AnnotatedText& annotated) {
  LabelledText made{.text = annotated.text};
  std::vector<size_t> first_word;
  for (const StorySentence& sentence : annotated.sentences) {
    first_word.push_back(made.words.size());
    made.sentences.push_back(made.words.size());
    const auto first = static_cast<int>(made.words.size());
    for (const StoryWord& word : sentence.words) {
      made.words.push_back({.begin = word.begin,
                            .end = word.end,
                            .head = word.head > 0 ? first + word.head - 1 : -1,
                            .relation = std::string(word.relation.substr(0, word.relation.find(':')))});
    }
  }
  const std::vector<Mention>& all = annotated.mentions;
  for (size_t m = 0; m < all.size(); ++m) {
    const StorySentence& sentence = annotated.sentences[all[m].sentence];
    size_t head = all[m].last;
    for (size_t w = all[m].first; w <= all[m].last; ++w) {
      if (sentence.words[w].entity >= 0) head = w;
    }
    LabelledText::Mention mention{.word = first_word[all[m].sentence] + head,
                                  .kind = all[m].kind == MentionKind::name   ? "name"
                                          : all[m].kind == MentionKind::noun ? "noun"
                                                                             : "pronoun"};
    for (size_t e = 0; e < m; ++e) {
      const bool meant = std::any_of(all[m].antecedents.begin(), all[m].antecedents.end(), [&](size_t a) {
        return a == e || (all[a].entity >= 0 && all[a].entity == all[e].entity);
      });
      if (meant || (all[m].entity >= 0 && all[e].entity == all[m].entity)) mention.same.push_back(e);
    }
    made.mentions.push_back(std::move(mention));
  }
  return made;
}

}  // namespace qkv
