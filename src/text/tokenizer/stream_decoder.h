// Decoding while ids are still coming. What is handed out is always whole UTF-8 and never taken back; all parts
// together are what decoding the whole list gives, with one U+FFFD for each broken sequence of bytes.
//
// Only bytes that may still become a character are held back, and tokens that a later one can change (a run of byte
// tokens that Hugging Face's ByteFallback judges as a whole). Combining marks and joined emoji are not: nobody can tell
// whether one will follow, and a text must not lag behind for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace qkv {

class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, DecodeOptions options = {});

  // The text that is certain now; often empty. An id that does not exist is an Error and changes nothing.
  std::string add(int32_t id);

  // The rest. Nothing may be added after it.
  std::string flush();

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::unique_ptr<Decoder::Run> run_;
  std::string bytes_;  // decoded, not yet a character
};

}  // namespace qkv
