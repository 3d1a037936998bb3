#include "io/safetensors_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_members.h"
#include "base/path.h"
#include "base/printable.h"
#include "io/stored_type.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr size_t kLargestIndex = 100'000'000, kLargestMetadata = 1'000'000;
constexpr const char* kMixed = "the folder mixes two models or was not fetched whole; fetch it again";

// Which tensor is in which shard. Each shard's name is kept once: a model has few, and 100,000s of tensors.
struct WeightMap {
  std::vector<std::string> shards;                        // sorted
  std::vector<std::pair<std::string, uint32_t>> tensors;  // name and shard, sorted by name

  const std::string* shard_of(std::string_view tensor) const {  // nullptr if absent
    const auto at =
        std::ranges::lower_bound(tensors, tensor, {}, [](const auto& t) -> std::string_view { return t.first; });
    return at != tensors.end() && at->first == tensor ? &shards[at->second] : nullptr;
  }
};

bool is_shard_name(std::string_view name) {
  constexpr std::string_view kEnd = ".safetensors";
  constexpr size_t kLongest = 255;  // bytes of a file name
  const bool plain = name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
  return plain && name.size() <= kLongest && name.size() > kEnd.size() && name.ends_with(kEnd) &&
         !name.starts_with('.');
}

std::vector<Safetensors> open_shards(const fs::path& folder, const WeightMap& map, const std::string& index) {
  std::vector<Safetensors> out;
  for (const std::string& name : map.shards) {
    QKV_CHECK(is_there(folder / name), index, ": names the shard ", printable(name), " but the folder does not hold it",
              Hint("fetch the missing file"));
    out.push_back(Safetensors::open(folder / name));
  }
  return out;
}

// Every tensor of the index in the shard it names, and no tensor in a shard that the index does not put there.
void check_agreement(const std::vector<Safetensors>& shards, const WeightMap& map, const std::string& index) {
  size_t found = 0;
  for (const Safetensors& shard : shards) {
    const std::string file = fs::path(shard.name()).filename().string();
    for (const StoredTensor& entry : shard.entries()) {
      const std::string* const place = map.shard_of(entry.name);
      QKV_CHECK(place != nullptr, index, ": does not name tensor ", printable(entry.name), ", which the shard ",
                printable(file), " holds", Hint(kMixed));
      QKV_CHECK(*place == file, index, ": puts tensor ", printable(entry.name), " in ", printable(*place),
                " but the shard ", printable(file), " holds it", Hint(kMixed));
      ++found;
    }
  }
  if (found == map.tensors.size()) return;
  for (const auto& [tensor, which] : map.tensors) {
    const Safetensors& shard = shards[which];
    QKV_CHECK(shard.find(tensor) != nullptr, index, ": puts tensor ", printable(tensor), " in ",
              printable(map.shards[which]), ", which does not hold it among its ", shard.entries().size(),
              Hint(kMixed));
  }
}

WeightMap parse_shard_index(std::string_view text, const std::string& name) {
  WeightMap out;
  std::map<std::string, uint32_t> numbers;  // of the shards, in the order they are named
  bool has_map = false;
  const auto take_place = [&](const std::string& tensor, const Json& shard) {
    QKV_CHECK(shard.is_string(), name, ": weight_map gives tensor ", printable(tensor),
              " a file name that is no text but of type ", shard.type_name(), Hint(kMixed));
    const auto& file = shard.get_ref<const std::string&>();
    QKV_CHECK(is_shard_name(file), name, ": weight_map puts tensor ", printable(tensor), " in ", printable(file),
              ", which is not the plain name of a .safetensors file",
              Hint("shards lie beside the index; a path that leads elsewhere is refused"));
    const auto [at, is_new] = numbers.emplace(file, static_cast<uint32_t>(numbers.size()));
    out.tensors.emplace_back(tensor, at->second);
  };
  scan_json_members(text, name, [&](const std::string& key, JsonText value) {
    if (key != "weight_map") return (void)parse_json(value, name + ": " + printable(key), {.bytes = kLargestMetadata});
    has_map = true;
    out.tensors.reserve(std::min(value.items(), JsonMemberLimits{}.members));
    parse_json_members(value, name + ": weight_map", take_place);
  });
  QKV_CHECK(has_map, name, ": has no weight_map", Hint("it says which tensor is in which shard"));
  QKV_CHECK(!out.tensors.empty(), name, ": weight_map is empty", Hint(kMixed));
  std::vector<uint32_t> sorted(numbers.size());
  for (const auto& [shard, number] : numbers) {
    sorted[number] = static_cast<uint32_t>(out.shards.size());
    out.shards.push_back(shard);
  }
  for (auto& [tensor, shard] : out.tensors) shard = sorted[shard];
  std::ranges::sort(out.tensors);
  return out;
}

// Greedy, in the order given: a shard ends before the tensor that would make it too large.
std::vector<std::span<const OutgoingTensor>> cut(std::span<const OutgoingTensor> tensors,
                                                 std::span<const uint64_t> sizes, uint64_t largest) {
  std::vector<std::span<const OutgoingTensor>> out;
  size_t first = 0;
  uint64_t held = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i > first && (sizes[i] > largest || held > largest - sizes[i])) {
      out.push_back(tensors.subspan(first, i - first));
      first = i;
      held = 0;
    }
    held += sizes[i];
  }
  out.push_back(tensors.subspan(first));
  return out;
}

}  // namespace

SafetensorsFolder SafetensorsFolder::open(const fs::path& path) {
  SafetensorsFolder out;
  out.name_ = path.string();
  const fs::path index = path / kIndex;
  if (!is_folder(path)) {
    out.files_.push_back(Safetensors::open(path));
  } else if (is_there(path / kSingle)) {
    out.files_.push_back(Safetensors::open(path / kSingle));
  } else {
    QKV_CHECK(is_there(index), out.name_, ": holds neither ", kSingle, " nor ", kIndex,
              Hint("this is no checkpoint of transformers, or its weights are in an older format: save it again as "
                   "safetensors"));
    const WeightMap map = parse_shard_index(read_file(index, kLargestIndex), index.string());
    out.files_ = open_shards(path, map, index.string());
    check_agreement(out.files_, map, index.string());
  }
  for (Safetensors& file : out.files_) {
    std::vector<StoredTensor> entries = file.take_entries();
    if (out.entries_.empty()) {
      out.entries_ = std::move(entries);
    } else {
      out.entries_.insert(out.entries_.end(), std::move_iterator(entries.begin()), std::move_iterator(entries.end()));
    }
  }
  std::sort(out.entries_.begin(), out.entries_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  return out;
}

const StoredTensor* SafetensorsFolder::find(std::string_view name) const {
  return find_by_name(entries_, name);
}

const StoredTensor& SafetensorsFolder::at(std::string_view name) const {
  const StoredTensor* const found = find(name);
  if (found == nullptr) fail_no_such_tensor(name_, name, entries_);
  return *found;
}

void SafetensorsFolder::release(const StoredTensor& entry) const {
  for (const Safetensors& file : files_) file.release(entry);  // each ignores entries of the others
}

void write_safetensors_folder(const fs::path& folder, std::span<const OutgoingTensor> tensors,
                              const std::map<std::string, std::string>& metadata, ShardOptions options) {
  for (const char* name : {kSingle, kIndex}) {
    QKV_CHECK(!is_there(folder / name), folder.string(), ": already holds ", name, Hint("write to a new folder"));
  }
  const std::string what = folder.string() + ": the size of all tensors";
  CheckedU64 total(0, what);
  std::vector<uint64_t> sizes;
  std::set<std::string_view> names;
  for (const OutgoingTensor& tensor : tensors) {
    QKV_CHECK(names.insert(tensor.name).second, folder.string(), ": tensor ", printable(tensor.name),
              " is to be written twice", Hint("write tied weights once"));
    sizes.push_back(safetensors_bytes(tensor, folder.string()));
    total = total + sizes.back();
  }
  const auto shards = cut(tensors, sizes, options.largest_shard);
  if (shards.size() == 1) return write_safetensors(folder / kSingle, tensors, metadata, options.alignment);

  std::map<std::string, std::string> map;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    for (const OutgoingTensor& tensor : shards[i]) map.emplace(tensor.name, file);
    write_safetensors(folder / file, shards[i], metadata, options.alignment);
  }
  // The index last: without it there is no model, so a failure leaves none.
  const Json index{{"metadata", {{"total_size", total.value()}}}, {"weight_map", map}};
  const std::string text = index.dump(2) + "\n";
  write_file_atomic(folder / kIndex, std::as_bytes(std::span(text)));
}

}  // namespace qkv
