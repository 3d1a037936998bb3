// Compares text generated with the KV cache, greedy and by beam search, with what the reference generated.
#pragma once

#include "verify/verify_model.h"

namespace qkv {

// One line for every generate_... tensor in `folder`/io.safetensors. In bf16 or with quantized weights a difference is
// shown but is not a failure.
void verify_tokens(VerifyReport& report, const Checkpoint& checkpoint, const Engine& engine, Precision precision,
                   const std::filesystem::path& folder);

}  // namespace qkv
