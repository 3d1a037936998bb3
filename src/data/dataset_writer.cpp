#include "data/dataset_writer.h"

#include "base/checked.h"
#include "base/sha256.h"

namespace qkv {

// A file and its SHA-256.
class DatasetWriter::SummedFile {
 public:
  explicit SummedFile(const std::filesystem::path& path) : file_(path) {}

  template <class T>
  void write(std::span<const T> values) {
    file_.write(std::as_bytes(values));
    sum_.update(std::as_bytes(values));
  }
  uint64_t size() const { return file_.size(); }
  std::string finish() {
    file_.commit();
    return sum_.hex();
  }

 private:
  AtomicFile file_;
  Sha256 sum_;
};

class DatasetWriter::SplitWriter {
 public:
  SplitWriter(std::filesystem::path folder, Split split, const DatasetManifest& manifest, uint64_t shard_bytes)
      : folder_(std::move(folder)), split_(split), token_bytes_(manifest.token_bytes), shard_bytes_(shard_bytes) {}

  // Entries are whole documents, or both sides of a pair.
  void add(std::span<const std::span<const int32_t>> entries, uint64_t text_bytes) {
    if (!tokens_) open();
    for (const std::span<const int32_t> ids : entries) {
      write_tokens(ids);
      info_.shards.back().tokens += ids.size();
      const auto end = narrow<uint32_t>(info_.shards.back().tokens, "tokens of a shard");
      index_->write(std::span(&end, 1));
    }
    ++info_.shards.back().documents;
    info_.text_bytes += text_bytes;
    if (tokens_->size() >= shard_bytes_) close();
  }

  SplitInfo finish() {
    if (tokens_) close();
    return std::move(info_);
  }

 private:
  void open() {
    info_.shards.push_back({.file = shard_name(split_, info_.shards.size())});
    tokens_ = std::make_unique<SummedFile>(folder_ / (info_.shards.back().file + ".tokens"));
    index_ = std::make_unique<SummedFile>(folder_ / (info_.shards.back().file + ".index"));
    const uint32_t begin = 0;
    index_->write(std::span(&begin, 1));
  }

  void close() {
    ShardInfo& shard = info_.shards.back();
    shard.tokens_sha256 = tokens_->finish();
    shard.index_sha256 = index_->finish();
    tokens_.reset();
    index_.reset();
    info_.tokens += shard.tokens;
    info_.documents += shard.documents;
  }

  void write_tokens(std::span<const int32_t> ids) {
    if (token_bytes_ == 4) return tokens_->write(ids);
    narrow_.assign(ids.begin(), ids.end());
    tokens_->write(std::span<const uint16_t>(narrow_));
  }

  std::filesystem::path folder_;
  Split split_;
  int token_bytes_;
  uint64_t shard_bytes_;
  std::unique_ptr<SummedFile> tokens_, index_;  // of the open shard
  std::vector<uint16_t> narrow_;
  SplitInfo info_;
};

DatasetWriter::DatasetWriter(const std::filesystem::path& out, DatasetManifest manifest, uint64_t shard_bytes)
    : folder_(out), manifest_(std::move(manifest)) {
  manifest_.token_bytes = token_bytes_for(manifest_.vocabulary);
  for (const Split split : kSplits) {
    splits_[static_cast<size_t>(split)] = std::make_unique<SplitWriter>(folder_.path(), split, manifest_, shard_bytes);
  }
}
DatasetWriter::~DatasetWriter() = default;

void DatasetWriter::add(Split split, std::span<const std::span<const int32_t>> entries, uint64_t text_bytes) {
  splits_[static_cast<size_t>(split)]->add(entries, text_bytes);
}

const DatasetManifest& DatasetWriter::finish() {
  for (const Split split : kSplits) manifest_.of(split) = splits_[static_cast<size_t>(split)]->finish();
  return manifest_;
}

void DatasetWriter::commit() {
  const std::string text = to_json_text(manifest_);
  write_file_atomic(folder_.path() / "manifest.json", std::as_bytes(std::span(text)));
  folder_.commit();
}

}  // namespace qkv
