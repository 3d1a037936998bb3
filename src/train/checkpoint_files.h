// One checkpoint of a run on disk: a model any program loads, and what training needs to go on.
//
//   config.json  model.safetensors (f32)  tokenizer files     a Hugging Face folder
//   train_state.safetensors                                   "m.layers.0.attn.q", ...: the optimiser's tensors
//   train_state.json                                          steps, tokens, the best so far
//   manifest.json                                             size and SHA-256 of every other file, written last
#pragma once

#include <filesystem>

#include "base/json.h"
#include "train/trainer.h"

namespace qkv {

// Everything a checkpoint will hold, copied: what becomes of the model afterwards does not matter. A number that is not
// finite is an Error that names its tensor.
struct CheckpointCopy {
  CheckpointCopy(const Model& model, Json config, const Optimizer& optimizer, const TrainCounters& counters);

  ModelSpec spec;
  Json config;
  Weights weights, states;  // f32, on the host
  int64_t optimizer_steps = 0;
  TrainCounters counters;
};

// The folder appears whole or not at all; one that has the name already is replaced in one step.
void write_checkpoint(const std::filesystem::path& folder, const CheckpointCopy& copy,
                      const std::vector<std::filesystem::path>& tokenizer_files);

// An Error unless every file the manifest names is there, bit for bit.
void check_checkpoint(const std::filesystem::path& folder);

// Bits as they were. An Error, and nothing changed, if it holds another model or the tensors of another optimiser.
void read_checkpoint(const std::filesystem::path& folder, Model& model, Optimizer& optimizer, TrainCounters& counters);

}  // namespace qkv
