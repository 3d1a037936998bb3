#include "data/dataset_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/permutation.h"

namespace qkv {
namespace {

// Random streams of the shuffles, as sites of one seed.
enum Site : uint32_t { kWindows, kBatches, kInBucket };

Permutation shuffle(uint64_t size, uint64_t seed, uint64_t epoch, Site site, uint32_t number = 0) {
  return {size, fold({.seed = seed, .step = epoch, .layer = number, .site = site})};
}

uint32_t bucket_of(uint64_t tokens) {
  return static_cast<uint32_t>((tokens + kPairBucket - 1) / kPairBucket * kPairBucket);
}

struct Bucket {
  uint32_t source, target;  // upper bounds of the lengths in it

  // Boustrophedon order over (source, target) buckets, so that neighbours are similar in both lengths.
  std::pair<uint32_t, uint32_t> place() const {
    return {source, source / kPairBucket % 2 == 0 ? target : UINT32_MAX - target};
  }
};

}  // namespace

uint64_t padded_pair_tokens(uint64_t source, uint64_t target) {
  return uint64_t{bucket_of(source)} + bucket_of(target);
}

TextSamples::TextSamples(const PackedSplit& split, TextOrder order) : split_(split), order_(order), windows_(0) {
  QKV_CHECK(!split.pairs() && !split.chats(), "the dataset holds ", split.pairs() ? "pairs" : "chats",
            ", not running text", Hint("pack it as text or JSONL with one field"));
  QKV_CHECK(order.length > 0 && order.length <= INT32_MAX, "samples of ", order.length, " tokens",
            Hint("choose 1 to ", INT32_MAX));
  const auto length = static_cast<uint64_t>(order.length);
  windows_ = split.tokens() / length + (split.tokens() % length == 0 ? 0 : 1);
}

void TextSamples::append(uint64_t k, TextBatch& batch) const {
  QKV_CHECK(windows_ > 0, "this split holds no documents", Hint("hold out a larger share of the documents"));
  const auto length = static_cast<uint64_t>(order_.length);
  const uint64_t begin = shuffle(windows_, order_.seed, k / windows_, kWindows)(k % windows_) * length;
  const uint64_t end = std::min(begin + length, split_.tokens());

  const size_t at = batch.tokens.size();
  batch.tokens.resize(at + length);
  batch.targets.resize(at + length, kIgnoredTarget);
  split_.copy(begin, std::span(batch.tokens).subspan(at, end - begin));
  // The target of the last position is in the next window.
  split_.copy(begin + 1, std::span(batch.targets).subspan(at, std::min(end, split_.tokens() - 1) - begin));
  uint64_t piece = begin;
  for (uint64_t entry = split_.entry_at(begin); piece < end; ++entry) {
    const uint64_t document_end = split_.start(entry + 1), piece_end = std::min(document_end, end);
    batch.lengths.push_back(static_cast<int32_t>(piece_end - piece));
    batch.counted += static_cast<int64_t>(piece_end - piece);
    if (document_end <= end) {
      batch.targets[at + (document_end - 1 - begin)] = kIgnoredTarget;
      --batch.counted;
    }
    piece = piece_end;
  }
  if (end < begin + length) batch.lengths.push_back(static_cast<int32_t>(begin + length - end));
}

TextBatch TextSamples::batch(uint64_t first, int64_t rows) const {
  TextBatch batch;
  for (int64_t row = 0; row < rows; ++row) append(first + static_cast<uint64_t>(row), batch);
  return batch;
}

PairBatches::PairBatches(const PackedSplit& split, PairOrder order) : split_(split), order_(order) {
  QKV_CHECK(split.pairs(), "the dataset holds running text, not pairs", Hint("pack it from TSV, or name two fields"));
  QKV_CHECK(split.documents() > 0, "this split holds no pairs", Hint("give more pairs, or another share to hold out"));
  QKV_CHECK(split.documents() <= UINT32_MAX, "the split holds ", split.documents(), " pairs but ", UINT32_MAX,
            " is the most", Hint("pack it as several datasets"));
  std::vector<Bucket> bucket(split.documents());
  for (uint64_t i = 0; i < bucket.size(); ++i) {
    bucket[i] = {bucket_of(split.length(2 * i)), bucket_of(split.length(2 * i + 1))};
    const uint64_t source = split.length(2 * i), target = split.length(2 * i + 1);
    QKV_CHECK(std::cmp_less_equal(padded_pair_tokens(source, target), order.tokens), "the packed pair number ", i + 1,
              " has ", source, " and ", target, " tokens but a batch holds at most ", order.tokens,
              Hint("give batches more tokens, or pack without such pairs"));
  }
  pairs_.resize(bucket.size());
  std::iota(pairs_.begin(), pairs_.end(), 0U);
  std::stable_sort(pairs_.begin(), pairs_.end(),
                   [&](uint32_t a, uint32_t b) { return bucket[a].place() < bucket[b].place(); });

  Bucket longest{0, 0};  // of the batch being filled
  for (uint64_t i = 0; i < pairs_.size(); ++i) {
    const Bucket& own = bucket[pairs_[i]];
    if (i == 0 || bucket[pairs_[i - 1]].place() != own.place()) buckets_.push_back(i);
    longest = {std::max(longest.source, own.source), std::max(longest.target, own.target)};
    const uint64_t filled = i == 0 ? 0 : i - cuts_.back();
    const uint64_t tokens = (filled + 1) * (uint64_t{longest.source} + longest.target);
    if (i == 0 || std::cmp_greater(tokens, order.tokens)) {
      cuts_.push_back(i);
      longest = own;
    }
  }
  buckets_.push_back(pairs_.size());
  cuts_.push_back(pairs_.size());
}

PairBatch PairBatches::batch(uint64_t k) const {
  const uint64_t epoch = k / per_epoch();
  const uint64_t number = shuffle(per_epoch(), order_.seed, epoch, kBatches)(k % per_epoch());
  PairBatch batch;
  const auto append = [&](uint64_t entry, std::vector<int32_t>& ids, std::vector<int32_t>& lengths) {
    const uint64_t length = split_.length(entry);
    lengths.push_back(static_cast<int32_t>(length));
    ids.resize(ids.size() + length);
    split_.copy(split_.start(entry), std::span(ids).last(length));
  };
  for (uint64_t at = cuts_[number]; at < cuts_[number + 1]; ++at) {
    const auto after = std::upper_bound(buckets_.begin(), buckets_.end(), at);
    const uint64_t begin = *std::prev(after), size = *after - begin;
    const auto bucket = static_cast<uint32_t>(after - buckets_.begin());
    const uint64_t pair = pairs_[begin + shuffle(size, order_.seed, epoch, kInBucket, bucket)(at - begin)];
    batch.pairs.push_back(pair);
    append(2 * pair, batch.sources, batch.source_lengths);
    append(2 * pair + 1, batch.targets, batch.target_lengths);
  }
  return batch;
}

}  // namespace qkv
