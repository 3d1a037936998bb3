// qkv data pack: encodes documents into token shards in a new folder, created atomically (docs/data.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "data/dataset_manifest.h"
#include "text/documents.h"

namespace qkv {

// The tokenizer interface of packing. encode appends the ids of a text and must be thread-safe.
struct PackTokenizer {
  FunctionRef<void(std::string_view text, std::vector<int32_t>& ids)> encode;
  int64_t vocabulary = 0;
  std::string fingerprint;
  std::optional<int32_t> begin_token, end_token;  // added around every document, or each side of a pair
};

// The longest documents that are packed, in tokens; 0: any.
struct TokenLimit {
  uint64_t side = 0;  // of a document, or of either side of a pair
  uint64_t pair = 0;  // of both sides, as padded_pair_tokens() counts
  bool cut = false;   // longer ones are cut; otherwise they are left out
};

struct PackOptions {
  std::vector<std::string> files;
  std::filesystem::path out;
  SourceOptions source;
  double validation = 0.0;  // fraction of the documents
  uint64_t seed = 0;        // selects them, by a hash of their text
  bool tail = false;        // the documents at the end of each file are held out instead
  TokenLimit limit = {};
  uint64_t shard_bytes = uint64_t{128} << 20;  // a shard ends with the document that reaches this size
  const char* validation_option = nullptr;     // how the caller's user says `validation`, for hints
};

struct Packed {
  DatasetManifest manifest;
  uint64_t skipped = 0;            // documents without text or without tokens
  uint64_t too_long = 0, cut = 0;  // documents beyond the limit: left out, or packed in part
  std::string first_too_long;      // file, line and tokens of the first of either
};

Packed pack_dataset(const PackOptions& options, const PackTokenizer& tokenizer, ThreadPool& pool);

// The split of a document depends only on the seed and its text (of a pair: its source), so that copies of a text are
// never in both splits.
Split split_of(std::string_view text, double validation, uint64_t seed);
// The same as the options say; `before`: the share of its file before it.
Split split_of(const PackOptions& options, std::string_view text, double before);
// Throws an Error if all documents were left out or held out.
void check_any_to_train(const PackOptions& options, const Packed& packed);
std::string place_of(const std::string& file, uint64_t line);

}  // namespace qkv
