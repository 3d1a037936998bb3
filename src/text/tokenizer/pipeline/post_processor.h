// What happens to the tokens of one or two texts at the end: cut to length, special tokens around them, offsets without
// the spaces, padding. Plain data, filled from any of Hugging Face's post-processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace qkv {

struct Offset {
  size_t begin = 0, end = 0;
  bool operator==(const Offset&) const = default;
};

// Everything known about the tokens of a text. All vectors but `ids` stay empty unless offsets are recorded.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // 0: first text, 1: second text, or what the template says
  std::vector<std::string> tokens;
  std::vector<Offset> offsets;     // in the text the token comes from; {0, 0} for added tokens
  std::vector<uint8_t> attention;  // 0 for padding
  size_t replaced_bytes = 0;       // bytes that were not UTF-8 and are read as U+FFFD
};

struct TemplatePiece {
  enum class Kind { first_text, second_text, special } kind = Kind::special;
  int32_t type_id = 0;
  std::vector<int32_t> ids = {};  // of special tokens
  std::vector<std::string> tokens = {};
};

struct TrimOffsets {
  bool add_prefix_space = true;  // the space at the very start was added, so it has no place to leave out
};

enum class Side { left, right };

struct Truncation {
  enum class Strategy { longest_first, only_first, only_second } strategy = Strategy::longest_first;
  size_t max_length = 512;
  Side direction = Side::right;  // where tokens are cut off
};

struct Padding {
  std::optional<size_t> fixed = {};  // nothing: to the text's own length
  size_t multiple_of = 1;
  Side direction = Side::right;
  int32_t id = 0;
  int32_t type_id = 0;
  std::string token = "[PAD]";
};

struct PostProcessor {
  std::vector<TrimOffsets> trims = {};
  std::vector<TemplatePiece> single = {}, pair = {};  // empty: the texts one after the other
  std::optional<Truncation> truncation = {};
  std::optional<Padding> padding = {};

  // `second` may be null. With recorded encodings all of their vectors are made, otherwise ids alone.
  struct Input {
    Encoding* first;
    Encoding* second;
    bool specials;
    bool recorded;
    bool whole;  // neither cut nor padded
  };
  Encoding apply(Input input) const;
};

}  // namespace qkv
