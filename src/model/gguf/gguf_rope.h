// Rope scaling as GGUF keeps it: keys for some kinds, tensors of factors for others.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/json.h"
#include "nn/position_tables.h"

namespace qkv {

class GgufFacts;

// The config's rope_parameters for heads `width` wide.
Json gguf_rope_parameters(const GgufFacts& f, int64_t width);

// What rope_freqs.weight holds for Llama 3: how much longer each pair's wavelength becomes.
std::vector<float> llama3_factors(const RopeSpec& rope);

// The scaling that has these factors; nullopt if the published rule with any likely setting gives others.
// `original`: the first context where the file says it, or 0.
std::optional<ops::RopeScaling> llama3_from_factors(std::span<const float> factors, const RopeSpec& rope,
                                                    double original);

// The shortest decimal number that is this float: what somebody once wrote in a config.
double as_written(float value);

}  // namespace qkv
