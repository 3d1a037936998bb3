#include "text/tokenizer/sentencepiece/sentencepiece_normalizer.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "text/tokenizer/pipeline/replace_all.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

struct SentencePieceRules {
  std::optional<Precompiled> charsmap;
  ByteTrie user_defined;
  bool prefix = true, suffix = false;  // a space added at the front or at the end
  bool removes_spaces = true;
  std::string_view space = kSpaceSymbol;
  std::array<bool, 256> plain{};  // ASCII other than space that starts no rule: copied as it is
};

class SentencePieceRewrite {
 public:
  SentencePieceRewrite(const SentencePieceRules& rules, NormalizedText& text)
      : rules_(rules), rewrite_(text, "SentencePiece's normalizer") {}

  void run() {
    if (rules_.removes_spaces) skip_leading_spaces();
    const bool empty = rewrite_.done();
    if (rules_.prefix && !empty) waiting_ = 1;
    after_space_ = rules_.removes_spaces;
    while (!rewrite_.done()) {
      if (const size_t plain = plain_bytes(); plain > 0) {
        write_waiting();
        rewrite_.keep(plain);
        after_space_ = false;
      } else {
        take(first_step());
      }
    }
    if (!rules_.removes_spaces) write_waiting();
    if (rules_.suffix && !empty) rewrite_.insert(rules_.space);
    rewrite_.commit();
  }

 private:
  struct Step {
    size_t length;  // bytes of the input
    std::string_view text;
  };

  Step first_step() const {
    const std::string_view rest = rewrite_.rest();
    if (const auto own = rules_.user_defined.longest(rest); own.length > 0)
      return {own.length, rest.substr(0, own.length)};
    if (rules_.charsmap) {
      if (const auto rule = rules_.charsmap->longest(rest); rule.length > 0) return {rule.length, rule.replacement};
    }
    const size_t length = utf8_length(rest);
    if (length == 0) return {1, kReplacementCharacter};
    return {length, rest.substr(0, length)};
  }

  size_t plain_bytes() const {
    const std::string_view rest = rewrite_.rest();
    size_t count = 0;
    while (count < rest.size() && rules_.plain[static_cast<unsigned char>(rest[count])]) ++count;
    return count;
  }

  void skip_leading_spaces() {
    while (!rewrite_.done()) {
      const Step step = first_step();
      if (step.text != " ") break;
      rewrite_.skip(step.length);
    }
  }

  // Spaces are written only before the next character, so that trailing ones are dropped.
  void take(Step step) {
    while (after_space_ && step.text.starts_with(' ')) step.text.remove_prefix(1);
    if (step.text.empty()) return rewrite_.skip(step.length);
    after_space_ = rules_.removes_spaces && step.text.ends_with(' ');
    std::string out(step.text);
    replace_all(out, " ", rules_.space);
    size_t spaces = 0;
    while (std::string_view(out).ends_with(rules_.space)) {
      out.resize(out.size() - rules_.space.size());
      ++spaces;
    }
    if (out.empty()) {
      rewrite_.skip(step.length);
    } else {
      write_waiting();
      rewrite_.replace(step.length, out);
    }
    waiting_ += spaces;
  }

  void write_waiting() {
    for (; waiting_ > 0; --waiting_) rewrite_.insert(rules_.space);
  }

  const SentencePieceRules& rules_;
  TextRewriter rewrite_;
  size_t waiting_ = 0;  // spaces not written yet
  bool after_space_ = false;
};

class SentencePieceNormalizer final : public Normalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceRules rules) : rules_(std::move(rules)) {}
  void apply(NormalizedText& text) const override { SentencePieceRewrite(rules_, text).run(); }

 private:
  SentencePieceRules rules_;
};

}  // namespace

NormalizerPtr sentencepiece_normalizer(SentencePieceModel& model, ByteTrie user_defined) {
  SentencePieceRules rules{.charsmap = std::exchange(model.charsmap, std::nullopt),
                           .user_defined = std::move(user_defined),
                           .prefix = model.add_dummy_prefix && !model.whitespace_as_suffix,
                           .suffix = model.add_dummy_prefix && model.whitespace_as_suffix,
                           .removes_spaces = model.remove_extra_whitespaces,
                           .space = model.escape_whitespaces ? kSpaceSymbol : " "};
  for (size_t byte = 0; byte < 128; ++byte) {
    const char c = static_cast<char>(byte);
    ByteTrie::Place root;
    const bool own = rules.user_defined.step(root, static_cast<unsigned char>(c));
    rules.plain[byte] = c != ' ' && !own && !(rules.charsmap && rules.charsmap->has_rules_from(c));
  }
  return std::make_unique<SentencePieceNormalizer>(std::move(rules));
}

}  // namespace qkv
