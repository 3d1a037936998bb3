#include "labs/repeated_tokens.h"

#include <numeric>

#include "labs/small_model.h"
#include "world/draw.h"

namespace qkv {

TrainBatch RepeatedTokens::texts(uint64_t seed, int64_t step, int64_t count) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 2);
  TrainBatch batch;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t block = draw.between(shortest, longest);
    std::vector<int32_t> tokens(static_cast<size_t>(vocabulary)), ids;
    std::iota(tokens.begin(), tokens.end(), 0);
    for (int32_t at = 0; at <= length; ++at) {
      if (at < block) {
        const auto first = static_cast<size_t>(at);
        std::swap(tokens[first], tokens[first + draw.below(static_cast<uint32_t>(vocabulary - at))]);
        ids.push_back(tokens[first]);
      } else {
        ids.push_back(ids[static_cast<size_t>(at - block)]);
      }
    }
    // The first token of the first repeat is not a target: nothing before it tells that the block has ended.
    add_text(batch, ids, static_cast<size_t>(block));
  }
  return batch;
}

}  // namespace qkv
