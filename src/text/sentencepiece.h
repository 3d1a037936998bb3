// SentencePiece: text to pieces and back, as the library of that name does it for each of its four kinds of model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/sentencepiece_bpe.h"
#include "text/sentencepiece_model.h"
#include "text/sentencepiece_normalizer.h"
#include "text/unigram.h"
#include "text/unknown_runs.h"

namespace qkv {

class SentencePiece {
 public:
  // Runs the model's own self-test.
  explicit SentencePiece(SentencePieceModel model);
  static SentencePiece open(const std::filesystem::path& path);

  struct Encoded {
    NormalizedText normalized;
    std::vector<int32_t> ids;
    std::vector<uint32_t> ends;  // in the normalized text; tokens of one run of bytes end together
  };
  Encoded encode(std::string_view text) const;
  // The pieces as SentencePiece shows them: an unknown one is its own text.
  std::vector<std::string> pieces(const Encoded& encoded) const;

  // An id out of range is an Error.
  std::string decode(std::span<const int32_t> ids) const;

  const SentencePieceModel& model() const { return model_; }
  int32_t size() const { return static_cast<int32_t>(model_.pieces.size()); }
  const std::string& piece(int32_t id) const { return model_.pieces[static_cast<size_t>(id)].text; }
  SentencePieceModel::Type type(int32_t id) const { return model_.pieces[static_cast<size_t>(id)].type; }

 private:
  void encode_normalized(std::string_view text, std::vector<int32_t>& ids, std::vector<uint32_t>& ends) const;
  void check_self_test() const;

  SentencePieceModel model_;
  ByteTrie user_defined_;
  ByteTrie texts_;  // of word and character models
  ByteTokens bytes_;
  std::optional<Unigram> unigram_;
  std::optional<SentencePieceBpe> bpe_;
};

// Decoding id by id. What is handed out is whole UTF-8; all parts together are what decode() gives.
class SentencePieceDecoder {
 public:
  // The model must outlive the decoder.
  explicit SentencePieceDecoder(const SentencePieceModel& model) : model_(model) {}

  std::string add(int32_t id);
  // The rest: bytes that never became a character are U+FFFD each.
  std::string finish();

 private:
  std::string take_bytes(bool more_may_follow);
  std::string text_of(const SentencePieceModel::Piece& piece);

  const SentencePieceModel& model_;
  std::string bytes_;      // of byte pieces, not yet a character
  bool has_text_ = false;  // something was handed out
  bool expects_space_ = true;
  bool took_space_ = false;  // the piece before was a space that was dropped
};

}  // namespace qkv
