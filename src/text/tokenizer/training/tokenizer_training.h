// From text files to a tokenizer.json: count the words, train the model, write what Hugging Face's library loads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "text/tokenizer/pipeline/patterns.h"
#include "text/tokenizer/training/bpe_trainer.h"
#include "text/tokenizer/training/unigram_trainer.h"

namespace qkv {

enum class TokenizerKind { bpe, unigram, characters };

struct TokenizerTraining {
  TokenizerKind kind = TokenizerKind::bpe;
  size_t vocab = 0;                // tokens in all; of characters as many as there are
  std::optional<Pattern> pattern;  // how text becomes words: gpt2 if none is named; only for BPE
  std::vector<std::string> specials;
  std::vector<std::filesystem::path> files;
};

struct TrainedTokenizer {
  std::string json;  // the content of tokenizer.json
  size_t vocab = 0;
  uint64_t bytes = 0, distinct_words = 0;
  uint64_t stray_bytes = 0;  // Unigram: bytes that were no UTF-8 and counted as U+FFFD
};

// Shows its progress on stderr. The same result for any number of threads.
TrainedTokenizer train_tokenizer(const TokenizerTraining& training, ThreadPool& pool);

// Byte-level: the pattern splits, then every byte is a printable character.
std::string bpe_tokenizer_json(const BpeModel& model, Pattern pattern);

// Every character is a token, in the order of their code points; what was not seen is <unk>.
std::string character_tokenizer_json(const std::vector<std::string>& characters,
                                     const std::vector<std::string>& specials);

// Spaces are U+2581. The first tokens are <unk>, unless it is among the specials, and the specials.
std::string unigram_tokenizer_json(const TrainedUnigram& model, const std::vector<std::string>& specials);

}  // namespace qkv
