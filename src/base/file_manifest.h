// manifest.json of a folder: size and SHA-256 of every other file below it, so that a changed or lost file is noticed.
#pragma once

#include <filesystem>

#include "base/error.h"
#include "base/json.h"

namespace qkv {

inline constexpr const char* kManifest = "manifest.json";

void write_manifest(const std::filesystem::path& folder);  // when all files are written

// The manifest: path inside the folder -> {"bytes", "sha256"}. An Error with the hint if it is not as it was written.
Json read_manifest(const std::filesystem::path& folder, const Hint& hint);

// An Error with both sizes and sums unless every file in the manifest is as it was written. Progress goes to stderr.
void check_files(const std::filesystem::path& folder, const Json& manifest, const Hint& hint);

// Files below the folder that the manifest does not name; hidden ones (of a file manager, say) are left out.
std::vector<std::string> unknown_files(const std::filesystem::path& folder, const Json& manifest);

}  // namespace qkv
