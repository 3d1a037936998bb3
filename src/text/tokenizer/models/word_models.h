// WordPiece (greedy longest prefix), WordLevel (whole words), and Unigram behind the TokenModel interface.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer/models/token_model.h"
#include "text/tokenizer/models/unigram.h"

namespace qkv {

struct WordPieceOptions {
  std::string what;  // the file, for error messages
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;
};

class WordPiece final : public TokenModel {
 public:
  WordPiece(Vocab vocab, WordPieceOptions options);
  void encode(std::string_view piece, PieceTokens& out) const override;
  const Vocab& vocab() const override { return vocab_; }

 private:
  bool cut(std::string_view piece, PieceTokens& out) const;

  Vocab vocab_;
  WordPieceOptions options_;
  int32_t unk_id_;
  size_t longest_ = 0;  // bytes of the longest token: longer prefixes cannot match
};

struct WordLevelOptions {
  std::string what;
  std::string unk_token = "<unk>";
};

class WordLevel final : public TokenModel {
 public:
  WordLevel(Vocab vocab, WordLevelOptions options);
  void encode(std::string_view piece, PieceTokens& out) const override;
  const Vocab& vocab() const override { return vocab_; }

 private:
  Vocab vocab_;
  WordLevelOptions options_;
  int32_t unk_id_;
};

class UnigramModel final : public TokenModel {
 public:
  explicit UnigramModel(Unigram unigram) : unigram_(std::move(unigram)) {}
  void encode(std::string_view piece, PieceTokens& out) const override { unigram_.encode(piece, out.ids, out.ends); }
  const Vocab& vocab() const override { return unigram_.vocab(); }
  int32_t id_shown_as_text() const override { return unigram_.unk_id(); }
  const Unigram& unigram() const { return unigram_; }

 private:
  Unigram unigram_;
};

}  // namespace qkv
