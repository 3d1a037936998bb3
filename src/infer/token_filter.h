// What tokens a text may go on with: a grammar, for example. One object belongs to one session and follows its tokens.
#pragma once

#include <cstdint>
#include <span>

namespace qkv {

class TokenFilter {
 public:
  virtual ~TokenFilter() = default;
  // Sets the logits [V] of tokens that may not come next to -infinity; it changes no other. End tokens are not its
  // concern: may_end() decides on them.
  virtual void mask(std::span<float> logits) = 0;
  virtual bool may_end() = 0;
  // The next token of the text, never an end token. False: it fits nowhere.
  virtual bool accept(int32_t token) = 0;
};

}  // namespace qkv
