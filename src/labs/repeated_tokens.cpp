#include "labs/repeated_tokens.h"

#include "labs/small_model.h"
#include "text/world/draw.h"

namespace qkv {

RepeatedTokens::Texts RepeatedTokens::texts(uint64_t seed, int64_t step, int64_t count) const {
  world::Draw draw(seed, static_cast<uint64_t>(step), 2);
  Texts all;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t block = draw.between(shortest, longest);
    std::vector<int32_t> ids;
    for (int32_t at = 0; at <= length; ++at) {
      ids.push_back(at < block ? static_cast<int32_t>(draw.below(static_cast<uint32_t>(vocabulary)))
                               : ids[static_cast<size_t>(at - block)]);
    }
    add_text(all.batch, ids);
    // The first token of a repeat cannot be known: the block ends where it ends.
    for (int32_t row = 0; row < length; ++row) {
      all.first_time.push_back(row + 1 < block);
      all.said_before.push_back(row >= block);
    }
  }
  return all;
}

RepeatedLosses losses_of(const RepeatedTokens::Texts& texts, std::span<const float> losses) {
  double first = 0, again = 0, firsts = 0, agains = 0;
  for (size_t row = 0; row < losses.size(); ++row) {
    if (texts.first_time[row]) {
      first += static_cast<double>(losses[row]);
      ++firsts;
    } else if (texts.said_before[row]) {
      again += static_cast<double>(losses[row]);
      ++agains;
    }
  }
  return {first / firsts, again / agains};
}

}  // namespace qkv
