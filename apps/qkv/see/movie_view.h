// What a terminal shows of how a model learnt.
#pragma once

#include "inspect/watch/movie.h"

namespace qkv::app {

// `texts`: of the tokens whose embeddings moved.
void show_movie(const Movie& movie, const std::filesystem::path& run, const std::vector<std::string>& texts);

}  // namespace qkv::app
