// Trains a unigram language model over pieces (Kudo 2018, as in SentencePiece): starts from many seed pieces,
// alternates expectation maximisation and pruning of the pieces whose removal costs least, until the vocabulary has its
// size.
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
  uint64_t stray_bytes = 0;          // invalid UTF-8 in the corpus, counted as U+FFFD
  double log_likelihood = 0;         // of the corpus
};

struct UnigramTrainerOptions {
  size_t pieces = 0;            // fewer if the corpus has too few candidates
  size_t max_token_length = 0;  // characters of a piece; 0: UnigramCorpus::kLongestPiece
  std::function<void(size_t pieces)> on_round;
};

TrainedUnigram train_unigram(const WordCounts& words, const UnigramTrainerOptions& options, ThreadPool& pool);

}  // namespace qkv
