// The text files of a run: those of its recipe, or stories of the built-in world.
#pragma once

#include <filesystem>

#include "base/thread_pool.h"
#include "text/documents.h"
#include "train/recipe.h"

namespace qkv {

struct Corpus {
  std::vector<std::string> train, validation;  // files; without validation files, a share of the training files
  SourceOptions source, validation_source;
};

// Writes stories, and texts that are cut in two, into `folder`; other files stay where they are. Throws an Error if a
// file is missing, empty or no file, or if the disk is too small for the stories.
Corpus corpus_of(const Recipe& recipe, const std::filesystem::path& folder, ThreadPool& pool);

}  // namespace qkv
