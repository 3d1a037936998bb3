#include "base/file_manifest.h"

#include <algorithm>

#include "base/file.h"
#include "base/function_ref.h"
#include "base/path.h"
#include "base/printable.h"
#include "base/progress.h"
#include "base/sha256.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestManifestFile = 16 << 20;

Json fingerprint_of(const fs::path& file, FunctionRef<void(size_t bytes)> on_read) {
  constexpr size_t kPiece = size_t{1} << 22;
  const MappedFile mapped(file);
  Sha256 sum;
  for (auto rest = mapped.bytes(); !rest.empty(); rest = rest.subspan(std::min(kPiece, rest.size()))) {
    const auto piece = rest.first(std::min(kPiece, rest.size()));
    sum.update(piece);
    on_read(piece.size());
  }
  return {{"bytes", mapped.bytes().size()}, {"sha256", sum.hex()}};
}

// Files below a folder but its manifest, by their paths inside it.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    if (!entry.is_directory() && name != kManifest) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool stays_inside(const fs::path& name) {
  return name.is_relative() &&
         std::none_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; });
}

}  // namespace

void write_manifest(const fs::path& folder) {
  Json files = Json::object();
  for (const std::string& name : files_below(folder)) files[name] = fingerprint_of(folder / name, [](size_t) {});
  const std::string text = Json{{"files", files}}.dump(2) + "\n";
  write_file_atomic(folder / kManifest, std::as_bytes(std::span(text)));
}

Json read_manifest(const fs::path& folder, const Hint& hint) {
  const fs::path file = folder / kManifest;
  const std::string text = read_file(file, kLargestManifestFile);
  Json manifest;
  try {
    manifest = parse_json(text, file.string());
  } catch (const Error& e) {
    QKV_FAIL(e.message(), hint);
  }
  const bool valid = manifest.is_object() && manifest.contains("files") && manifest["files"].is_object();
  QKV_CHECK(valid && manifest.dump(2) + "\n" == text, file.string(), ": is not as it was written", hint);
  for (const auto& [name, written] : manifest["files"].items()) {
    QKV_CHECK(stays_inside(name), file.string(), ": names ", printable(name), ", which is elsewhere", hint);
    const bool sized = written.is_object() && written.contains("bytes") && written["bytes"].is_number_unsigned();
    QKV_CHECK(sized, file.string(), ": ", printable(name), " has no size", hint);
  }
  return std::move(manifest["files"]);
}

void check_files(const fs::path& folder, const Json& manifest, const Hint& hint) {
  int64_t total = 0, done = 0;
  for (const Json& written : manifest) total += written["bytes"].get<int64_t>();
  Progress progress("checking " + folder.string() + ", bytes", total);
  for (const auto& [name, written] : manifest.items()) {
    const fs::path file = folder / name;
    QKV_CHECK(is_there(file), file.string(), " is missing: it was written as ", written.dump(), hint);
    const Json now = fingerprint_of(file, [&](size_t bytes) { progress.update(done += static_cast<int64_t>(bytes)); });
    QKV_CHECK(now == written, file.string(), " is ", now.dump(), " but was written as ", written.dump(), hint);
  }
  progress.finish();
}

std::vector<std::string> unknown_files(const fs::path& folder, const Json& manifest) {
  std::vector<std::string> names = files_below(folder);
  std::erase_if(names, [&](const std::string& name) {
    return manifest.contains(name) || fs::path(name).filename().string().starts_with('.');
  });
  return names;
}

}  // namespace qkv
