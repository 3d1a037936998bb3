// qkv data pack: documents become token shards in a new folder, which appears whole or not at all (docs/data.md).
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

// What packing needs to know of a tokenizer. encode appends the text's ids and is called from several threads at once.
struct PackTokenizer {
  FunctionRef<void(std::string_view text, std::vector<int32_t>& ids)> encode;
  int64_t vocabulary = 0;
  std::string fingerprint;
  std::optional<int32_t> begin_token, end_token;  // put around every document, or both sides of a pair
};

struct PackOptions {
  std::vector<std::string> files;
  std::filesystem::path out;
  SourceOptions source;
  double validation = 0.0;                     // share of the documents
  uint64_t seed = 0;                           // which ones
  uint64_t shard_bytes = uint64_t{128} << 20;  // a shard ends with the document that reaches it
};

struct Packed {
  DatasetManifest manifest;
  uint64_t left_out = 0;  // documents without text or without tokens
};

Packed pack_dataset(const PackOptions& options, const PackTokenizer& tokenizer, ThreadPool& pool);

// A document's split depends on the seed and its text alone (a pair's on its source), so copies of one text never stand
// on both sides.
Split split_of(std::string_view text, double validation, uint64_t seed);

}  // namespace qkv
