#include "data/dataset.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/path.h"
#include "base/sha256.h"

namespace qkv {
namespace {

constexpr size_t kLargestManifest = size_t{64} << 20;
constexpr const char* kDamaged = "the file is damaged or belongs to another dataset; pack the data again";

static_assert(std::endian::native == std::endian::little, "shards are little endian and mapped as they are");

template <class Id>
int64_t widen(const std::byte* from, std::span<int32_t> ids) {
  int64_t largest = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    Id id = 0;
    std::memcpy(&id, from + i * sizeof(Id), sizeof(Id));
    largest = std::max<int64_t>(largest, id);
    ids[i] = static_cast<int32_t>(id);
  }
  return largest;
}

}  // namespace

std::span<const uint32_t> PackedSplit::Shard::starts() const {
  return {reinterpret_cast<const uint32_t*>(index.bytes().data()), index.bytes().size() / sizeof(uint32_t)};
}

PackedSplit::PackedSplit(const std::filesystem::path& folder, const DatasetManifest& manifest, Split split)
    : info_(manifest.of(split)),
      parts_(manifest.parts()),
      chats_(manifest.chats),
      vocabulary_(manifest.vocabulary),
      token_bytes_(static_cast<size_t>(manifest.token_bytes)) {
  uint64_t tokens = 0, entries = 0;
  for (const ShardInfo& info : info_.shards) {
    shards_.push_back({.tokens = MappedFile(folder / (info.file + ".tokens")),
                       .index = MappedFile(folder / (info.file + ".index")),
                       .first_token = tokens,
                       .first_entry = entries});
    check(shards_.back(), info);
    tokens += info.tokens;
    entries += info.documents * parts_;
  }
}

void PackedSplit::check(const Shard& shard, const ShardInfo& info) const {
  const uint64_t token_bytes = (CheckedU64(info.tokens, "size of a shard") * token_bytes_).value();
  const uint64_t index_bytes =
      ((CheckedU64(info.documents, "size of an index") * parts_ + 1U) * sizeof(uint32_t)).value();
  QKV_CHECK(shard.tokens.bytes().size() == token_bytes, shard.tokens.name(), " has ", shard.tokens.bytes().size(),
            " bytes but the manifest says ", info.tokens, " tokens, ", token_bytes, " bytes", Hint(kDamaged));
  QKV_CHECK(shard.index.bytes().size() == index_bytes, shard.index.name(), " has ", shard.index.bytes().size(),
            " bytes but the manifest says ", info.documents, " documents, ", index_bytes, " bytes", Hint(kDamaged));
  const std::span<const uint32_t> starts = shard.starts();
  QKV_CHECK(starts.front() == 0 && starts.back() == info.tokens, shard.index.name(), " runs from ", starts.front(),
            " to ", starts.back(), " but must run from 0 to ", info.tokens, Hint(kDamaged));
  const auto stays = std::adjacent_find(starts.begin(), starts.end(), [](uint32_t a, uint32_t b) { return a >= b; });
  QKV_CHECK(stays == starts.end(), shard.index.name(), ": entry ", stays - starts.begin(), " has no tokens",
            Hint(kDamaged));
}

const PackedSplit::Shard& PackedSplit::shard_of(uint64_t number, uint64_t Shard::*first) const {
  const auto after = std::upper_bound(shards_.begin(), shards_.end(), number,
                                      [&](uint64_t n, const Shard& shard) { return n < shard.*first; });
  return *std::prev(after);
}

uint64_t PackedSplit::start(uint64_t entry) const {
  QKV_ASSERT(entry <= entries(), "entry ", entry, " of ", entries());
  if (entry == entries()) return tokens();
  const Shard& shard = shard_of(entry, &Shard::first_entry);
  return shard.first_token + shard.starts()[entry - shard.first_entry];
}

uint64_t PackedSplit::entry_at(uint64_t token) const {
  QKV_ASSERT(token < tokens(), "token ", token, " of ", tokens());
  const Shard& shard = shard_of(token, &Shard::first_token);
  const std::span<const uint32_t> starts = shard.starts();
  const auto after = std::upper_bound(starts.begin(), starts.end(), token - shard.first_token);
  return shard.first_entry + static_cast<uint64_t>(after - starts.begin()) - 1;
}

void PackedSplit::copy(uint64_t begin, std::span<int32_t> ids) const {
  QKV_ASSERT(begin <= tokens() && ids.size() <= tokens() - begin, ids.size(), " tokens from ", begin, " of ", tokens());
  while (!ids.empty()) {
    const Shard& shard = shard_of(begin, &Shard::first_token);
    const std::span<const std::byte> rest = shard.tokens.bytes().subspan((begin - shard.first_token) * token_bytes_);
    const auto part = ids.first(std::min(ids.size(), rest.size() / token_bytes_));
    const int64_t largest = token_bytes_ == 2 ? widen<uint16_t>(rest.data(), part) : widen<uint32_t>(rest.data(), part);
    QKV_CHECK(largest < vocabulary_, shard.tokens.name(), " holds the token ", largest, " but the vocabulary has ",
              vocabulary_, Hint(kDamaged));
    ids = ids.subspan(part.size());
    begin += part.size();
  }
}

std::vector<std::string> PackedSplit::damaged_files(FunctionRef<void(uint64_t bytes)> on_progress) const {
  constexpr size_t kPiece = size_t{1} << 22;
  std::vector<std::string> damaged;
  uint64_t done = 0;
  const auto look = [&](const MappedFile& file, const std::string& sha256) {
    Sha256 sum;
    for (auto rest = file.bytes(); !rest.empty(); rest = rest.subspan(std::min(kPiece, rest.size()))) {
      const auto piece = rest.first(std::min(kPiece, rest.size()));
      sum.update(piece);
      on_progress(done += piece.size());
    }
    if (sum.hex() != sha256) damaged.push_back(file.name());
  };
  for (size_t i = 0; i < shards_.size(); ++i) {
    look(shards_[i].tokens, info_.shards[i].tokens_sha256);
    look(shards_[i].index, info_.shards[i].index_sha256);
  }
  return damaged;
}

PackedDataset::PackedDataset(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "manifest.json";
  QKV_CHECK(is_there(path), folder.string(), " holds no manifest.json", Hint("name a folder made by  qkv data pack"));
  manifest_ = parse_manifest(read_file(path, kLargestManifest), path.string());
  for (const Split split : kSplits) splits_.emplace_back(folder, manifest_, split);
}

}  // namespace qkv
