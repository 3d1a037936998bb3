// TensorBoard event files: protocol-buffer records, each with two checksums.
//
//   record      u64 length | u32 crc of the length | Event | u32 crc of the Event      little endian, masked CRC-32C
//
//   Event       double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog log = 7
//   Summary     repeated Value value = 1
//   Value       string tag = 1; float simple_value = 2
//   SessionLog  SessionStatus status = 1 (START = 1)
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/append_file.h"

namespace qkv {

class EventFile {
 public:
  explicit EventFile(const std::filesystem::path& folder);  // a new file, named by the time

  void scalars(int64_t step, const std::map<std::string, double>& values);
  void restarted(int64_t step);  // hides what earlier files have for this step and later ones
  void sync() const { file_.sync(); }

 private:
  void write(int64_t step, std::string_view what);

  AppendFile file_;
};

}  // namespace qkv
