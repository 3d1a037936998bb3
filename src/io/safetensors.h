// A safetensors file as names, types, shapes and byte spans. Nothing is copied; reading only.
//
//   u64 N, little endian | N bytes of JSON, padded with spaces | data
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}}
//
// A file is taken only if its tensors cover the data exactly, back to back. So every span of an accepted file lies
// inside it, and no byte is hidden or used twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

class MappedFile;

class Safetensors {
 public:
  struct Entry {
    std::string name;
    std::string dtype;  // as the file spells it: "F32", "BF16", "I64", "BOOL", ...
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;  // little endian; may start at any address, so copy rather than cast
  };

  // Maps the file; the entries live as long as this object or a copy of it.
  static Safetensors open(const std::filesystem::path& path);
  // Reads from memory that the caller keeps; the name is for error texts.
  static Safetensors parse(std::span<const std::byte> file, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<Entry>& entries() const { return entries_; }  // sorted by name
  const Entry* find(std::string_view name) const;                 // nullptr if absent
  const Entry& at(std::string_view name) const;                   // an Error with the nearest names if absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::string name_;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
  std::shared_ptr<const MappedFile> file_;
};

}  // namespace qkv
