// A packed dataset on disk: token shards mapped read-only; all sizes are checked on opening.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/function_ref.h"
#include "data/dataset_manifest.h"

namespace qkv {

// One split. Its shards form one sequence of tokens, divided into entries: documents, or source, target, source,
// target, ... if documents are pairs.
class PackedSplit {
 public:
  PackedSplit(const std::filesystem::path& folder, const DatasetManifest& manifest, Split split);

  uint64_t tokens() const { return info_.tokens; }
  uint64_t documents() const { return info_.documents; }
  uint64_t entries() const { return info_.documents * parts_; }
  uint64_t text_bytes() const { return info_.text_bytes; }
  bool pairs() const { return parts_ == 2; }
  bool chats() const { return chats_; }
  int64_t vocabulary() const { return vocabulary_; }

  // Token offset of an entry; start(entries()) is the end.
  uint64_t start(uint64_t entry) const;
  uint64_t length(uint64_t entry) const { return start(entry + 1) - start(entry); }
  // The entry that contains this token.
  uint64_t entry_at(uint64_t token) const;
  // Copies the ids from token `begin` on.
  void copy(uint64_t begin, std::span<int32_t> ids) const;

  // The files whose SHA-256 does not match the manifest. on_progress gets the bytes read so far.
  std::vector<std::string> damaged_files(FunctionRef<void(uint64_t bytes)> on_progress) const;

 private:
  struct Shard {
    MappedFile tokens, index;
    uint64_t first_token, first_entry;
    std::span<const uint32_t> starts() const;
  };
  void check(const Shard& shard, const ShardInfo& info) const;
  const Shard& shard_of(uint64_t number, uint64_t Shard::*first) const;

  SplitInfo info_;
  uint64_t parts_;
  bool chats_;
  int64_t vocabulary_;
  size_t token_bytes_;
  std::vector<Shard> shards_;
};

class PackedDataset {
 public:
  explicit PackedDataset(const std::filesystem::path& folder);

  const DatasetManifest& manifest() const { return manifest_; }
  const PackedSplit& of(Split split) const { return splits_[static_cast<size_t>(split)]; }

 private:
  DatasetManifest manifest_;
  std::vector<PackedSplit> splits_;
};

}  // namespace qkv
