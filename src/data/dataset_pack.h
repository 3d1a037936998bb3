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

struct PackOptions {
  std::vector<std::string> files;
  std::filesystem::path out;
  SourceOptions source;
  double validation = 0.0;                     // fraction of the documents
  uint64_t seed = 0;                           // selects them
  uint64_t shard_bytes = uint64_t{128} << 20;  // a shard ends with the document that reaches this size
};

struct Packed {
  DatasetManifest manifest;
  uint64_t skipped = 0;  // documents without text or without tokens
};

Packed pack_dataset(const PackOptions& options, const PackTokenizer& tokenizer, ThreadPool& pool);

// The split of a document depends only on the seed and its text (of a pair: its source), so that copies of a text are
// never in both splits.
Split split_of(std::string_view text, double validation, uint64_t seed);

}  // namespace qkv
