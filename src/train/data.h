// The batches of a run. Micro-batch m of step s is a function of (data, seed, s, m) alone, so nothing has to be
// remembered to go on, and ranks may divide the micro-batches as they like.
#pragma once

#include <memory>

#include "data/dataset_order.h"
#include "text/tokenizer/tokenizer.h"
#include "train/recipe.h"

namespace qkv {

// Which tokens have a role, as the model's config says.
struct TokenRoles {
  int32_t start = 0;  // what a decoder's target begins with
  int32_t mask = -1;  // stands for what is hidden
  int64_t vocabulary = 0;
};

class TrainData {
 public:
  virtual ~TrainData() = default;

  virtual TrainBatch micro_batch(int64_t step, int64_t micro) const = 0;
  virtual int64_t validation_batches() const = 0;
  virtual TrainBatch validation_batch(int64_t i) const = 0;

  uint64_t train_tokens = 0, validation_tokens = 0;
  double bytes_per_token = 0;  // of the validation text: nats a token become bits a byte

  // What prepare_run() left in `prepared`. An Error if a text is longer than `context`.
  static std::unique_ptr<TrainData> open(const Recipe& recipe, const std::filesystem::path& prepared,
                                         const TokenRoles& roles, int64_t context);
};

}  // namespace qkv
