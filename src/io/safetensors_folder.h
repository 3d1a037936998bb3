// A Hugging Face checkpoint: model.safetensors, or shards with an index of which tensor is in which file.
//
//   model.safetensors.index.json   {"metadata": {"total_size": bytes}, "weight_map": {"tensor": "shard file", ...}}
//   model-00001-of-00003.safetensors ...
//
// The index and the shards must agree on every tensor, and the index may name only files of its own folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace qkv {

class SafetensorsFolder {
 public:
  // A folder, or one safetensors file of any name. If a folder has both forms, the single file is used, as in
  // transformers. Files are mapped; the entries live as long as this object or a copy of it.
  static SafetensorsFolder open(const std::filesystem::path& path);

  const std::string& name() const { return name_; }                      // the path it was opened with
  const std::vector<Safetensors>& files() const { return files_; }       // one, or the shards; without their entries
  const std::vector<StoredTensor>& entries() const { return entries_; }  // of all files, sorted by name
  const StoredTensor* find(std::string_view name) const;                 // nullptr if absent
  const StoredTensor& at(std::string_view name) const;                   // an Error with the nearest names if absent
  // Drops the pages of an entry that was copied; its bytes stay readable.
  void release(const StoredTensor& entry) const;

 private:
  std::string name_;
  std::vector<Safetensors> files_;  // their entries are in entries_
  std::vector<StoredTensor> entries_;
};

struct ShardOptions {
  uint64_t largest_shard = 5'000'000'000;  // bytes of data; a larger tensor gets a shard of its own
  uint64_t alignment = 8;                  // of the start of a shard's data
};

// Writes model.safetensors, or shards in the order given and then the index. The folder must exist and hold no model,
// so that old and new shards cannot mix.
void write_safetensors_folder(const std::filesystem::path& folder, std::span<const OutgoingTensor> tensors,
                              const std::map<std::string, std::string>& metadata, ShardOptions options = {});

}  // namespace qkv
