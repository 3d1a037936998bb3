// Replays a recorded training run: the same batches and optimiser must give the same losses, gradients and weights.
#pragma once

#include "verify/verify_model.h"

namespace qkv {

// One line per part of `folder`/train.safetensors; nothing if the file is absent. In f32, like the recording. Where that
// holds f64.loss and f64.grad_norm, the same training in double, they are replayed in double and compared too.
void verify_training(VerifyReport& report, const Checkpoint& checkpoint, const Engine& engine,
                     const std::filesystem::path& folder);

}  // namespace qkv
