// The learning rate of a step, counted from 0. Every schedule starts with a linear warm-up.
//
//   lr(s) = peak (s + 1) / warmup                                                 s < warmup
//   constant       peak
//   cosine         last + (peak - last) (1 + cos(pi (s - warmup) / (steps - warmup))) / 2
//   inverse_sqrt   peak sqrt(warmup / (s + 1))                                    the 2017 Transformer
//   stable_decay   peak, then linear to `last` over the last `decay` steps
#pragma once

#include <cstdint>
#include <string_view>

namespace qkv {

struct Schedule {
  enum class Kind : uint8_t { constant, cosine, inverse_sqrt, stable_decay } kind = Kind::cosine;
  double peak = 1e-3, last = 0;
  int64_t steps = 0, warmup = 0, decay = 0;

  double at(int64_t step) const;
  void validate() const;  // an Error with both values
};

const char* name_of(Schedule::Kind kind);

}  // namespace qkv
