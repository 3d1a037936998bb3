// How much of a text can be learnt by heart: the share of its n-grams that occur in other texts of the same kind.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "world/story.h"

namespace qkv {

// N-grams of words between spaces in English, of characters in Chinese; within one text.
class SeenNgrams {
 public:
  SeenNgrams(Language language, int n) : language_(language), n_(n) {}

  void add(std::string_view text);

  struct Share {
    uint64_t seen = 0, all = 0;
  };
  Share of(std::string_view text) const;

 private:
  Language language_;
  int n_;
  std::unordered_set<uint64_t> hashes_;  // of 64 bits: two n-grams with the same hash are not to be expected
};

}  // namespace qkv
