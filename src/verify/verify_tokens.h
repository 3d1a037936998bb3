// What a model writes through its caches against what a reference wrote: greedily and with beams.
#pragma once

#include "verify/verify_model.h"

namespace qkv {

// A line for every generate_... that `folder`/io.safetensors recorded. In bf16, or in fewer bits, other tokens are shown,
// not held against the model.
void verify_tokens(VerifyReport& report, const Checkpoint& checkpoint, const Engine& engine, Precision precision,
                   const std::filesystem::path& folder);

}  // namespace qkv
