// What every model of a tokenizer offers: a piece of text becomes tokens of its vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocab.h"

namespace qkv {

struct PieceTokens {
  std::vector<int32_t> ids;
  std::vector<uint32_t> ends;  // for each the byte of the piece where it ends; tokens that share an end share a start

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

  // Appends. The same piece always gives the same tokens; safe from many threads.
  virtual void encode(std::string_view piece, PieceTokens& out) const = 0;
  virtual const Vocab& vocab() const = 0;

  // The token that shows the text it stands for instead of its own name; -1: none.
  virtual int32_t shows_text() const { return -1; }
};

using TokenModelPtr = std::unique_ptr<const TokenModel>;

}  // namespace qkv
