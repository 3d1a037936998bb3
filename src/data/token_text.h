// Tokens that a model is to read, and which of them it is asked to predict.
#pragma once

#include <cstdint>
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

}  // namespace qkv
