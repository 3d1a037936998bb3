// A GGUF writer for tests that checks nothing, for valid and broken files in memory.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::test {

inline std::string little(uint64_t value, unsigned bytes) {
  std::string out;
  for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFFu);
  return out;
}

inline std::string u32(uint64_t value) {
  return little(value, 4);
}

inline std::string u64(uint64_t value) {
  return little(value, 8);
}

inline std::string text(std::string_view value) {
  return u64(value.size()) + std::string(value);
}

// Kinds: 0 u8, 1 i8, 2 u16, 3 i16, 4 u32, 5 i32, 6 f32, 7 bool, 8 text, 9 array, 10 u64, 11 i64, 12 f64.
inline std::string key(std::string_view name, uint32_t kind, std::string_view value) {
  return text(name) + u32(kind) + std::string(value);
}

inline std::string array(uint32_t kind, uint64_t count, std::string_view values) {
  return u32(kind) + u64(count) + std::string(values);
}

// Dimensions as in the file: innermost first. Types: 0 F32, 1 F16, 8 Q8_0, 12 Q4_K, 24 I8.
struct GgufTensor {
  std::string name = "x";
  std::vector<uint64_t> dims = {1};
  uint32_t type = 24;
  uint64_t offset = 0;
};

inline std::string tensor_info(const GgufTensor& t) {
  std::string out = text(t.name) + u32(t.dims.size());
  for (const uint64_t dim : t.dims) out += u64(dim);
  return out + u32(t.type) + u64(t.offset);
}

inline std::string gguf_head(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
  return "GGUF" + u32(version) + u64(tensors) + u64(keys);
}

inline std::string padded(std::string bytes, size_t alignment = 32) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  return bytes;
}

inline std::string gguf_of(const std::vector<std::string>& keys, const std::vector<GgufTensor>& tensors,
                           const std::string& data) {
  std::string out = gguf_head(tensors.size(), keys.size());
  for (const std::string& k : keys) out += k;
  for (const GgufTensor& t : tensors) out += tensor_info(t);
  return (tensors.empty() && data.empty() ? out : padded(out)) + data;
}

}  // namespace qkv::test
