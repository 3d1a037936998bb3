// One checkpoint of a run on disk: a Hugging Face model folder plus the state needed to resume training.
//
//   config.json  model.safetensors (f32)  tokenizer files     a Hugging Face folder
//   train_state.safetensors                                   "m.layers.0.attn.q", ...: the optimiser's tensors
//   train_state.json                                          step, tokens, best validation loss so far
//   manifest.json                                             size and SHA-256 of every other file, written last
#pragma once

#include <filesystem>

#include "base/json.h"
#include "train/trainer.h"

namespace qkv {

// A copy of everything a checkpoint holds, so that training may go on while it is written. A value that is not finite
// is an Error that names its tensor.
struct CheckpointCopy {
  CheckpointCopy(const Model& model, Json config, const Optimizer& optimizer, const TrainCounters& counters);

  ModelSpec spec;
  Json config;
  Weights weights, states;  // f32, on the host
  int64_t optimizer_steps = 0;
  TrainCounters counters;
};

// The folder appears complete or not at all; an existing folder of that name is replaced atomically.
void write_checkpoint(const std::filesystem::path& folder, const CheckpointCopy& copy,
                      const std::vector<std::filesystem::path>& tokenizer_files);

// An Error unless every file in the manifest exists with the same size and SHA-256.
void check_checkpoint(const std::filesystem::path& folder);

// Restores the exact bits. If it holds another model or another optimiser's tensors: an Error, and nothing is changed.
void read_checkpoint(const std::filesystem::path& folder, Model& model, Optimizer& optimizer, TrainCounters& counters);

}  // namespace qkv
