// Text to ids and back, exactly as Hugging Face's library does it.
#pragma once

#include <qkv/error.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::QKV_INLINE v1 {

// One or more tokens that show whole characters together.
struct TokenSpan {
  std::string text;
  size_t begin = 0, end = 0;           // bytes of the decoded text
  size_t first_token = 0, tokens = 0;  // of the ids
};

// Copies share all data; every call may be made from any thread.
class QKV_API Tokenizer {
 public:
  // A model folder or the name of a built-in model, tokenizer.json, or one of the older formats.
  explicit Tokenizer(const std::string& path_or_name);

  // With the special tokens a model expects around a text, unless `plain`.
  std::vector<int32_t> encode(std::string_view text, bool plain = false) const;
  std::string decode(std::span<const int32_t> ids, bool skip_specials = false) const;

  std::string token(int32_t id) const;  // as its vocabulary writes it
  std::string bytes(int32_t id) const;  // what it decodes to; possibly a part of a character
  std::optional<int32_t> id(std::string_view token) const;
  bool has(int32_t id) const;
  bool is_special(int32_t id) const;
  int32_t size() const;  // greatest id + 1
  // The ids as readable pieces, none of which ends within a character.
  std::vector<TokenSpan> spans(std::span<const int32_t> ids) const;

  struct QKV_HIDDEN Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const;  // ClosedError if it was moved from

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace qkv::QKV_INLINEv1
