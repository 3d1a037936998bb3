// Holds one generated text to a grammar: says which tokens may come next and follows those that were chosen.
//
// Copies are independent texts that share what is computed for the grammar and the vocabulary.
#pragma once

#include <span>
#include <vector>

#include "infer/grammar/token_mask.h"

namespace qkv {

class Constraint {
 public:
  // One text of the grammar, from its beginning. `ends` are the tokens that end a text.
  Constraint(std::shared_ptr<const grammar::TokenMasks> masks, std::vector<int32_t> ends);

  // The tokens after which the text can still be completed, and the end tokens where it is complete. Empty only once the
  // text is finished; if the vocabulary cannot go on before that, an Error.
  const grammar::TokenSet& allowed();
  // The same as -infinity for all others.
  void mask(std::span<float> logits);

  // The chosen token. One that is not allowed is an Error.
  void accept(int32_t token);

  bool complete() const { return ways_.complete; }                                      // the text is a whole value
  bool finished() const { return ended_ || (ways_.complete && ways_.frames.empty()); }  // and nothing can follow

 private:
  bool ends_with(int32_t token) const;

  std::shared_ptr<const grammar::TokenMasks> masks_;
  std::vector<int32_t> ends_;
  grammar::ParseStore store_;
  grammar::Ways ways_;
  grammar::TokenSet allowed_;
  bool known_ = false;  // allowed_ is that of ways_
  bool ended_ = false;
  size_t bytes_ = 0;  // of the text so far
  size_t shrink_at_ = 4096;
};

}  // namespace qkv
