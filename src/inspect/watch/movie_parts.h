// The arithmetic of a movie, apart from where its snapshots come from.
#pragma once

#include <span>

#include "inspect/watch/movie.h"

namespace qkv {

struct MovieEntry {
  MovieEntry(Snapshot taken, size_t width);  // of an embedding; 0: there are none

  Snapshot snapshot;
  std::vector<std::vector<size_t>> nearest;  // of each embedded token, its nearest others by cosine
};

// What follows from one snapshot alone.
void add_snapshot(const Snapshot& snapshot, Movie& movie);
// What needs them all: motion, embeddings, phases. `basis`: the entry whose two main directions are the axes.
void add_course(std::span<const MovieEntry> all, size_t basis, Movie& movie);

// Whether the axes of entry `basis` show too little of the newest one, compared with its own.
bool axes_are_stale(std::span<const MovieEntry> all, size_t basis);

}  // namespace qkv
