// A Hugging Face checkpoint: model.safetensors, or shards with an index that says which tensor is in which.
//
//   model.safetensors.index.json   {"metadata": {"total_size": bytes}, "weight_map": {"tensor": "shard file", ...}}
//   model-00001-of-00003.safetensors ...
//
// An index is taken only if it and its shards agree on every tensor, and names only files of its own folder.
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
  // A folder, or one safetensors file of any name. Where a folder has both forms, the single file counts, as in
  // transformers. All is mapped; the entries live as long as this object or a copy of it.
  static SafetensorsFolder open(const std::filesystem::path& path);

  const std::string& name() const { return name_; }                      // as it was opened
  const std::vector<Safetensors>& files() const { return files_; }       // one, or the shards sorted by name
  const std::vector<StoredTensor>& entries() const { return entries_; }  // of all files, sorted by name
  const StoredTensor* find(std::string_view name) const;                 // nullptr if absent
  const StoredTensor& at(std::string_view name) const;                   // an Error with the nearest names if absent
  // Gives the pages under an entry back once it was copied; its bytes stay readable.
  void release(const StoredTensor& entry) const;

 private:
  std::string name_;
  std::vector<Safetensors> files_;
  std::vector<StoredTensor> entries_;
};

// The weight_map of an index: tensor to file. The name is for error texts.
std::map<std::string, std::string> parse_shard_index(std::string_view text, const std::string& name);

struct ShardOptions {
  uint64_t largest_shard = 5'000'000'000;  // bytes of data; a tensor larger than this has a shard of its own
  uint64_t line = 8;                       // where the data of a shard starts: a multiple of this
};

// Writes model.safetensors, or shards in the order given and then the index. The folder must exist and hold no model
// yet: old and new shards side by side would be a model that nobody saved.
void write_safetensors_folder(const std::filesystem::path& folder, std::span<const OutgoingTensor> tensors,
                              const std::map<std::string, std::string>& metadata, ShardOptions options = {});

}  // namespace qkv
