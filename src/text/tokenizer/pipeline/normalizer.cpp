#include "text/tokenizer/pipeline/normalizer.h"

#include <algorithm>
#include <utility>

#include "text/unicode/characters.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

// Applies an edit to each character.
template <class Step>
void each_char(NormalizedText& text, const char* name, Step step) {
  TextRewriter rewrite(text, name);
  while (!rewrite.done()) step(rewrite, char_at(rewrite.rest()));
  rewrite.commit();
}

template <class Remove>
void remove_chars(NormalizedText& text, const char* name, Remove remove) {
  each_char(text, name,
            [&](TextRewriter& rewrite, Char c) { remove(c) ? rewrite.skip(c.bytes) : rewrite.keep(c.bytes); });
}

void to_lower(NormalizedText& text) {
  each_char(text, "the normalizer Lowercase", [](TextRewriter& rewrite, Char c) {
    if (is_stray_byte(c)) return rewrite.keep(c.bytes);
    const std::string lower = lower_case(c);
    const std::string_view first = first_character(lower);
    rewrite.replace(c.bytes, first);
    rewrite.insert(std::string_view(lower).substr(first.size()));
  });
}

class LowercaseNormalizer final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override { to_lower(text); }
};

class StripAccentsNormalizer final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override { remove_chars(text, "the normalizer StripAccents", is_mark); }
};

class StripNormalizer final : public Normalizer {
 public:
  explicit StripNormalizer(StripOptions options) : options_(options) {}

  void apply(NormalizedText& text) const override {
    const std::string_view all = text.text();
    size_t begin = 0, end = all.size();
    if (options_.left) {
      while (begin < end && is_space(char_at(all, begin))) begin += char_at(all, begin).bytes;
    }
    while (options_.right && end > begin) {
      size_t last = end - 1;
      while (last > begin && is_utf8_continuation(all[last])) --last;
      if (!is_space(char_at(all, last))) break;
      end = last;
    }
    const size_t removed_behind = all.size() - end;
    TextRewriter rewrite(text, "the normalizer Strip");
    rewrite.skip(begin);
    rewrite.keep(end - begin);
    rewrite.skip(removed_behind);
    rewrite.commit();
  }

 private:
  StripOptions options_;
};

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string front) : front_(std::move(front)) {}
  void apply(NormalizedText& text) const override { text.prepend(front_, "the normalizer Prepend"); }

 private:
  std::string front_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(Matcher wanted, std::string replacement)
      : wanted_(std::move(wanted)), replacement_(std::move(replacement)) {}

  void apply(NormalizedText& text) const override {
    TextRewriter rewrite(text, "the normalizer Replace");
    wanted_.scan(text.text(), [&](size_t begin, size_t end, bool is_match) {
      if (!is_match) return rewrite.keep(end - begin);
      rewrite.skip(end - begin);
      rewrite.insert(replacement_);
    });
    rewrite.commit();
  }

 private:
  Matcher wanted_;
  std::string replacement_;
};

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(BertNormalizerOptions options) : options_(options) {}

  void apply(NormalizedText& text) const override {
    if (options_.clean_text) clean(text);
    if (options_.handle_chinese_chars) set_chinese_apart(text);
    if (options_.strip_accents) {
      apply_unicode_form(UnicodeForm::nfd, text);
      remove_chars(text, kBert, is_nonspacing_mark);
    }
    if (options_.lowercase) to_lower(text);
  }

 private:
  static void clean(NormalizedText& text) {
    each_char(text, kBert, [](TextRewriter& rewrite, Char c) {
      const bool blank = c.code == '\t' || c.code == '\n' || c.code == '\r';
      if (c.code == 0 || c.code == 0xFFFD || (!blank && is_control(c))) return rewrite.skip(c.bytes);
      blank || is_space(c) ? rewrite.replace(c.bytes, " ") : rewrite.keep(c.bytes);
    });
  }

  static void set_chinese_apart(NormalizedText& text) {
    each_char(text, kBert, [](TextRewriter& rewrite, Char c) {
      if (!is_chinese(c)) return rewrite.keep(c.bytes);
      const std::string_view character = rewrite.rest().substr(0, c.bytes);
      rewrite.replace(c.bytes, " ");
      rewrite.insert(character);
      rewrite.insert(" ");
    });
  }

  static constexpr const char* kBert = "the normalizer BertNormalizer";
  BertNormalizerOptions options_;
};

class NmtNormalizer final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    each_char(text, "the normalizer Nmt", [](TextRewriter& rewrite, Char c) {
      if (is_removed(c.code)) return rewrite.skip(c.bytes);
      is_blank(c.code) ? rewrite.replace(c.bytes, " ") : rewrite.keep(c.bytes);
    });
  }

 private:
  static bool is_removed(uint32_t code) {
    return (code >= 1 && code <= 8) || code == 0x0B || (code >= 0x0E && code <= 0x1F) || code == 0x7F || code == 0x8F ||
           code == 0x9F;
  }
  static bool is_blank(uint32_t code) {
    return code == 0x09 || code == 0x0A || code == 0x0C || code == 0x0D || code == 0x1680 ||
           (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 || code == 0xFEFF ||
           code == 0xFFFD;
  }
};

class PrecompiledNormalizer final : public Normalizer {
 public:
  explicit PrecompiledNormalizer(Precompiled map) : map_(std::move(map)) {}

  void apply(NormalizedText& text) const override {
    std::vector<uint32_t> sources;
    const std::string out = map_.normalize(text.text(), &sources, text.limit());
    TextRewriter rewrite(text, Precompiled::kStep);
    size_t read = 0;
    for (size_t at = 0; at < out.size();) {
      const size_t source = sources[at];
      size_t end = at + 1;
      while (end < out.size() && sources[end] == source) ++end;
      rewrite.skip(source - read);
      const size_t length = first_character(rewrite.rest()).size();
      rewrite.replace(length, std::string_view(out).substr(at, end - at));
      read = source + length;
      at = end;
    }
    rewrite.skip(rewrite.rest().size());
    rewrite.commit();
  }

 private:
  Precompiled map_;
};

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<NormalizerPtr> steps) : steps_(std::move(steps)) {}

  void apply(NormalizedText& text) const override {
    for (const NormalizerPtr& step : steps_) step->apply(text);
  }
  bool may_change(std::string_view text) const override {
    return std::ranges::any_of(steps_, [&](const NormalizerPtr& step) { return step->may_change(text); });
  }
  size_t steps() const override { return count_steps(steps_); }

 private:
  std::vector<NormalizerPtr> steps_;
};

}  // namespace

NormalizerPtr lowercase_normalizer() {
  return std::make_unique<LowercaseNormalizer>();
}
NormalizerPtr strip_accents_normalizer() {
  return std::make_unique<StripAccentsNormalizer>();
}
NormalizerPtr strip_normalizer(StripOptions options) {
  return std::make_unique<StripNormalizer>(options);
}
NormalizerPtr prepend_normalizer(std::string front) {
  return std::make_unique<PrependNormalizer>(std::move(front));
}
NormalizerPtr replace_normalizer(Matcher wanted, std::string replacement) {
  return std::make_unique<ReplaceNormalizer>(std::move(wanted), std::move(replacement));
}
NormalizerPtr bert_normalizer(BertNormalizerOptions options) {
  return std::make_unique<BertNormalizer>(options);
}
NormalizerPtr nmt_normalizer() {
  return std::make_unique<NmtNormalizer>();
}
NormalizerPtr precompiled_normalizer(Precompiled map) {
  return std::make_unique<PrecompiledNormalizer>(std::move(map));
}
NormalizerPtr normalizer_sequence(std::vector<NormalizerPtr> steps) {
  check_steps(count_steps(steps), "normalizer");
  return std::make_unique<SequenceNormalizer>(std::move(steps));
}

}  // namespace qkv
