#include "data/dataset_pack.h"

#include <algorithm>
#include <memory>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/progress.h"
#include "base/sha256.h"

namespace qkv {
namespace {

// Documents are read, encoded by the pool and written in batches of this size.
constexpr size_t kBatchBytes = size_t{8} << 20;
constexpr size_t kBatchDocuments = 4096;

// A file and its SHA-256.
class SummedFile {
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

class SplitWriter {
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

struct Encoded {
  Document document;
  std::vector<int32_t> ids, target_ids;
};

void encode(const PackTokenizer& tokenizer, std::string_view text, std::vector<int32_t>& ids) {
  ids.clear();
  tokenizer.encode(text, ids);
  if (ids.empty()) return;  // skipped: the tokenizer drops the whole text
  for (const int32_t id : ids) {
    QKV_CHECK(id >= 0 && id < tokenizer.vocabulary, "the tokenizer gave the id ", id, " but its vocabulary has ",
              tokenizer.vocabulary, Hint("the tokenizer's files do not belong together"));
  }
  if (tokenizer.begin_token) ids.insert(ids.begin(), *tokenizer.begin_token);
  if (tokenizer.end_token) ids.push_back(*tokenizer.end_token);
}

// Empty at the end of the input. Not reused: every element of a reused list would keep the capacity of the longest text
// it ever held.
std::vector<Encoded> read_batch(DocumentReader& reader) {
  std::vector<Encoded> batch;
  size_t bytes = 0;
  for (Document document; batch.size() < kBatchDocuments && bytes < kBatchBytes && reader.next(document);) {
    bytes += document.text.size() + document.target.size();
    batch.push_back({.document = std::move(document), .ids = {}, .target_ids = {}});
  }
  return batch;
}

void check_options(const PackOptions& options, const PackTokenizer& tokenizer) {
  QKV_CHECK(!options.files.empty(), "no files to pack", Hint("name some, or - for standard input"));
  QKV_CHECK(options.validation >= 0.0 && options.validation < 1.0, "the share for validation is ", options.validation,
            " but must lie in [0, 1)", Hint("0.01 is a habit; 0 keeps everything for training"));
  QKV_CHECK(tokenizer.vocabulary > 0 && tokenizer.vocabulary <= kLargestVocabulary, "the vocabulary has ",
            tokenizer.vocabulary, " entries but must have 1 to ", kLargestVocabulary, Hint("the tokenizer is damaged"));
  for (const auto& id : {tokenizer.begin_token, tokenizer.end_token}) {
    QKV_CHECK(!id || (*id >= 0 && *id < tokenizer.vocabulary), "the begin or end token is ", *id,
              " but the vocabulary has ", tokenizer.vocabulary, Hint("the tokenizer is damaged"));
  }
}

}  // namespace

Split split_of(std::string_view text, double validation, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  const double share = random_u32(fold({.seed = seed}), hash, 0) * 0x1p-32;
  return share < validation ? Split::validation : Split::train;
}

Packed pack_dataset(const PackOptions& options, const PackTokenizer& tokenizer, ThreadPool& pool) {
  check_options(options, tokenizer);
  DocumentReader reader(options.files, options.source);
  AtomicFolder folder(options.out);

  Packed packed;
  DatasetManifest& manifest = packed.manifest;
  manifest.pairs = options.source.pairs();
  manifest.vocabulary = tokenizer.vocabulary;
  manifest.token_bytes = token_bytes_for(tokenizer.vocabulary);
  manifest.tokenizer = tokenizer.fingerprint;
  manifest.begin_token = tokenizer.begin_token;
  manifest.end_token = tokenizer.end_token;
  std::vector<SplitWriter> writers;
  for (const Split split : kSplits) writers.emplace_back(folder.path(), split, manifest, options.shard_bytes);

  Progress progress("packing, bytes", static_cast<int64_t>(reader.total_bytes()));
  for (auto batch = read_batch(reader); !batch.empty(); batch = read_batch(reader)) {
    pool.run(std::ssize(batch), [&](int64_t i, int) {
      Encoded& one = batch[static_cast<size_t>(i)];
      encode(tokenizer, one.document.text, one.ids);
      if (manifest.pairs) encode(tokenizer, one.document.target, one.target_ids);
    });
    for (const Encoded& one : batch) {
      if (one.ids.empty() || (manifest.pairs && one.target_ids.empty())) {
        ++packed.skipped;
        continue;
      }
      const std::span<const int32_t> entries[] = {one.ids, one.target_ids};
      const Split split = split_of(one.document.text, options.validation, options.seed);
      writers[static_cast<size_t>(split)].add(std::span(entries).first(manifest.parts()),
                                              one.document.text.size() + one.document.target.size());
    }
    progress.update(static_cast<int64_t>(reader.bytes_read()));
  }
  progress.finish();
  packed.skipped += reader.skipped();
  for (const Split split : kSplits) manifest.of(split) = writers[static_cast<size_t>(split)].finish();
  QKV_CHECK(manifest.of(Split::train).documents > 0, "no documents to train on: ", packed.skipped, " left out, ",
            manifest.of(Split::validation).documents, " for validation",
            Hint("is the input empty? A few documents may all fall to validation: --split-validation 0"));

  const std::string text = to_json_text(manifest);
  write_file_atomic(folder.path() / "manifest.json", std::as_bytes(std::span(text)));
  folder.commit();
  return packed;
}

}  // namespace qkv
