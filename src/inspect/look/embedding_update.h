// What one step of training on a text would do to the embedding of one of its tokens: the gradient of the text's mean
// loss by that row, from one backward pass.
#pragma once

#include <vector>

#include "core/engine.h"
#include "data/token_text.h"
#include "model/model.h"

namespace qkv {

struct EmbeddingUpdate {
  int32_t id = 0;
  int64_t uses = 0;                  // of the token in the text: all of them add to its row
  bool tied = false;                 // the row is read again as the token's output vector, which counts too
  double loss = 0;                   // mean -ln p of the next tokens
  std::vector<float> row, gradient;  // [C]
};

// Of a decoder. The model's weights are as before when it returns. An Error if there is no such token or nothing to
// predict, or if the weights are quantized.
EmbeddingUpdate embedding_update(Model& model, const Engine& engine, const TokenText& text, int64_t token,
                                 Precision precision);

}  // namespace qkv
