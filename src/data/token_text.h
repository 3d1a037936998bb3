// Tokens that a model is to read, and which of them it is asked to predict.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace qkv {

struct TokenText {
  static constexpr int32_t kIgnored = -100;

  std::vector<int32_t> ids;
  std::vector<int32_t> source = {};   // what the encoder of an encoder-decoder reads
  std::vector<int32_t> targets = {};  // the token each row should predict, or kIgnored; empty: the token after it
  int64_t first = 1;                  // without targets: ids[first], ids[first + 1], ... are predicted; 1 or more
  std::string text = {};              // what ids were made from (source, if there is one), where it is known
  std::string target_text = {};       // of a pair: what ids were made from

  int32_t target(size_t row) const {
    if (!targets.empty()) return targets[row];
    const size_t next = row + 1;
    return next < ids.size() && next >= static_cast<size_t>(first) ? ids[next] : kIgnored;
  }
};

// Where the first id stands that is not in [0, limit), nor the one that is allowed beside them.
inline std::optional<size_t> first_outside(std::span<const int32_t> ids, int64_t limit, int32_t allowed = 0) {
  const auto outside = [&](int32_t id) {
    return static_cast<uint32_t>(id) >= static_cast<uint32_t>(limit) && id != allowed;
  };
  uint32_t any = 0;  // a plain loop that the compiler makes wide
  for (const int32_t id : ids) any |= static_cast<uint32_t>(outside(id));
  if (any == 0) return std::nullopt;
  return static_cast<size_t>(std::find_if(ids.begin(), ids.end(), outside) - ids.begin());
}

}  // namespace qkv
