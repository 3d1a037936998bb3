// A tokenizer: text to ids and back, exactly as Hugging Face's library does it.
//
//   added tokens -> normalizer -> pre-tokenizer -> model -> post-processor        ids -> decoder
//
// Reading files fills TokenizerParts; what a part does is known nowhere else. Copies share everything; const calls are
// safe from many threads.
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

// The tokens with a role, where the files name them.
struct NamedTokens {
  std::optional<int32_t> bos = {}, eos = {}, pad = {}, unk = {}, sep = {}, cls = {}, mask = {};
};

struct TokenizerParts {
  std::string what;  // the file, for error texts
  std::vector<AddedToken> added = {};
  NormalizerPtr normalizer = {};       // null: none
  PreTokenizerPtr pre_tokenizer = {};  // null: the whole text is one piece
  TokenModelPtr model = {};
  PostProcessor post = {};
  DecoderPtr decoder = {};  // null: tokens with spaces between
  NamedTokens named = {};
  bool keeps_bytes = false;    // text that is not UTF-8 reaches the model byte for byte
  bool repairs_bytes = false;  // the normalizer reads what is not UTF-8 as U+FFFD in its own way
  bool byte_tokens = false;    // <0x00> to <0xFF> stand for bytes
};

enum class OffsetUnit { characters, bytes };

struct EncodeOptions {
  bool add_specials = true;                     // around the text, as the post-processor says
  bool read_specials = true;                    // special tokens written in the text are those tokens, not text
  std::optional<std::string_view> second = {};  // the second text of a pair
  OffsetUnit unit = OffsetUnit::characters;     // of encode_full's offsets
};

struct DecodeOptions {
  bool skip_specials = false;
};

class Tokenizer {
 public:
  // A folder, tokenizer.json, or one of the older files; see docs/tokenizers.md.
  static Tokenizer load(const std::filesystem::path& file_or_folder);
  static Tokenizer from_json(std::string_view json, std::string_view what);
  explicit Tokenizer(TokenizerParts parts);
  // The same, but texts are neither cut nor padded where the file says so: what a model is to read or learn is read
  // whole.
  Tokenizer whole_texts() const;

  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  Encoding encode_full(std::string_view text, EncodeOptions options = {}) const;

  // For byte-level models the very bytes, even if they are not UTF-8. An id that does not exist is an Error.
  std::string decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;

  // The same token by token; see stream_decoder.h. Valid as long as a copy of this tokenizer is.
  std::unique_ptr<Decoder::Run> start_decoding() const;

  std::string_view token(int32_t id) const;  // as the vocabulary writes it; an Error if there is none
  std::optional<int32_t> id_of(std::string_view token) const;
  std::string bytes_of(int32_t id) const;  // what it adds to a text, which can be a part of a character
  bool has(int32_t id) const;
  bool is_special(int32_t id) const;
  int32_t vocab_size() const;  // one more than the greatest id
  const NamedTokens& named() const;
  const std::string& what() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
  bool whole_ = false;
};

}  // namespace qkv
