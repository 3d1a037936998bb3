// Constants of the GGUF format, for reader and writer.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "io/gguf.h"

namespace qkv::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read and written without conversion");

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr uint32_t kVersion = 3, kOldestVersion = 2;
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr uint64_t kDefaultAlignment = 32, kLeastAlignment = 8, kMostAlignment = 4096;

inline constexpr uint64_t kLongestKey = 65535, kLongestName = 64;
inline constexpr uint32_t kMostDims = 4, kKindCount = 13;
inline constexpr uint64_t kMostKeys = 100'000, kMostTensors = 100'000;  // real files have a few thousand at most

uint64_t least_bytes(GgufKind kind);  // of a value; a text or an array may take more

inline std::string_view name_in(const Gguf::Field& field) {
  return field.key;
}
inline std::string_view name_in(const StoredTensor& entry) {
  return entry.name;
}

template <class T>
T load(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace qkv::gguf
