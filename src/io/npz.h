// NumPy's .npz: a zip of .npy arrays, not compressed, that numpy.load opens.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace qkv {

// The file appears whole at commit() or not at all.
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
