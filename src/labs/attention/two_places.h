// A target made of two places that must be kept apart: half of the bits of the token 1 back and the other half of the
// bits of the token 3 back.
#pragma once

#include "labs/attention/one_layer.h"

namespace qkv {

// One layer of attention without a feed-forward adds, for every head, what a place says times the attention it gets. One
// head has one W_V for all places: what makes the first half heard from one place makes the second half heard from it
// too. Two heads have one each.
struct TwoPlaces {
  static constexpr int32_t kTokens = 16;  // two times two bits

  OneLayer model;
  int32_t first = 1, second = 3;  // how far back; the same place twice is a task for one head
  int64_t steps = 0;

  TrainBatch texts(uint64_t seed, int64_t step, int64_t count) const;
};

// Share of right answers after training.
double two_places_right(const LabContext& lab, const TwoPlaces& task, uint64_t seed);

}  // namespace qkv
