// Streaming decoder. Every returned part is valid UTF-8 and final. All parts together equal the decoded text of the
// whole list, with one U+FFFD for each invalid byte sequence.
//
// Held back are only incomplete characters and tokens that a later one can change (a run of byte tokens, which Hugging
// Face's ByteFallback decodes as a whole). Graphemes are not kept together: whether a combining mark or an emoji joiner
// follows is unknown, and waiting for it would delay the text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, DecodeOptions options = {});

  // Returns the text that is final now, often empty. An unknown id is an Error and changes nothing.
  std::string add(int32_t id);

  // Returns the rest. Do not call add() after it.
  std::string flush();

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::unique_ptr<Decoder::Run> run_;
  std::string bytes_;  // of an incomplete character
};

}  // namespace qkv
