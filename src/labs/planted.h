// What labs measure if the mechanism they are about is taken away. Their verdicts must not survive it
// (tests/labs/planted_test.cpp).
#pragma once

#include <optional>

#include "labs/attention/one_layer.h"
#include "labs/steps/cups.h"

namespace qkv::labs {

// scale: what the side "with 1/sqrt(d)" multiplies scores by; none: 1/sqrt(d).
SeedNumbers scale_numbers(const LabContext& lab, uint64_t seed, std::optional<double> with = {});

// one-head: Tie::heads makes several heads one.
SeedNumbers one_head_numbers(const LabContext& lab, uint64_t seed, OneLayer::Tie tie = OneLayer::Tie::none);

// thinking-aloud: what is told as the steps.
SeedNumbers thinking_aloud_numbers(const LabContext& lab, uint64_t seed, Telling steps = Telling::steps);

// phases: shuffled, all learn from words in random order.
SeedNumbers phases_numbers(const LabContext& lab, uint64_t seed, bool shuffled = false);

}  // namespace qkv::labs
