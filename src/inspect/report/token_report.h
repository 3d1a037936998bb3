// The story of one token in one layer and head with every number, and the formulas between them worked out again in
// double from weights and numbers: "checks" says how far each lies from what the pass had.
#pragma once

#include "base/json.h"
#include "inspect/look/token_numbers.h"

namespace qkv {

Json token_report(const Model& model, const Engine& engine, const TokenNumbers& numbers);

// A float as JSON with as many digits as it takes to read it back.
Json exact(float value);
Json exact(std::span<const float> values);

}  // namespace qkv
