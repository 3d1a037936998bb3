#include "data/dataset_pack.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "base/progress.h"
#include "data/dataset_order.h"
#include "data/dataset_writer.h"

namespace qkv {
namespace {

// Documents are read, encoded by the pool and written in batches of this size.
constexpr size_t kBatchBytes = size_t{8} << 20;
constexpr size_t kBatchDocuments = 4096;

struct Encoded {
  Document document;
  std::vector<int32_t> ids, target_ids;
  double kept = 1;  // share of its tokens, where it is cut
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

// Brings a document within the limit, or says that it is to be left out. Counts both.
class Fitting {
 public:
  Fitting(const PackOptions& options, const PackTokenizer& tokenizer, Packed& packed)
      : options_(options), tokenizer_(tokenizer), packed_(packed) {}

  bool fit(Encoded& one) {
    const TokenLimit& limit = options_.limit;
    const uint64_t source = one.ids.size(), target = one.target_ids.size();
    if (fits(one)) return true;
    if (limit.cut) {
      if (limit.side > 0) cut(one, limit.side);
      if (!fits(one)) cut(one, limit.pair / 2 / kPairBucket * kPairBucket);
    }
    const bool kept = limit.cut && fits(one);
    one.kept = static_cast<double>(one.ids.size() + one.target_ids.size()) / static_cast<double>(source + target);
    if ((kept ? packed_.cut : packed_.too_long)++ == 0 && packed_.first_too_long.empty()) {
      packed_.first_too_long = place_of(options_.files[one.document.file], one.document.line) +
                               (one.target_ids.empty() ? fmt::format(" with {} tokens", source)
                                                       : fmt::format(" with {} and {} tokens", source, target));
    }
    return kept;
  }

 private:
  bool fits(const Encoded& one) const {
    const uint64_t source = one.ids.size(), target = one.target_ids.size();
    const TokenLimit& limit = options_.limit;
    if (limit.side > 0 && std::max(source, target) > limit.side) return false;
    return limit.pair == 0 || target == 0 || padded_pair_tokens(source, target) <= limit.pair;
  }
  void cut(Encoded& one, uint64_t most) const {
    for (auto* ids : {&one.ids, &one.target_ids}) {
      if (ids->size() <= most || most == 0) continue;
      ids->resize(most);
      if (tokenizer_.end_token) ids->back() = *tokenizer_.end_token;
    }
  }

  const PackOptions& options_;
  const PackTokenizer& tokenizer_;
  Packed& packed_;
};

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

std::string place_of(const std::string& file, uint64_t line) {
  return fmt::format("{}, line {}", file == "-" ? "standard input" : file, line);
}

Split split_of(const PackOptions& options, std::string_view text, double before) {
  if (!options.tail) return split_of(text, options.validation, options.seed);
  return options.validation > 0 && before >= 1 - options.validation ? Split::validation : Split::train;
}

void check_any_to_train(const PackOptions& options, const Packed& packed) {
  const auto hint = [&] {
    if (packed.too_long > 0) return std::string("is the limit meant? The first is ") + packed.first_too_long;
    return std::string("is the input empty? A few documents may all be held out") +
           (options.validation_option == nullptr ? ": hold out a smaller share"
                                                 : std::string(": ") + options.validation_option + " 0");
  };
  QKV_CHECK(packed.manifest.of(Split::train).documents > 0, "no ", name_of_documents(packed.manifest),
            " to train on: ", packed.skipped, " left out, ", packed.too_long, " too long, ",
            packed.manifest.of(Split::validation).documents, " for validation", Hint(hint()));
}

Packed pack_dataset(const PackOptions& options, const PackTokenizer& tokenizer, ThreadPool& pool) {
  check_options(options, tokenizer);
  DocumentReader reader(options.files, options.source);
  DatasetWriter writer(options.out,
                       {.pairs = options.source.pairs(),
                        .vocabulary = tokenizer.vocabulary,
                        .tokenizer = tokenizer.fingerprint,
                        .begin_token = tokenizer.begin_token,
                        .end_token = tokenizer.end_token},
                       options.shard_bytes);
  Packed packed;
  const bool pairs = options.source.pairs();
  Fitting fitting(options, tokenizer, packed);

  Progress progress("packing, bytes", static_cast<int64_t>(reader.total_bytes()));
  for (auto batch = read_batch(reader); !batch.empty(); batch = read_batch(reader)) {
    pool.run(std::ssize(batch), [&](int64_t i, int) {
      Encoded& one = batch[static_cast<size_t>(i)];
      encode(tokenizer, one.document.text, one.ids);
      if (pairs) encode(tokenizer, one.document.target, one.target_ids);
    });
    for (Encoded& one : batch) {
      if (one.ids.empty() || (pairs && one.target_ids.empty())) {
        ++packed.skipped;
        continue;
      }
      if (!fitting.fit(one)) continue;
      const std::span<const int32_t> entries[] = {one.ids, one.target_ids};
      writer.add(
          split_of(options, one.document.text, one.document.before), std::span(entries).first(pairs ? 2 : 1),
          static_cast<uint64_t>(one.kept * static_cast<double>(one.document.text.size() + one.document.target.size())));
    }
    progress.update(static_cast<int64_t>(reader.bytes_read()));
  }
  progress.finish();
  packed.skipped += reader.skipped();
  packed.manifest = writer.finish();
  check_any_to_train(options, packed);
  writer.commit();
  return packed;
}

}  // namespace qkv
