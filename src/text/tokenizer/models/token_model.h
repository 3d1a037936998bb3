// Interface of tokenizer models: encode a piece of text as tokens of the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocab.h"

namespace qkv {

struct PieceTokens {
  std::vector<int32_t> ids;
  std::vector<uint32_t> ends;  // end offset of each token in the piece, in bytes; tokens with equal ends share a start

  void put(int32_t id, size_t end) {
    ids.push_back(id);
    ends.push_back(static_cast<uint32_t>(end));
  }
  void clear() {
    ids.clear();
    ends.clear();
  }
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Appends the tokens of the piece. Deterministic and thread-safe.
  virtual void encode(std::string_view piece, PieceTokens& out) const = 0;
  virtual const Vocab& vocab() const = 0;

  // The token that Encoding::tokens shows as the covered text, not as its vocabulary entry; -1: none.
  virtual int32_t id_shown_as_text() const { return -1; }
};

using TokenModelPtr = std::unique_ptr<const TokenModel>;

}  // namespace qkv
