#include "base/seeded_hash.h"

#include <random>

namespace qkv {

const HashSecret& hash_secret() {
  static const HashSecret secret = [] {
    std::random_device random;
    const auto number = [&] { return uint64_t{random()} << 32 | random(); };
    return HashSecret{.start = number(), .multiplier = number() | 1};
  }();
  return secret;
}

}  // namespace qkv
