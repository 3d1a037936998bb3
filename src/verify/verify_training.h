// Replays a recorded training run: the same batches and optimiser must give the same losses, gradients and weights.
#pragma once

#include "verify/verify_model.h"

namespace qkv {

// One line per part of `folder`/train.safetensors; nothing if the file is absent. Always in f32, like the recording.
void verify_training(VerifyReport& report, const Checkpoint& checkpoint, const Engine& engine,
                     const std::filesystem::path& folder);

}  // namespace qkv
