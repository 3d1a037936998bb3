// Packing with bytes as tokens, so that the output is readable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/temp_folder.h"
#include "base/thread_pool.h"
#include "data/dataset.h"
#include "data/dataset_pack.h"

namespace qkv {

inline constexpr int32_t kByteEnd = 256;

inline Packed pack_bytes(const PackOptions& options, int64_t vocabulary = 257, int threads = 1) {
  ThreadPool pool(threads);
  const auto encode = [](std::string_view text, std::vector<int32_t>& ids) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  };
  return pack_dataset(
      options, {.encode = encode, .vocabulary = vocabulary, .fingerprint = "test bytes", .end_token = kByteEnd}, pool);
}

// Ids back to text; the end of a document is '|'.
inline std::string text_of(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += id == kByteEnd ? '|' : static_cast<char>(id);
  return text;
}

inline std::string row_of(const PackedSplit& split) {
  std::vector<int32_t> ids(split.tokens());
  split.copy(0, ids);
  return text_of(ids);
}

}  // namespace qkv
