// From a recipe to what a run reads: corpus, tokenizer, token shards and the model's config, below one folder.
//
//   FOLDER/tokenizer/             tokenizer.json and tokenizer_config.json, trained or copied
//   FOLDER/data/train, validation token shards (docs/data.md)
//   FOLDER/config.json            the model, its vocabulary and token ids filled in
#pragma once

#include <filesystem>

#include "base/thread_pool.h"
#include "train/recipe.h"

namespace qkv {

// Everything, or an Error and nothing that looks finished. `from`: a model to go on with, whose tokenizer and config
// are taken; empty: none. Shows its progress on stderr.
void prepare_run(const Recipe& recipe, const std::filesystem::path& from, const std::filesystem::path& folder,
                 ThreadPool& pool);

}  // namespace qkv
