// Where an output goes. Links are followed: the link stays, and what it leads to is written. Devices and pipes are
// written as they are, everything else whole or not at all (base/file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace qkv {

struct OutputPlace {
  enum class Kind : uint8_t { absent, file, folder, stream };  // stream: a device or a pipe

  std::string name;            // for messages: the path, and where it leads to if it is a link
  std::filesystem::path path;  // the end of all links
  Kind kind = Kind::absent;
  int descriptor = -1;  // of a stream that this process has open already, as /dev/stdout

  std::string folder() const { return path.has_parent_path() ? path.parent_path().string() : "."; }
};

// Links that lead in a circle, or through what is no folder, are an Error.
OutputPlace output_place(const std::filesystem::path& path);

// For a folder to be made: whatever is there already is an Error.
OutputPlace new_folder_place(const std::filesystem::path& path);

// Before the work whose result goes there: an Error if it could not be written as a file, or made as a folder.
enum class Existing : uint8_t { replaced, refused };  // an existing file
void check_output_file(const std::filesystem::path& path, Existing existing = Existing::replaced);
void check_output_folder(const std::filesystem::path& path);

}  // namespace qkv
