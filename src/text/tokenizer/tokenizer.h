// A tokenizer: text to ids and back, exactly as Hugging Face's library does it.
//
//   added tokens -> normalizer -> pre-tokenizer -> model -> post-processor        ids -> decoder
//
// File readers fill TokenizerParts; the behaviour is in the parts. Copies share all data; const calls are thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/models/token_model.h"
#include "text/tokenizer/pipeline/added_tokens.h"
#include "text/tokenizer/pipeline/decoder.h"
#include "text/tokenizer/pipeline/normalizer.h"
#include "text/tokenizer/pipeline/post_processor.h"
#include "text/tokenizer/pipeline/pre_tokenizer.h"

namespace qkv {

// Ids of the tokens with a role, if the files name them.
struct NamedTokens {
  std::optional<int32_t> bos = {}, eos = {}, pad = {}, unk = {}, sep = {}, cls = {}, mask = {};
};

struct TokenizerParts {
  std::string what;  // the file, for error messages
  std::vector<AddedToken> added = {};
  NormalizerPtr normalizer = {};       // null: none
  PreTokenizerPtr pre_tokenizer = {};  // null: the whole text is one piece
  TokenModelPtr model = {};
  PostProcessor post = {};
  DecoderPtr decoder = {};  // null: tokens joined by spaces
  NamedTokens named = {};
  bool accepts_raw_bytes = false;      // invalid UTF-8 is passed to the model unchanged
  bool normalizer_fixes_utf8 = false;  // the normalizer itself replaces invalid UTF-8 by U+FFFD
  bool byte_tokens = false;            // <0x00> to <0xFF> stand for bytes
};

enum class OffsetUnit { characters, bytes };

struct EncodeOptions {
  bool add_specials = true;   // added by the post-processor
  bool read_specials = true;  // parse special tokens in the text; false: they are plain text
  // Whether an added token is read at these bytes of the text; otherwise they are plain text. None: always.
  std::optional<FunctionRef<bool(int32_t id, size_t begin, size_t end)>> may_read = {};
  std::optional<std::string_view> second = {};  // the second text of a pair
  OffsetUnit unit = OffsetUnit::characters;     // of encode_full's offsets
};

struct DecodeOptions {
  bool skip_specials = false;
};

inline constexpr size_t kLargestTokenizerFile = size_t{256} << 20;  // bytes; a larger file is an Error

class Tokenizer {
 public:
  // A folder, tokenizer.json, or one of the older formats; see docs/tokenizers.md.
  static Tokenizer load(const std::filesystem::path& file_or_folder);
  static Tokenizer from_json(std::string_view json, std::string_view what);
  explicit Tokenizer(TokenizerParts parts);
  // The same tokenizer without the truncation and padding of its file: for input of a model, never silently cut.
  Tokenizer without_truncation() const;

  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  Encoding encode_full(std::string_view text, EncodeOptions options = {}) const;

  // For byte-level models the exact bytes, even if they are not UTF-8. An unknown id is an Error.
  std::string decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;

  // Token by token; see stream_decoder.h. Valid while a copy of this tokenizer exists.
  std::unique_ptr<Decoder::Run> start_decoding() const;

  std::string_view token(int32_t id) const;  // as written in the vocabulary; an unknown id is an Error
  std::optional<int32_t> id_of(std::string_view token) const;
  std::string bytes_of(int32_t id) const;  // the bytes it decodes to, possibly part of a character
  bool has(int32_t id) const;
  bool is_special(int32_t id) const;
  int32_t vocab_size() const;  // greatest id + 1
  const NamedTokens& named() const;
  const std::string& what() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
  bool keep_length_ = false;  // neither truncate nor pad
};

}  // namespace qkv
