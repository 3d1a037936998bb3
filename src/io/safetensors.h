// A safetensors file as names, types, shapes and byte spans. Nothing is copied.
//
//   u64 N, little endian | N bytes of JSON, padded with spaces | data
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}}
//
// The tensors must cover the data exactly, back to back. So every span is inside the file, and no byte is hidden or
// used twice.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/stored_tensor.h"

namespace qkv {

class MappedFile;

class Safetensors {
 public:
  // Maps the file; the entries live as long as this object or a copy of it.
  static Safetensors open(const std::filesystem::path& path);
  // Parses memory that the caller keeps alive; the name is for error texts.
  static Safetensors parse(std::span<const std::byte> file, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<StoredTensor>& entries() const { return entries_; }  // sorted by name
  const StoredTensor* find(std::string_view name) const;                 // nullptr if absent
  const StoredTensor& at(std::string_view name) const;                   // an Error with the nearest names if absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  std::vector<StoredTensor> take_entries() { return std::move(entries_); }  // entries() is empty then

  // Drops the pages of an entry that was copied; its bytes stay readable.
  void release(const StoredTensor& entry) const;

 private:
  std::string name_;
  std::vector<StoredTensor> entries_;
  std::map<std::string, std::string> metadata_;
  std::shared_ptr<const MappedFile> file_;
};

// Writes the tensors a piece at a time. Atomic: the file is complete or absent. Ordered by type, then by name, as the
// reference writer does, so that its files are reproduced bit for bit. The data starts at a multiple of `alignment`;
// the reference uses 8.
void write_safetensors(const std::filesystem::path& path, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata, uint64_t alignment = 8);
// The bytes of a tensor in the file; an Error that names `file` if the format cannot hold it.
uint64_t safetensors_bytes(const OutgoingTensor& tensor, const std::string& file);

}  // namespace qkv
