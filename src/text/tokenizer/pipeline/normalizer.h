// Normalizers: text transformations that run before splitting. Immutable after construction.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pipeline/matcher.h"
#include "text/tokenizer/pipeline/normalized_text.h"
#include "text/tokenizer/pipeline/precompiled.h"

namespace qkv {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;

  // False if apply() would certainly not change the text; the caller then skips the copy.
  virtual bool may_change(std::string_view) const { return true; }

  virtual size_t steps() const { return 1; }
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

// Shared by the normalizers that include a Unicode normalization form.
void apply_unicode_form(UnicodeForm form, NormalizedText& text);
bool may_change_form(UnicodeForm form, std::string_view text);

}  // namespace qkv
