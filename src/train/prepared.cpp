#include "train/prepared.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_manifest.h"
#include "base/path.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

Hint prepared_hint(const fs::path& folder) {
  return Hint("put the file back; or, to begin again at step 0, remove ", folder.string(),
              " and resume with --from-scratch");
}

// Keys that say what is prepared.
constexpr const char* kPreparedKeys[] = {"objective", "model", "tokenizer", "data", "seed"};

// "steps: 30, was 20" for each value that differs; objects of the recipe are looked into.
void add_changes(std::vector<std::string>& changes, const std::string& key, const Json& now, const Json& before) {
  if (now == before) return;
  if (!now.is_object() || !before.is_object()) {
    changes.push_back(fmt::format("{}: {}, was {}", key, now.dump().substr(0, 200), before.dump().substr(0, 200)));
    return;
  }
  Json keys = now;
  keys.update(before);
  for (const auto& [name, value] : keys.items()) {
    const Json none, &left = now.contains(name) ? now[name] : none,
                     &right = before.contains(name) ? before[name] : none;
    if (left != right) {
      changes.push_back(
          fmt::format("{}.{}: {}, was {}", key, name, left.dump().substr(0, 200), right.dump().substr(0, 200)));
    }
  }
}

}  // namespace

fs::path missing_of_prepared(const fs::path& folder) {
  for (const fs::path& needed : {folder, folder / kManifest}) {
    if (!is_there(needed)) return needed;
  }
  const Json manifest = read_manifest(folder, prepared_hint(folder));
  for (const auto& [name, written] : manifest.items()) {
    if (!is_there(folder / name)) return folder / name;
  }
  return {};
}

std::vector<std::string> check_prepared(const fs::path& folder, const Recipe& recipe) {
  const Hint hint = prepared_hint(folder);
  const Json manifest = read_manifest(folder, hint);
  const std::vector<std::string> unknown = unknown_files(folder, manifest);
  QKV_CHECK(unknown.empty(), (folder / unknown.front()).string(), " was added after the run was prepared",
            Hint("move it away: it could change what the run is trained on"));
  check_files(folder, manifest, hint);
  const fs::path file = folder / kPreparedRecipe;
  const Json before = parse_json(read_file(file, 16 << 20), file.string()), now = to_json(recipe);
  std::vector<std::string> changes;
  for (const char* key : kPreparedKeys) add_changes(changes, key, now[key], before[key]);
  QKV_CHECK(changes.empty(), "the run's recipe has ", changes.front(), " when the run was prepared",
            Hint("put it back as in ", file.string(), "; to train with it, start another run"));
  for (const auto& [key, value] : now.items()) {
    if (key != "watch") add_changes(changes, key, value, before.contains(key) ? before[key] : Json());
  }
  return changes;
}

}  // namespace qkv
