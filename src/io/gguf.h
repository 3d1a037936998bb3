// A GGUF file (version 3, or 2, which has the same layout): typed metadata and tensors as byte spans. Nothing is
// copied.
//
//   "GGUF" | u32 version | u64 tensors | u64 keys                       all little endian; text is u64 length + bytes
//   keys:     text key | u32 kind | value                               an array is u32 kind | u64 count | values
//   tensors:  text name | u32 dims | u64 dim, innermost first | u32 type | u64 offset
//   padding to general.alignment (default 32) | data, each tensor padded to it too
//
// As in llama.cpp, the tensors must be back to back in the order of their descriptions, with no bytes after the last.
// So every span is inside the file, and no byte is used twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/stored_tensor.h"

namespace qkv {

class MappedFile;

enum class GgufKind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
const char* name_of(GgufKind kind);

class Gguf {
 public:
  struct Field {
    std::string_view key;
    GgufKind kind;
    std::span<const std::byte> value;  // as in the file, validated
  };

  // Maps the file, and with the first part of a split model (NAME-00001-of-00003.gguf) the others; entries and fields
  // live as long as this object or a copy of it.
  static Gguf open(const std::filesystem::path& path);
  // Parses memory that the caller keeps alive; the name is for error texts.
  static Gguf parse(std::span<const std::byte> file, std::string name);

  const std::string& name() const { return name_; }
  uint64_t alignment() const { return alignment_; }

  const std::vector<StoredTensor>& entries() const { return entries_; }  // in the order of the file
  const StoredTensor* find(std::string_view name) const;                 // nullptr if absent
  const StoredTensor& at(std::string_view name) const;                   // an Error with the nearest names if absent
  // Drops the pages of an entry that was copied; its bytes stay readable.
  void release(const StoredTensor& entry) const;

  const std::vector<Field>& fields() const { return fields_; }  // in the order of the file
  bool has(std::string_view key) const { return find_field(key) != nullptr; }
  // An Error if the key is absent or of another kind. integer() takes any width, number() f32 and f64.
  std::string_view text(std::string_view key) const;
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool flag(std::string_view key) const;
  std::vector<std::string_view> texts(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;
  std::string bytes(std::string_view key) const;          // integers of any width that are bytes
  std::vector<float> floats(std::string_view key) const;  // f32 only
  bool is_array(std::string_view key) const { return field(key).kind == GgufKind::array; }

 private:
  static Gguf open_one(const std::filesystem::path& path);
  const Field* find_field(std::string_view key) const;
  const Field& field(std::string_view key) const;

  std::string name_;
  uint64_t alignment_ = 32;
  std::vector<Field> fields_;
  std::vector<StoredTensor> entries_;
  std::vector<uint32_t> fields_by_key_, entries_by_name_;  // indices, sorted by key and by name
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

}  // namespace qkv
