// Writes a packed dataset: the shards of both splits, then the manifest (docs/data.md).
#pragma once

#include <array>
#include <memory>
#include <span>

#include "base/file.h"
#include "data/dataset_manifest.h"

namespace qkv {

class DatasetWriter {
 public:
  // `manifest` says what is packed; the writer fills in sizes and sums. A shard ends with the document that reaches
  // `shard_bytes`.
  DatasetWriter(const std::filesystem::path& out, DatasetManifest manifest, uint64_t shard_bytes);
  ~DatasetWriter();

  // One document: its entries, of which a pair has two.
  void add(Split split, std::span<const std::span<const int32_t>> entries, uint64_t text_bytes);
  // Closes all shards. The folder appears with commit(); without it nothing is left.
  const DatasetManifest& finish();
  void commit();

 private:
  class SummedFile;
  class SplitWriter;

  AtomicFolder folder_;
  DatasetManifest manifest_;
  std::array<std::unique_ptr<SplitWriter>, kSplits.size()> splits_;
};

}  // namespace qkv
