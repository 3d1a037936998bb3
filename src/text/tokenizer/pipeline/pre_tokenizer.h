// Pre-tokenizers: split a text into the pieces that the model encodes. Pieces are views unless the text is modified, so
// a chain of splits copies nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer/pipeline/matcher.h"
#include "text/tokenizer/pipeline/normalized_text.h"

namespace qkv {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Pieces are valid until the sink returns.
  virtual void split(const TextPiece& piece, PieceSink sink) const = 0;
  virtual size_t steps() const { return 1; }
};

using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;

enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct SplitOptions {
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // swap matches and gaps
};

struct ByteLevelOptions {
  bool add_prefix_space = true;
  bool use_regex = true;
  bool to_letters = true;  // pieces in GPT-2's byte alphabet; false for a model that reads raw bytes
};

enum class PrependScheme { always, first, never };

struct MetaspaceOptions {
  std::string replacement = "\xe2\x96\x81";  // ▁
  PrependScheme prepend = PrependScheme::always;
  bool split = true;
};

PreTokenizerPtr byte_level_pre_tokenizer(ByteLevelOptions options);
PreTokenizerPtr split_pre_tokenizer(Matcher wanted, SplitOptions options);
PreTokenizerPtr metaspace_pre_tokenizer(MetaspaceOptions options);
PreTokenizerPtr pattern_pre_tokenizer(Pattern pattern, std::string_view what);
PreTokenizerPtr words_pre_tokenizer();  // "Whitespace": runs of word characters and runs of other visible ones
PreTokenizerPtr bert_pre_tokenizer();
PreTokenizerPtr pre_tokenizer_sequence(std::vector<PreTokenizerPtr> steps);

}  // namespace qkv
