// A unigram language model over pieces (Kudo 2018, as SentencePiece trains it): from many seed pieces, expectation
// maximisation, then the pieces whose loss hurts least go, until the vocabulary is small enough.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "text/tokenizer/training/word_counts.h"

namespace qkv {

struct UnigramPiece {
  std::string text;  // a space is U+2581
  double score;      // natural logarithm of its probability
};

struct TrainedUnigram {
  std::vector<UnigramPiece> pieces;  // the most probable first
  uint64_t stray_bytes = 0;          // of the corpus that were no UTF-8 and counted as U+FFFD
  double log_likelihood = 0;         // of the corpus
};

struct UnigramTrainerOptions {
  size_t pieces = 0;  // fewer come out where the corpus has no more to offer
  std::function<void(size_t pieces)> on_round;
};

TrainedUnigram train_unigram(const WordCounts& words, const UnigramTrainerOptions& options, ThreadPool& pool);

}  // namespace qkv
