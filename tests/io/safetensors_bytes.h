// A safetensors writer for tests that checks nothing, for valid and broken files in memory.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv::test {

struct Described {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t begin;
  uint64_t end;
};

// "name":{"dtype":...,"shape":[...],"data_offsets":[...]}
inline std::string described(const Described& d) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", d.name, d.dtype,
                     fmt::join(d.shape, ","), d.begin, d.end);
}

// A header of tensors in the order given.
inline std::string header_of(const std::vector<Described>& tensors) {
  std::vector<std::string> parts;
  for (const Described& d : tensors) parts.push_back(described(d));
  return fmt::format("{{{}}}", fmt::join(parts, ","));
}

inline std::string length_field(uint64_t length) {
  std::string out;
  for (unsigned i = 0; i < 8; ++i) out += static_cast<char>(length >> (8 * i) & 0xFFu);
  return out;
}

// The length field, the header as it is, the data.
inline std::string file_of(const std::string& header, const std::string& data) {
  return length_field(header.size()) + header + data;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace qkv::test
