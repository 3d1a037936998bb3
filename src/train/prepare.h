// Prepares a run from its recipe: corpus, tokenizer, token shards and the model's config, in one folder.
//
//   FOLDER/tokenizer/             tokenizer.json and tokenizer_config.json, trained or copied
//   FOLDER/data/train, validation token shards (docs/data.md)
//   FOLDER/config.json            the model, its vocabulary and token ids filled in
#pragma once

#include <filesystem>

#include "base/thread_pool.h"
#include "train/recipe.h"

namespace qkv {

// Writes all of it, or throws and leaves nothing that looks complete. `from`: a model to fine-tune, whose tokenizer and
// config are used; may be empty. Progress goes to stderr.
void prepare_run(const Recipe& recipe, const std::filesystem::path& from, const std::filesystem::path& folder,
                 ThreadPool& pool);

}  // namespace qkv
