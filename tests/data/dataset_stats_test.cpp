#include "data/dataset_stats.h"

#include <gtest/gtest.h>

#include "data/dataset_bytes.h"

namespace qkv {
namespace {

using Frequent = std::vector<std::pair<int32_t, uint64_t>>;

TEST(SplitStats, CountsLengthsAndTokens) {
  const TempFolder folder;
  const auto file = folder.write("x", "aaa\nabbaab\na\naaaaaaa\n");  // 4, 7, 2 and 8 tokens with the end
  pack_bytes(
      {.files = {file.string()}, .out = folder.path() / "out", .source = {.cut = DocumentCut::line}, .shard_bytes = 1});
  const PackedDataset data(folder.path() / "out");
  uint64_t shown = 0;
  const SplitStats stats = split_stats(data.of(Split::train), 2, [&](uint64_t tokens) { shown = tokens; });
  EXPECT_EQ(stats.lengths, (std::vector<std::vector<uint64_t>>{{0, 1, 2, 1}}));
  EXPECT_EQ(stats.distinct, 3U);
  EXPECT_EQ(stats.frequent, (Frequent{{'a', 14}, {kByteEnd, 4}}));
  EXPECT_EQ(shown, 21U);
}

TEST(SplitStats, TellsSourcesFromTargets) {
  const TempFolder folder;
  const auto file = folder.write("x", "a\tbbbb\nc\tdd\n");
  pack_bytes({.files = {file.string()}, .out = folder.path() / "out", .source = {.format = DataFormat::tsv}});
  const PackedDataset data(folder.path() / "out");
  const SplitStats stats = split_stats(data.of(Split::train), 9, [](uint64_t) {});
  EXPECT_EQ(stats.lengths, (std::vector<std::vector<uint64_t>>{{0, 2}, {0, 1, 1}}));
  EXPECT_EQ(stats.frequent, (Frequent{{'b', 4}, {kByteEnd, 4}, {'d', 2}, {'a', 1}, {'c', 1}}));
  EXPECT_TRUE(split_stats(data.of(Split::validation), 9, [](uint64_t) {}).frequent.empty());
}

}  // namespace
}  // namespace qkv
