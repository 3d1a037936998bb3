// Normalizers: text in, text out, before anything is split. Built once from a file, then only read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pipeline/aligned_text.h"
#include "text/tokenizer/pipeline/matcher.h"
#include "text/tokenizer/pipeline/precompiled.h"

namespace qkv {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(AlignedText& text) const = 0;

  // False where the text is certainly left as it is: then nobody copies it.
  virtual bool may_change(std::string_view) const { return true; }
};

using NormalizerPtr = std::unique_ptr<const Normalizer>;

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

struct BertNormalizerOptions {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};

struct StripOptions {
  bool left = true, right = true;
};

NormalizerPtr unicode_normalizer(UnicodeForm form);
NormalizerPtr lowercase_normalizer();
NormalizerPtr strip_accents_normalizer();
NormalizerPtr strip_normalizer(StripOptions options);
NormalizerPtr prepend_normalizer(std::string front);
NormalizerPtr replace_normalizer(Matcher wanted, std::string replacement);
NormalizerPtr bert_normalizer(BertNormalizerOptions options);
NormalizerPtr nmt_normalizer();
NormalizerPtr precompiled_normalizer(Precompiled map);
NormalizerPtr normalizer_sequence(std::vector<NormalizerPtr> steps);

// The steps of the normalizers that have a form of Unicode among theirs.
void apply_unicode_form(UnicodeForm form, AlignedText& text);
bool may_change_form(UnicodeForm form, std::string_view text);

}  // namespace qkv
