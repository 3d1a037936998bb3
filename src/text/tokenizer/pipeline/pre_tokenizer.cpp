#include "text/tokenizer/pipeline/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "text/tokenizer/models/byte_alphabet.h"
#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

// Turns the matches of a Matcher into pieces. Empty pieces are dropped.
class MatchSplitter {
 public:
  MatchSplitter(const TextPiece& piece, SplitBehavior behavior, PieceSink sink)
      : piece_(piece), behavior_(behavior), sink_(sink) {}

  void found(size_t begin, size_t end, bool is_match) {
    const bool after_match = open_ && last_is_match_;
    switch (behavior_) {
      case SplitBehavior::removed:
        if (!is_match) emit(begin, end);
        return;
      case SplitBehavior::isolated:
        return emit(begin, end);
      case SplitBehavior::merged_with_previous:
        join(begin, end, is_match && !after_match);
        break;
      case SplitBehavior::merged_with_next:
        join(begin, end, !is_match && after_match);
        break;
      case SplitBehavior::contiguous:
        join(begin, end, is_match == after_match);
        break;
    }
    last_is_match_ = is_match;
  }

  void finish() {
    if (open_) emit(begin_, end_);
  }

 private:
  void join(size_t begin, size_t end, bool to_open_piece) {
    if (!(open_ && to_open_piece)) {
      finish();
      begin_ = begin;
      open_ = true;
    }
    end_ = end;
  }

  void emit(size_t begin, size_t end) {
    if (begin < end) sink_(piece_.part(begin, end));
  }

  const TextPiece& piece_;
  SplitBehavior behavior_;
  PieceSink sink_;
  size_t begin_ = 0, end_ = 0;  // the open piece, which may still grow
  bool open_ = false, last_is_match_ = false;
};

void split_by(const Matcher& wanted, SplitOptions options, const TextPiece& piece, PieceSink sink) {
  if (options.behavior == SplitBehavior::isolated) {
    if (const auto pattern = wanted.pattern()) {
      split_pattern(*pattern, piece.text, [&](size_t begin, size_t end) { sink(piece.part(begin, end)); });
      return;
    }
  }
  MatchSplitter splitter(piece, options.behavior, sink);
  wanted.scan(piece.text,
              [&](size_t begin, size_t end, bool is_match) { splitter.found(begin, end, is_match != options.invert); });
  splitter.finish();
}

class SplitPreTokenizer final : public PreTokenizer {
 public:
  SplitPreTokenizer(Matcher wanted, SplitOptions options) : wanted_(std::move(wanted)), options_(options) {}
  void split(const TextPiece& piece, PieceSink sink) const override { split_by(wanted_, options_, piece, sink); }

 private:
  Matcher wanted_;
  SplitOptions options_;
};

class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  explicit ByteLevelPreTokenizer(ByteLevelOptions options) : options_(options) {}

  void split(const TextPiece& piece, PieceSink sink) const override {
    if (!options_.add_prefix_space || piece.text.starts_with(' ')) return cut(piece, sink);
    NormalizedText spaced(piece);
    spaced.prepend(" ", kStep);
    cut(spaced.piece(), sink);
  }

 private:
  void cut(const TextPiece& piece, PieceSink sink) const {
    if (!options_.use_regex) return emit(piece, sink);
    split_pattern(Pattern::gpt2, piece.text, [&](size_t begin, size_t end) { emit(piece.part(begin, end), sink); });
  }

  void emit(const TextPiece& piece, PieceSink sink) const {
    if (!options_.to_letters) return sink(piece);
    NormalizedText letters(piece);
    TextRewriter rewrite(letters, kStep);
    while (!rewrite.done()) {
      const std::string_view character = first_character(rewrite.rest());
      rewrite.replace(character.size(), byte_letter(static_cast<unsigned char>(character[0])));
      for (const char byte : character.substr(1)) rewrite.insert(byte_letter(static_cast<unsigned char>(byte)));
    }
    rewrite.commit();
    sink(letters.piece());
  }

  static constexpr const char* kStep = "the pre-tokenizer ByteLevel";
  ByteLevelOptions options_;
};

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(MetaspaceOptions options)
      : options_(std::move(options)), mark_(Matcher::string(options_.replacement)) {}

  void split(const TextPiece& piece, PieceSink sink) const override {
    NormalizedText marked(piece);
    constexpr const char* kStep = "the pre-tokenizer Metaspace";
    TextRewriter rewrite(marked, kStep);
    while (!rewrite.done()) {
      const size_t space = std::min(rewrite.rest().find(' '), rewrite.rest().size());
      rewrite.keep(space);
      if (!rewrite.done()) rewrite.replace(1, options_.replacement);
    }
    rewrite.commit();
    const bool may_prepend =
        options_.prepend == PrependScheme::always || (options_.prepend == PrependScheme::first && piece.start == 0);
    if (may_prepend && !marked.text().starts_with(options_.replacement)) marked.prepend(options_.replacement, kStep);
    if (!options_.split) return sink(marked.piece());
    split_by(mark_, {.behavior = SplitBehavior::merged_with_next}, marked.piece(), sink);
  }

 private:
  MetaspaceOptions options_;
  Matcher mark_;
};

class WordsPreTokenizer final : public PreTokenizer {
 public:
  void split(const TextPiece& piece, PieceSink sink) const override {
    enum class Run { none, word, sign };
    const auto run_of = [](Char c) {
      if (is_word(c)) return Run::word;
      return is_space(c) ? Run::none : Run::sign;
    };
    size_t begin = 0;
    Run run = Run::none;
    for (size_t at = 0; at < piece.text.size();) {
      const Char c = char_at(piece.text, at);
      if (const Run now = run_of(c); now != run) {
        if (run != Run::none) sink(piece.part(begin, at));
        begin = at;
        run = now;
      }
      at += c.bytes;
    }
    if (run != Run::none) sink(piece.part(begin, piece.text.size()));
  }
};

class SequencePreTokenizer final : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<PreTokenizerPtr> steps) : steps_(std::move(steps)) {}
  void split(const TextPiece& piece, PieceSink sink) const override { step(0, piece, sink); }
  size_t steps() const override { return count_steps(steps_); }

 private:
  void step(size_t i, const TextPiece& piece, PieceSink sink) const {
    if (i == steps_.size()) return sink(piece);
    if (i + 1 == steps_.size()) return steps_[i]->split(piece, sink);
    steps_[i]->split(piece, [&](const TextPiece& part) { step(i + 1, part, sink); });
  }

  std::vector<PreTokenizerPtr> steps_;
};

}  // namespace

PreTokenizerPtr byte_level_pre_tokenizer(ByteLevelOptions options) {
  return std::make_unique<ByteLevelPreTokenizer>(options);
}

PreTokenizerPtr split_pre_tokenizer(Matcher wanted, SplitOptions options) {
  return std::make_unique<SplitPreTokenizer>(std::move(wanted), options);
}

PreTokenizerPtr pattern_pre_tokenizer(Pattern pattern, std::string_view what) {
  std::vector<PreTokenizerPtr> steps;
  for (const std::string_view regex : pattern_regexes(pattern)) {
    steps.push_back(split_pre_tokenizer(Matcher::regex(regex, what), {.behavior = SplitBehavior::isolated}));
  }
  return steps.size() == 1 ? std::move(steps[0]) : pre_tokenizer_sequence(std::move(steps));
}

PreTokenizerPtr metaspace_pre_tokenizer(MetaspaceOptions options) {
  return std::make_unique<MetaspacePreTokenizer>(std::move(options));
}

PreTokenizerPtr words_pre_tokenizer() {
  return std::make_unique<WordsPreTokenizer>();
}

PreTokenizerPtr bert_pre_tokenizer() {
  std::vector<PreTokenizerPtr> steps;
  steps.push_back(split_pre_tokenizer(Matcher::characters(is_space), {.behavior = SplitBehavior::removed}));
  steps.push_back(split_pre_tokenizer(Matcher::characters(is_punctuation), {.behavior = SplitBehavior::isolated}));
  return pre_tokenizer_sequence(std::move(steps));
}

PreTokenizerPtr pre_tokenizer_sequence(std::vector<PreTokenizerPtr> steps) {
  check_steps(count_steps(steps), "pre-tokenizer");
  return std::make_unique<SequencePreTokenizer>(std::move(steps));
}

}  // namespace qkv
