// What the library and the commands that measure heads share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/look/attribution.h"

namespace qkv::v1 {

// An Error if there are too few texts for an interval.
void check_enough(std::span<const TokenText> texts, const std::string& where);

const char* name_of(qkv::AttributedPart::Kind kind);

// The tokens with the highest logits, best first; fewer only of a smaller vocabulary.
std::vector<int32_t> two_best(std::span<const float> logits);
// An Error unless the logits have one of this id; `what` names it.
void check_token(const char* what, int32_t id, std::span<const float> logits);

// The tokens a logit is attributed for: the given ones; otherwise the likeliest, against the likeliest other.
struct TokenPair {
  int32_t target = 0, against = 0;
};
TokenPair compared_tokens(const Attributor& attributor, std::optional<int32_t> target, std::optional<int32_t> against);

}  // namespace qkv::v1
