// manifest.json of a packed dataset: contents and format of the shards (diagram in docs/data.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace qkv {

inline constexpr int64_t kLargestVocabulary = int64_t{1} << 24;  // so that a counter per token fits in memory

enum class Split { train, validation };
inline constexpr std::array kSplits{Split::train, Split::validation};
const char* name_of(Split split);

struct ShardInfo {
  std::string file;  // FILE.tokens and FILE.index
  uint64_t tokens = 0, documents = 0;
  std::string tokens_sha256, index_sha256;
};

struct SplitInfo {
  uint64_t tokens = 0, documents = 0, text_bytes = 0;
  std::vector<ShardInfo> shards;
};

struct DatasetManifest {
  bool pairs = false;  // a document is a source and a target
  // A document is a conversation. Half of the vocabulary is added to the ids of answers, so `vocabulary` is twice that
  // of the tokenizer.
  bool chats = false;
  int token_bytes = 2;
  int64_t vocabulary = 0;
  std::string tokenizer;  // its fingerprint
  std::optional<int32_t> begin_token, end_token;
  std::array<SplitInfo, kSplits.size()> splits;

  const SplitInfo& of(Split split) const { return splits[static_cast<size_t>(split)]; }
  SplitInfo& of(Split split) { return splits[static_cast<size_t>(split)]; }
  // Index entries per document.
  uint64_t parts() const { return pairs ? 2 : 1; }
};

const char* name_of_kind(const DatasetManifest& manifest);       // text, pairs, chats
const char* name_of_documents(const DatasetManifest& manifest);  // documents, pairs, conversations
std::string shard_name(Split split, size_t number);
int token_bytes_for(int64_t vocabulary);

std::string to_json_text(const DatasetManifest& manifest);
DatasetManifest parse_manifest(std::string_view text, const std::string& what);

}  // namespace qkv
