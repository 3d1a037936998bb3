// Bounds how much text the steps of a tokenizer write: a multiple of the text they are given, and a constant. Tokenizer
// files come from anyone, and a few replacements in a row can make gigabytes of one character.
#pragma once

#include <cstddef>
#include <string_view>

namespace qkv {

inline constexpr size_t kMostSteps = 64;  // of a normalizer, a pre-tokenizer or a decoder

class GrowthLimit {
 public:
  // `what` names the tokenizer in the error and must outlive this; `unit` is what is counted.
  explicit GrowthLimit(std::string_view what, const char* unit = "bytes") : what_(what), unit_(unit) {}

  void add_input(size_t bytes) {
    input_ += bytes;
    left_ += bytes * kPerByte;
  }
  void spend(size_t bytes, const char* step) {
    if (bytes > left_) fail(step);
    left_ -= bytes;
  }

 private:
  // All steps together. Real tokenizers write a text less than ten times; NFKD can make one character eleven times longer.
  static constexpr size_t kPerByte = 100, kConstant = size_t{1} << 20;

  [[noreturn]] void fail(const char* step) const;

  std::string_view what_;
  const char* unit_;
  size_t input_ = 0, left_ = kConstant;
};

// An Error if a sequence of components has more than kMostSteps steps. `kind`: "normalizer", ...
void check_steps(size_t steps, std::string_view kind);

template <class Steps>
size_t count_steps(const Steps& steps) {
  size_t count = 0;
  for (const auto& step : steps) count += step->steps();
  return count;
}

}  // namespace qkv
