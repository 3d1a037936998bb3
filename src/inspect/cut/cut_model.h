// Pruning: removes heads and experts from the weights (W_Q, W_K, W_V, W_O, routers, experts).
//
// A key/value head is removed with the last query head that reads it. The smaller model computes what the whole model
// computes with the same heads ablated to zero.
#pragma once

#include <filesystem>
#include <memory>

#include "inspect/cut/ablation.h"
#include "model/checkpoint/checkpoint.h"

namespace qkv {

struct SmallerModel {
  Json config;  // with qkv's own keys, see docs/add-a-family.md
  ModelSpec spec;
  Weights weights;  // cut from the whole model's on first use

  std::unique_ptr<Model> model() && { return Model::make(spec, std::move(weights)); }
};

// `cut.ablation` is zero, or mean: then the mean outputs of the heads are added to the bias of W_O. An Error if an
// attention would be left without a head, if W_O has no bias for the means, or if nothing is cut.
SmallerModel cut_out(const Checkpoint& whole, Device& device, const Cut& cut, const HeadOutputs* outputs = nullptr);

// Writes a folder that qkv loads but Hugging Face does not; complete or not at all, and nothing is overwritten. `from`:
// the original model, whose tokenizer is copied. Returns notes for the user, one per line.
std::vector<std::string> write_cut_model(const std::filesystem::path& folder, const SmallerModel& model,
                                         const std::filesystem::path& from);

}  // namespace qkv
