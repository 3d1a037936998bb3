#include "data/dataset_order.h"

#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <memory>
#include <numeric>

#include "base/expect_error.h"
#include "data/dataset_bytes.h"

namespace qkv {
namespace {

// Documents of 1 to 40 tokens, all tokens distinct: the line "7 3" is the document 7, 8, 9.
struct TextData {
  explicit TextData(int documents, uint64_t shard_bytes = 1500) {
    std::string text;
    for (int i = 0, next = 0; i < documents; ++i) {
      const int size = i * 13 % 40 + 1;
      text += std::to_string(next) + ' ' + std::to_string(size) + '\n';
      next += size;
    }
    const auto file = folder.write("x", text);
    const auto encode = [](std::string_view line, std::vector<int32_t>& ids) {
      int32_t first = 0, size = 0;
      const auto read = std::from_chars(line.data(), line.data() + line.size(), first);
      std::from_chars(read.ptr + 1, line.data() + line.size(), size);
      for (int32_t i = 0; i < size; ++i) ids.push_back(first + i);
    };
    ThreadPool pool(1);
    pack_dataset({.files = {file.string()},
                  .out = folder.path() / "out",
                  .source = {.cut = DocumentCut::line},
                  .shard_bytes = shard_bytes},
                 {.encode = encode, .vocabulary = 100'000, .fingerprint = "test numbers"}, pool);
    data = std::make_unique<PackedDataset>(folder.path() / "out");
  }
  const PackedSplit& train() const { return data->of(Split::train); }
  TempFolder folder;
  std::unique_ptr<PackedDataset> data;
};

// Checks one sample against the definition. Returns the index of its window.
uint64_t check_sample(const PackedSplit& split, const TextBatch& sample, uint64_t length) {
  std::vector<int32_t> row(split.tokens());
  split.copy(0, row);
  EXPECT_EQ(sample.tokens.size(), length);
  EXPECT_EQ(sample.targets.size(), length);
  EXPECT_EQ(std::accumulate(sample.lengths.begin(), sample.lengths.end(), uint64_t{0}), length);
  for (uint64_t window = 0; window * length < row.size(); ++window) {
    const uint64_t begin = window * length, end = std::min<uint64_t>(begin + length, row.size());
    if (!std::equal(row.begin() + static_cast<std::ptrdiff_t>(begin), row.begin() + static_cast<std::ptrdiff_t>(end),
                    sample.tokens.begin()))
      continue;
    std::vector<int32_t> targets(length, kIgnoredTarget), lengths;
    int64_t counted = 0;
    for (uint64_t t = begin; t < end; ++t) {
      const bool starts = t == begin || split.entry_at(t) != split.entry_at(t - 1);
      if (starts) lengths.push_back(0);
      ++lengths.back();
      if (t + 1 < row.size() && split.entry_at(t) == split.entry_at(t + 1)) {
        targets[t - begin] = row[t + 1];
        ++counted;
      }
    }
    if (end < begin + length) lengths.push_back(static_cast<int32_t>(begin + length - end));
    EXPECT_EQ(sample.targets, targets);
    EXPECT_EQ(sample.lengths, lengths);
    EXPECT_EQ(sample.counted, counted);
    return window;
  }
  ADD_FAILURE() << "the tokens are no window of the row, from " << sample.tokens.at(0);
  return 0;
}

TEST(TextSamples, EveryTokenOncePerEpoch) {
  const TextData data(60);
  for (const int64_t length : {1, 7, 32, 1000, 5000}) {
    const TextSamples samples(data.train(), {.length = length, .seed = 3});
    const auto size = static_cast<uint64_t>(length);
    ASSERT_EQ(samples.per_epoch(), (data.train().tokens() + size - 1) / size);
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<int> seen(samples.per_epoch());
      for (uint64_t i = 0; i < samples.per_epoch(); ++i)
        ++seen[check_sample(data.train(), samples.batch(epoch * samples.per_epoch() + i, 1), size)];
      EXPECT_EQ(seen, std::vector<int>(samples.per_epoch(), 1)) << length;
    }
  }
}

// Every token except the first of a document is predicted exactly once, wherever windows are cut.
TEST(TextSamples, EveryPredictionOncePerEpoch) {
  const TextData data(60);
  for (const int64_t length : {1, 7, 32, 1000}) {
    const TextSamples samples(data.train(), {.length = length});
    std::map<int32_t, int64_t> predicted, wanted;
    int64_t counted = 0;
    for (uint64_t i = 0; i < samples.per_epoch(); ++i) {
      const TextBatch sample = samples.batch(i, 1);
      counted += sample.counted;
      for (const int32_t id : sample.targets) ++predicted[id];
    }
    predicted.erase(kIgnoredTarget);
    for (uint64_t entry = 0; entry < data.train().entries(); ++entry) {
      std::vector<int32_t> ids(data.train().length(entry));
      data.train().copy(data.train().start(entry), ids);
      for (size_t i = 1; i < ids.size(); ++i) ++wanted[ids[i]];
    }
    EXPECT_EQ(predicted, wanted);
    EXPECT_EQ(counted, static_cast<int64_t>(data.train().tokens() - data.train().documents()));
  }
}

TEST(TextSamples, AnyDivisionReadsTheSame) {
  const TextData data(60);
  const TextSamples samples(data.train(), {.length = 16, .seed = 8});
  const TextBatch whole = samples.batch(100, 12);  // across the end of an epoch
  EXPECT_LT(samples.per_epoch(), 112U);
  TextBatch parts;
  for (const auto& [first, rows] : {std::pair{100, 5}, {105, 1}, {106, 6}}) {
    const TextBatch part = samples.batch(static_cast<uint64_t>(first), rows);
    parts.tokens.insert(parts.tokens.end(), part.tokens.begin(), part.tokens.end());
    parts.targets.insert(parts.targets.end(), part.targets.begin(), part.targets.end());
    parts.lengths.insert(parts.lengths.end(), part.lengths.begin(), part.lengths.end());
    parts.counted += part.counted;
  }
  EXPECT_EQ(parts.tokens, whole.tokens);
  EXPECT_EQ(parts.targets, whole.targets);
  EXPECT_EQ(parts.lengths, whole.lengths);
  EXPECT_EQ(parts.counted, whole.counted);
}

TEST(TextSamples, TheOrderIsAFunctionOfSeedAndEpoch) {
  const TextData data(60), other_shards(60, 1 << 20);
  const auto epoch = [&](const TextData& from, uint64_t seed, uint64_t number) {
    const TextSamples samples(from.train(), {.length = 16, .seed = seed});
    return samples.batch(number * samples.per_epoch(), static_cast<int64_t>(samples.per_epoch())).tokens;
  };
  EXPECT_EQ(epoch(data, 1, 5), epoch(data, 1, 5));
  EXPECT_EQ(epoch(data, 1, 5), epoch(other_shards, 1, 5));  // the order does not depend on the shards
  EXPECT_NE(epoch(data, 1, 5), epoch(data, 1, 6));
  EXPECT_NE(epoch(data, 1, 5), epoch(data, 2, 5));
}

TEST(TextSamples, WrongUseIsAnError) {
  const TextData data(5);
  expect_error([&] { TextSamples(data.train(), {.length = 0}); }, {"samples of 0"});
  const TextSamples empty(data.data->of(Split::validation), {.length = 8});
  expect_error([&] { empty.batch(0, 1); }, {"no documents"});
  expect_error([&] { PairBatches(data.train(), {.tokens = 100}); }, {"not pairs"});
}

struct PairData {
  explicit PairData(int pairs) {
    std::string text;
    for (int i = 0; i < pairs; ++i) {
      text += std::to_string(i) + std::string(static_cast<size_t>(i * 11 % 37), 's') + '\t' + std::to_string(i) +
              std::string(static_cast<size_t>((i * 11 % 37 + i % 5) * 3 / 4), 't') + '\n';
    }
    const auto file = folder.write("x.tsv", text);
    pack_bytes({.files = {file.string()},
                .out = folder.path() / "out",
                .source = {.format = DataFormat::tsv},
                .shard_bytes = 10'000});
    data = std::make_unique<PackedDataset>(folder.path() / "out");
  }
  const PackedSplit& train() const { return data->of(Split::train); }
  TempFolder folder;
  std::unique_ptr<PackedDataset> data;
};

TEST(PairBatches, EveryPairOncePerEpochUnderTheBudget) {
  const PairData data(500);
  for (const int64_t tokens : {84, 100, 400, 100'000}) {
    const PairBatches batches(data.train(), {.tokens = tokens, .seed = 2});
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<int> seen(500);
      for (uint64_t i = 0; i < batches.per_epoch(); ++i) {
        const PairBatch batch = batches.batch(epoch * batches.per_epoch() + i);
        ASSERT_FALSE(batch.pairs.empty());
        const auto longest = [](const std::vector<int32_t>& lengths) {
          return *std::max_element(lengths.begin(), lengths.end());
        };
        EXPECT_LE(std::ssize(batch.pairs) * (longest(batch.source_lengths) + longest(batch.target_lengths)), tokens);
        for (const uint64_t pair : batch.pairs) ++seen[pair];
      }
      EXPECT_EQ(seen, std::vector<int>(500, 1)) << tokens;
    }
  }
}

TEST(PairBatches, SourcesAndTargetsBelongTogether) {
  const PairData data(200);
  const PairBatches batches(data.train(), {.tokens = 300});
  for (uint64_t k = 0; k < batches.per_epoch(); ++k) {
    const PairBatch batch = batches.batch(k);
    size_t source = 0, target = 0;
    for (size_t i = 0; i < batch.pairs.size(); ++i) {
      const auto take = [](const std::vector<int32_t>& ids, size_t& at, int32_t length) {
        at += static_cast<size_t>(length);
        return text_of(std::span(ids).subspan(at - static_cast<size_t>(length), static_cast<size_t>(length)));
      };
      const std::string s = take(batch.sources, source, batch.source_lengths[i]);
      const std::string t = take(batch.targets, target, batch.target_lengths[i]);
      const std::string number = std::to_string(batch.pairs[i]);
      EXPECT_EQ(s.substr(0, s.find_first_of("s|")), number);
      EXPECT_EQ(t.substr(0, t.find_first_of("t|")), number);
      EXPECT_EQ(s.back(), '|');
      EXPECT_EQ(t.back(), '|');
    }
    EXPECT_EQ(source, batch.sources.size());
    EXPECT_EQ(target, batch.targets.size());
  }
}

// Bucketing pays off: padded batches waste little, while pairs in file order would waste half.
TEST(PairBatches, LikeLengthsShareABatch) {
  const PairData data(500);
  const PairBatches batches(data.train(), {.tokens = 800});
  int64_t padded = 0, real = 0;
  for (uint64_t k = 0; k < batches.per_epoch(); ++k) {
    const PairBatch batch = batches.batch(k);
    const auto longest = [](const std::vector<int32_t>& lengths) {
      return *std::max_element(lengths.begin(), lengths.end());
    };
    padded += std::ssize(batch.pairs) * (longest(batch.source_lengths) + longest(batch.target_lengths));
    real += std::ssize(batch.sources) + std::ssize(batch.targets);
  }
  EXPECT_LT(static_cast<double>(padded), 1.15 * static_cast<double>(real));
}

TEST(PairBatches, TheOrderIsAFunctionOfSeedAndEpoch) {
  const PairData data(500);
  const auto pairs = [&](uint64_t seed, uint64_t epoch) {
    const PairBatches batches(data.train(), {.tokens = 400, .seed = seed});
    std::vector<std::vector<uint64_t>> out;
    for (uint64_t i = 0; i < batches.per_epoch(); ++i)
      out.push_back(batches.batch(epoch * batches.per_epoch() + i).pairs);
    return out;
  };
  const auto sorted = [](std::vector<std::vector<uint64_t>> all) {
    for (auto& one : all) std::sort(one.begin(), one.end());
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(pairs(1, 0), pairs(1, 0));
  EXPECT_NE(sorted(pairs(1, 0)), sorted(pairs(1, 1)));  // other batch contents, not only another order
  EXPECT_NE(sorted(pairs(1, 0)), sorted(pairs(2, 0)));
}

TEST(PairBatches, APairThatCannotFitIsAnError) {
  const PairData data(50);
  expect_error([&] { PairBatches(data.train(), {.tokens = 40}); }, {"pair ", "at most 40"});
}

}  // namespace
}  // namespace qkv
