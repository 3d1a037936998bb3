// The batches of a run. Micro-batch m of step s is a function of (data, seed, s, m) alone: resuming needs no reader
// state, and ranks may divide the micro-batches in any way.
#pragma once

#include <memory>

#include "data/dataset_order.h"
#include "text/tokenizer/tokenizer.h"
#include "train/recipe.h"

namespace qkv {

// Special tokens the training needs, from the model's config.
struct TokenRoles {
  int32_t start = 0;  // first token of the decoder's input
  int32_t mask = -1;  // replaces a hidden token
  int64_t vocabulary = 0;
};

class TrainData {
 public:
  virtual ~TrainData() = default;

  virtual TrainBatch micro_batch(int64_t step, int64_t micro) const = 0;
  virtual int64_t validation_batches() const = 0;
  virtual TrainBatch validation_batch(int64_t i) const = 0;

  uint64_t train_tokens = 0, validation_tokens = 0;
  double bytes_per_token =
      0;  // of the validation text (chats: of its answers); converts nats per token to bits per byte

  // Opens what prepare_run() wrote to `prepared`. An Error if a text is longer than `context`.
  static std::unique_ptr<TrainData> open(const Recipe& recipe, const std::filesystem::path& prepared,
                                         const TokenRoles& roles, int64_t context);
};

}  // namespace qkv
