// Writes GGUF version 3 files that llama.cpp reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "io/gguf.h"

namespace qkv {

// Keys and values in the order they are added; a duplicate key is an Error.
class GgufMetadata {
 public:
  void add_text(std::string_view key, std::string_view value);
  void add_u32(std::string_view key, uint32_t value);
  void add_i32(std::string_view key, int32_t value);
  void add_u64(std::string_view key, uint64_t value);
  void add_f32(std::string_view key, float value);
  void add_flag(std::string_view key, bool value);
  void add_texts(std::string_view key, std::span<const std::string> values);
  void add_u32s(std::string_view key, std::span<const uint32_t> values);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_bytes(std::string_view key, std::string_view bytes);  // an array of u8
  void add_f32s(std::string_view key, std::span<const float> values);
  void add(const Gguf::Field& field);  // copied from another file

  uint64_t count() const { return keys_.size(); }
  uint64_t alignment() const { return alignment_; }
  const std::string& bytes() const { return bytes_; }  // as in the file

 private:
  void start(std::string_view key, GgufKind kind);
  void start_array(std::string_view key, GgufKind kind, uint64_t count);

  std::string bytes_;
  std::set<std::string, std::less<>> keys_;
  uint64_t alignment_ = 32;  // what general.alignment says, once it is added
};

// Writes the tensors in the order given, a piece at a time. Atomic: the file is complete or absent.
void write_gguf(const std::filesystem::path& path, const GgufMetadata& metadata,
                std::span<const OutgoingTensor> tensors);

}  // namespace qkv
