// The contents of a SentencePiece .model file, parsed from its protocol buffer and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pipeline/precompiled.h"

namespace qkv {

struct SentencePieceModel {
  enum class Kind { unigram = 1, bpe = 2, word = 3, character = 4 };
  enum class Type : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };
  struct Sample {
    std::string input, expected;  // pieces joined by spaces
  };

  std::string name;  // of the file, for error messages
  std::vector<Piece> pieces;
  Kind kind = Kind::unigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::string unk_surface = " \xe2\x81\x87 ";
  std::string bos_piece = "<s>", eos_piece = "</s>", pad_piece = "<pad>";
  int32_t unk_id = -1;                            // the piece of type unknown
  int32_t bos_id = -1, eos_id = -1, pad_id = -1;  // control pieces of those names; -1: none
  std::optional<Precompiled> charsmap;
  std::string charsmap_bytes;  // as in the file
  std::vector<Sample> self_test;

  static SentencePieceModel parse(std::string_view bytes, std::string_view name);

  // Checks pieces from any source: exactly one unknown piece, non-empty distinct texts, finite scores, and with byte
  // fallback a piece for each byte. Sets unk_id, bos_id, eos_id and pad_id.
  void check_pieces();
};

}  // namespace qkv
