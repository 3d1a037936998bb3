// Trains a tokenizer on text files: counts words, trains the model, writes a tokenizer.json for Hugging Face's library.
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
  size_t vocab = 0;                // tokens in all; ignored for characters
  std::optional<Pattern> pattern;  // splits text into words; default gpt2; BPE only
  // The longest token, 0: any. As Hugging Face's trainers count: letters of the vocabulary, which are bytes in
  // byte-level BPE (three for a Chinese character) and characters in a unigram model.
  size_t max_token_length = 0;
  std::vector<std::string> specials;
  std::string begin = {};  // one of the specials, put before every text; empty: none
  std::vector<std::filesystem::path> files;
};

inline constexpr const char* kUnknownToken = "<unk>";  // of characters and unigram; byte-level BPE knows all bytes

struct TrainedTokenizer {
  std::string json;  // the content of tokenizer.json
  size_t vocab = 0;
  uint64_t bytes = 0, distinct_words = 0;
  uint64_t stray_bytes = 0;  // Unigram: invalid UTF-8 bytes counted as U+FFFD
};

// Shows progress on stderr. The result does not depend on the number of threads.
TrainedTokenizer train_tokenizer(const TokenizerTraining& training, ThreadPool& pool);

// Byte-level: split by the pattern, then GPT-2's byte alphabet.
std::string bpe_tokenizer_json(const BpeModel& model, Pattern pattern);

// Every character is a token, in the order of code points; unseen characters are <unk>.
std::string character_tokenizer_json(const std::vector<std::string>& characters,
                                     const std::vector<std::string>& specials);

// Spaces are U+2581. The first tokens are <unk>, unless it is one of the specials, then the specials.
std::string unigram_tokenizer_json(const TrainedUnigram& model, const std::vector<std::string>& specials);

}  // namespace qkv
