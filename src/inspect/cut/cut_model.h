// Heads and experts taken out for good: smaller W_Q, W_K, W_V, W_O, routers and stacks of experts.
//
// A key/value head goes when no query head is left that reads it. What is left computes what the whole model computes
// with the same heads at zero.
#pragma once

#include <filesystem>
#include <memory>

#include "inspect/cut/ablation.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {

struct SmallerModel {
  Json config;  // with qkv's own keys, see docs/add-a-family.md
  ModelSpec spec;
  Weights weights;  // made of the whole model's when they are first needed

  std::unique_ptr<Model> model() && { return Model::make(spec, std::move(weights)); }
};

// `cut.ablation` is zero, or mean: then what the heads bring on average goes into the bias of W_O. An Error if an
// attention would be left without a head, if a mean has no bias to go into, or if nothing is cut.
SmallerModel cut_out(const Checkpoint& whole, Device& device, const Cut& cut, const HeadOutputs* outputs = nullptr);

// A folder that qkv loads and Hugging Face does not; it appears whole or not at all, and nothing is overwritten.
// `from`: where the model came from, whose tokenizer comes along. Returns what its owner should know, a line each.
std::vector<std::string> write_cut_model(const std::filesystem::path& folder, const SmallerModel& model,
                                         const std::filesystem::path& from);

}  // namespace qkv
