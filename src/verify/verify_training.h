// Replays a recorded training run: the same batches and rules must give the same losses, gradients and weights.
#pragma once

#include "verify/verify_model.h"

namespace qkv {

// A line for each part of `folder`/train.safetensors; nothing if there is no such file. Only in f32: the recording is.
void verify_training(VerifyReport& report, const Checkpoint& checkpoint, const Engine& engine,
                     const std::filesystem::path& folder);

}  // namespace qkv
