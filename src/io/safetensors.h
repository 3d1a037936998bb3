// A safetensors file as names, types, shapes and byte spans. Nothing is copied.
//
//   u64 N, little endian | N bytes of JSON, padded with spaces | data
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}}
//
// A file is taken only if its tensors cover the data exactly, back to back. So every span of an accepted file lies
// inside it, and no byte is hidden or used twice.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/stored_tensor.h"

namespace qkv {

class MappedFile;

class Safetensors {
 public:
  // Maps the file; the entries live as long as this object or a copy of it.
  static Safetensors open(const std::filesystem::path& path);
  // Reads from memory that the caller keeps; the name is for error texts.
  static Safetensors parse(std::span<const std::byte> file, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<StoredTensor>& entries() const { return entries_; }  // sorted by name
  const StoredTensor* find(std::string_view name) const;                 // nullptr if absent
  const StoredTensor& at(std::string_view name) const;                   // an Error with the nearest names if absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Gives the pages under an entry back once it was copied; its bytes stay readable.
  void release(const StoredTensor& entry) const;

 private:
  std::string name_;
  std::vector<StoredTensor> entries_;
  std::map<std::string, std::string> metadata_;
  std::shared_ptr<const MappedFile> file_;
};

// Writes tensor after tensor, so that never more than a piece is in memory; the file appears whole or not at all. The
// order of the data is that of the reference writer: by type, then by name, so that what it wrote comes out bit-equal.
// The data starts at a multiple of `line`; the reference's at one of 8.
void write_safetensors(const std::filesystem::path& path, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata, uint64_t line = 8);
// The bytes a tensor will take there; an Error that names `file` if the format cannot hold it.
uint64_t safetensors_bytes(const OutgoingTensor& tensor, const std::string& file);

}  // namespace qkv
