// Post-processing of the tokens of one or two texts: truncation, special tokens, trimmed offsets, padding. Plain data,
// filled from any of Hugging Face's post-processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct Offset {
  size_t begin = 0, end = 0;
  bool operator==(const Offset&) const = default;
};

// The tokens of a text. Only `ids` is filled unless offsets are requested.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // 0: first text, 1: second text, or set by the template
  std::vector<std::string> tokens;
  std::vector<Offset> offsets;     // in the token's own text; {0, 0} for special tokens and padding
  std::vector<uint8_t> attention;  // 0 for padding
  size_t replaced_bytes = 0;       // invalid UTF-8 bytes read as U+FFFD
};

struct TemplatePiece {
  enum class Kind { first_text, second_text, special } kind = Kind::special;
  int32_t type_id = 0;
  std::vector<int32_t> ids = {};  // of special tokens
  std::vector<std::string> tokens = {};
};

struct TrimOffsets {
  bool add_prefix_space = true;  // a space at the start of the text was added: it has no offset to trim
};

enum class Side { left, right };

struct Truncation {
  enum class Strategy { longest_first, only_first, only_second } strategy = Strategy::longest_first;
  size_t max_length = 512;
  Side direction = Side::right;  // the side that loses tokens
};

struct Padding {
  std::optional<size_t> fixed = {};  // none: no fixed length
  size_t multiple_of = 1;
  Side direction = Side::right;
  int32_t id = 0;
  int32_t type_id = 0;
  std::string token = "[PAD]";
};

struct PostProcessor {
  std::vector<TrimOffsets> trims = {};
  std::vector<TemplatePiece> single = {}, pair = {};  // empty: concatenate the texts
  std::optional<Truncation> truncation = {};
  std::optional<Padding> padding = {};

  // `second` may be null. Without with_offsets only ids are filled.
  struct Input {
    Encoding* first;
    Encoding* second;
    bool specials;
    bool with_offsets;
    bool keep_length;       // neither truncate nor pad
    std::string_view what;  // the tokenizer, for errors
  };
  Encoding apply(Input input) const;
};

}  // namespace qkv
