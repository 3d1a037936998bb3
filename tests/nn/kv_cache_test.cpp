#include "nn/kv_cache.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "ops/ops.h"
#include "support/guarded_device.h"
#include "support/pass.h"

namespace qkv {
namespace {

constexpr int64_t kPage = KvCache::kPage;

// Two layers that see all, one with a window of two pages. What is written are numbers that say where they belong.
class KvCacheTest : public testing::Test {
 protected:
  explicit KvCacheTest(DType dtype = DType::f32)
      : cache_(pass_.engine.device(), {{1, 4, 4, 0}, {2, 4, 2, 0}, {1, 4, 4, 2 * kPage}},
               {.dtype = dtype, .positions = 20 * kPage}) {}

  // `count` more positions of a sequence whose keys are all `value`.
  void write(KvCache::Id id, int64_t count, float value) {
    const KvCache::Part part{.id = id, .count = static_cast<int32_t>(count)};
    const KvPages pages = cache_.append(pass_.cx, {&part, 1});
    for (int64_t layer = 0; layer < 3; ++layer) {
      const KvCache::Layer& l = cache_.layer(layer);
      const auto put = [&](const Tensor& t, const Tensor& scales, float v) {
        const Tensor rows = t.flatten_to(3);
        const test::Numbers numbers(static_cast<size_t>(count * rows.dim(1) * rows.dim(2)), static_cast<double>(v));
        ops::scatter_rows(pass_.cx, rows, pass_.input(numbers, {count, rows.dim(1), rows.dim(2)}), pages.slots[l.set],
                          scales ? scales.flatten_to(2) : Tensor());
      };
      put(l.k, l.k_scales, value);
      put(l.v, l.v_scales, -value);
    }
  }

  // The first key of each position a layer still has, as the page tables say; -1 where the page is gone.
  std::vector<float> keys(KvCache::Id id, int64_t layer) {
    const KvCache::Part part{.id = id, .count = 1};
    const KvPages pages = cache_.look(pass_.cx, {&part, 1});
    const KvCache::Layer& l = cache_.layer(layer);
    const auto* table = pages.tables[l.set].as<int32_t>();
    std::vector<float> found;
    for (int64_t at = 0; at < cache_.length(id); ++at) {
      const int32_t page = table[at / kPage];
      found.push_back(page < 0 ? -1 : number(l, page * kPage + at % kPage));
    }
    return found;
  }
  static float number(const KvCache::Layer& l, int64_t slot) {
    const int64_t at = slot * l.k.dim(2) * l.k.dim(3);
    if (l.k.dtype() == DType::i8) {
      return static_cast<float>(l.k.as<int8_t>()[at]) * l.k_scales.as<float>()[slot * l.k.dim(2)];
    }
    return l.k.as<float>()[at];
  }

  static std::vector<float> runs(std::initializer_list<std::pair<int64_t, float>> parts) {
    std::vector<float> all;
    for (const auto& [count, value] : parts) all.insert(all.end(), static_cast<size_t>(count), value);
    return all;
  }

  test::Pass pass_;
  KvCache cache_;
};
class KvCacheBytesTest : public KvCacheTest {
 protected:
  KvCacheBytesTest() : KvCacheTest(DType::i8) {}
};

TEST_F(KvCacheTest, GrowsIsCutAndEndsWithoutLosingPages) {
  const KvCache::Id a = cache_.start(), b = cache_.start();
  write(a, 5, 1);
  write(b, kPage + 1, 2);
  write(a, kPage, 3);
  EXPECT_EQ(keys(a, 1), runs({{5, 1.0F}, {kPage, 3.0F}}));
  EXPECT_EQ(keys(b, 0), runs({{kPage + 1, 2.0F}}));
  EXPECT_EQ(cache_.pages_used(), 4);
  cache_.truncate(a, 7);
  write(a, 2, 4);
  EXPECT_EQ(keys(a, 1), runs({{5, 1.0F}, {2, 3.0F}, {2, 4.0F}}));
  EXPECT_EQ(cache_.pages_used(), 3);
  cache_.end(a);
  cache_.end(b);
  EXPECT_EQ(cache_.pages_used(), 0);
  EXPECT_EQ(cache_.start(), a) << "a number that is free is used again";
}

TEST_F(KvCacheTest, ForksShareUntilOneWrites) {
  const KvCache::Id a = cache_.start();
  write(a, kPage + 3, 1);
  const KvCache::Id b = cache_.fork(a, kPage + 3), c = cache_.fork(a, kPage), d = cache_.fork(a, 2);
  EXPECT_EQ(cache_.pages_used(), 2) << "all in the pages of the first";
  write(b, 1, 2);
  write(a, 1, 3);
  write(c, 1, 4);
  write(d, 1, 5);
  EXPECT_EQ(keys(a, 0), runs({{kPage + 3, 1.0F}, {1, 3.0F}}));
  EXPECT_EQ(keys(b, 1), runs({{kPage + 3, 1.0F}, {1, 2.0F}}));
  EXPECT_EQ(keys(c, 2), runs({{kPage, 1.0F}, {1, 4.0F}}));
  EXPECT_EQ(keys(d, 0), runs({{2, 1.0F}, {1, 5.0F}}));
  EXPECT_EQ(cache_.pages_used(), 5) << "the first page, once for three and once for the fourth; three last ones";
  for (const KvCache::Id id : {c, a, d}) cache_.end(id);
  EXPECT_EQ(keys(b, 0), runs({{kPage + 3, 1.0F}, {1, 2.0F}})) << "what others gave up was not this one's";
  cache_.end(b);
  EXPECT_EQ(cache_.pages_used(), 0);
}

// The window holds two pages: after six, the first three are gone and the fourth is the oldest left.
TEST_F(KvCacheTest, ForksBeginWhereTheWindowStillHasItsFirstKey) {
  const KvCache::Id a = cache_.start();
  for (int64_t page = 0; page < 6; ++page) write(a, kPage, static_cast<float>(page + 1));
  EXPECT_FALSE(cache_.can_fork(a, 5 * kPage - 2)) << "its window begins in a page that is gone";
  EXPECT_TRUE(cache_.can_fork(a, 5 * kPage - 1)) << "its window begins with the oldest page left";
  const KvCache::Id b = cache_.fork(a, 5 * kPage - 1);
  const std::vector<float> left = keys(b, 2);
  EXPECT_EQ(std::count(left.begin(), left.end(), -1.0F), 3 * kPage);
}

TEST_F(KvCacheBytesTest, ScalesAreSharedAndCopiedWithTheirPages) {
  const KvCache::Id a = cache_.start();
  write(a, 3, 100);
  const KvCache::Id b = cache_.fork(a, 3);
  write(b, 1, 2);
  write(a, 1, 0.5F);
  EXPECT_EQ(keys(a, 0), runs({{3, 100.0F}, {1, 0.5F}}));
  EXPECT_EQ(keys(b, 2), runs({{3, 100.0F}, {1, 2.0F}}));
}

TEST_F(KvCacheTest, WindowsFreeWhatTheyHaveLeftBehind) {
  const KvCache::Id a = cache_.start();
  for (int64_t i = 0; i < 6; ++i) write(a, kPage, static_cast<float>(i));
  // The last chunk began at 5 pages: its first row looks back two pages, itself included.
  const auto seen = keys(a, 2);
  EXPECT_EQ(seen[static_cast<size_t>(3 * kPage - 1)], -1);
  EXPECT_EQ(seen[static_cast<size_t>(3 * kPage)], 3);
  EXPECT_EQ(keys(a, 0).front(), 0) << "others keep all";
  EXPECT_FALSE(cache_.can_fork(a, 4 * kPage));
  EXPECT_TRUE(cache_.can_fork(a, 5 * kPage));
  const KvCache::Id b = cache_.fork(a, 5 * kPage + 1);
  EXPECT_EQ(cache_.length(b), 5 * kPage + 1);
  cache_.end(a);
  cache_.end(b);
  EXPECT_EQ(cache_.pages_used(), 0);
}

TEST_F(KvCacheTest, SaysWhetherMoreFits) {
  const KvCache::Id a = cache_.start();
  EXPECT_TRUE(cache_.fits(a, 20 * kPage));
  EXPECT_FALSE(cache_.fits(a, 20 * kPage + 1));
  write(a, 20 * kPage - 1, 1);
  const KvCache::Id b = cache_.fork(a, 20 * kPage - 1);
  EXPECT_FALSE(cache_.fits(b, 1)) << "the last page is shared and no other is free";
  expect_error([&] { write(b, 1, 2); }, {"cache is full", "20 pages"});
}

TEST(KvCache, SizesAreThoseOfItsTensors) {
  const std::vector<KvLayout> layers{{2, 8, 8, 0}, {2, 8, 4, 40}};
  const int64_t whole = 4 * kPage * 2 * (8 + 8), window = 4 * kPage * 2 * (8 + 4);
  EXPECT_EQ(KvCache::bytes_for(layers, DType::f32, 4 * kPage), (whole + window) * 4);
  EXPECT_EQ(KvCache::bytes_for(layers, DType::bf16, 40 * kPage), (whole * 10 + window) * 2)
      << "2 pages and 2 torn ones";
  EXPECT_EQ(KvCache::bytes_for(layers, DType::i8, 4 * kPage), whole + window + 2 * 4 * kPage * 2 * 2 * 4);
  test::GuardedDevice device;
  for (const DType dtype : {DType::bf16, DType::i8}) {
    const int64_t before = device.taken;
    const KvCache cache(device, layers, {.dtype = dtype, .positions = 40 * kPage});
    EXPECT_EQ(device.taken - before, KvCache::allocated_bytes(layers, dtype, 40 * kPage)) << name_of(dtype);
  }
  expect_error([] { KvCache(cpu_device(), {{1, 4, 4, 0}}, {.dtype = DType::i32, .positions = 5}); }, {"i32"});
  expect_error([] { KvCache(cpu_device(), {{1, 4, 4, 0}}, {.positions = 0}); }, {"0 positions"});
}

// Layers with a window first: they have room again, those behind them have not.
TEST(KvCache, FitsWhereAllLayersHaveRoom) {
  test::Pass pass;
  KvCache cache(pass.engine.device(), {{1, 4, 4, 2 * kPage}, {1, 4, 4, 0}}, {.positions = 6 * kPage});
  const KvCache::Id id = cache.start();
  for (int page = 0; page < 5; ++page) {
    const KvCache::Part part{.id = id, .count = kPage};
    cache.append(pass.cx, {&part, 1});
  }
  EXPECT_TRUE(cache.fits(id, kPage));
  EXPECT_FALSE(cache.fits(id, kPage + 1)) << "the layers that see all have one page left";
}

}  // namespace
}  // namespace qkv
