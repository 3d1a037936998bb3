// What a model says of the next token, from scratch: for checks, where being simple counts more than being fast.
#pragma once

#include <span>
#include <vector>

#include "core/engine.h"
#include "model/model.h"

namespace qkv {

// texts: one or more of the same length. source: what an encoder-decoder reads, the same for all of them.
std::vector<float> next_logits(const Model& model, const Engine& engine, Precision precision,
                               std::span<const std::vector<int32_t>> texts,
                               std::span<const int32_t> source);  // [texts, V]

}  // namespace qkv
