// Writes NumPy's .npz: an uncompressed zip of .npy arrays.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace qkv {

// Atomic: the file exists, complete, after commit().
class NpzWriter {
 public:
  explicit NpzWriter(const std::filesystem::path& path);

  void add(const std::string& name, std::span<const float> numbers, const std::vector<int64_t>& shape);
  void add(const std::string& name, std::span<const int32_t> numbers, const std::vector<int64_t>& shape);
  void add(const std::string& name, std::span<const std::string> utf8);  // a vector of texts
  void commit();

 private:
  struct Entry {
    std::string name;
    uint32_t crc, bytes, at;
  };
  void add_array(const std::string& name, const std::string& type, std::span<const std::byte> data,
                 const std::vector<int64_t>& shape);

  AtomicFile file_;
  std::string path_;
  std::vector<Entry> entries_;
};

}  // namespace qkv
