// Small helpers of the container tests.
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "io/stored_tensor.h"

namespace qkv::test {

inline std::string contents(const std::filesystem::path& path) {
  return read_file(path, size_t{1} << 30);
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
std::vector<T> numbers_of(std::span<const std::byte> bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

inline OutgoingTensor outgoing_text(std::string name, std::string dtype, std::vector<int64_t> shape,
                                    std::string bytes) {
  return {std::move(name), std::move(dtype), std::move(shape),
          [bytes = std::move(bytes)](ByteSink sink) { sink(std::as_bytes(std::span(bytes))); }};
}

template <class Container>
std::vector<OutgoingTensor> all_of(const Container& container) {
  std::vector<OutgoingTensor> out;
  for (const StoredTensor& entry : container.entries()) out.push_back(outgoing(entry));
  return out;
}

}  // namespace qkv::test
