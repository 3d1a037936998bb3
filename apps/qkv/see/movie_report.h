// The movie of a run or of a model that ships with one, and its report.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "inspect/watch/movie.h"

namespace qkv::app {

// From the snapshots of a run, from movie.json in a model's folder, or from such a file itself.
ToldMovie movie_of(const std::filesystem::path& path,
                   const std::function<void(size_t done, size_t all)>& finished = {});

Json movie_report(const ToldMovie& told, const std::filesystem::path& path);

// The report as it ships with a model: numbers of six digits, on one line. Empty if the run was not watched.
std::string packed_movie(const std::filesystem::path& run);

}  // namespace qkv::app
