// Rope scaling as GGUF keeps it: keys for some kinds, tensors of factors for others.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/json.h"
#include "nn/spec.h"

namespace qkv {

class GgufFacts;

// The config's rope_parameters for heads `width` wide.
Json gguf_rope_parameters(const GgufFacts& f, int64_t width);

// The values of rope_freqs.weight for Llama 3: the factor on each pair's wavelength.
std::vector<float> llama3_factors(const RopeSpec& rope);

// The llama3 scaling that gives these factors; nullopt if no likely setting does.
// `original`: the original context if the file has it, or 0.
std::optional<ops::RopeScaling> llama3_from_factors(std::span<const float> factors, const RopeSpec& rope,
                                                    double original);

// The shortest decimal number that rounds to this float, as in the original config.
double as_written(float value);

}  // namespace qkv
