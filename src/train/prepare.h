// Prepares a run from its recipe: corpus, tokenizer, token shards and the weights it starts from, in one folder.
//
//   FOLDER/tokenizer/             tokenizer.json and tokenizer_config.json, trained or copied
//   FOLDER/data/train, validation token shards (docs/data.md)
//   FOLDER/start/                 the model before the first step, its vocabulary and token ids filled in
//   FOLDER/recipe.json            the recipe all of it was made from
//   FOLDER/manifest.json          size and SHA-256 of every other file
#pragma once

#include <filesystem>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "train/recipe.h"

namespace qkv {

// Writes all of it, or throws and leaves nothing that looks complete. Progress goes to stderr. A new model whose weights
// and optimiser need more than `memory` bytes, those of the device it will be trained on, is refused.
void prepare_run(const Recipe& recipe, const std::filesystem::path& folder, ThreadPool& pool,
                 int64_t memory = available_memory());

}  // namespace qkv
