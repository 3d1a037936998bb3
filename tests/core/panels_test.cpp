#include "core/panels.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "core/param.h"
#include "core/says.h"

namespace qkv::test {
namespace {

TEST(PanelLayout, GivesEveryNumberAPlaceOfItsOwn) {
  for (const Format format :
       {Format(Block::q8, 32), Format(Block::q8, 64), Format(Block::q4, 32), Format(Block::q4, 0)}) {
    const PanelLayout layout(format, 192);
    std::set<int64_t> places;
    for (int64_t row = 0; row < kPanelRows; ++row) {
      for (int64_t g = 0; g < layout.groups(); ++g) {
        for (int64_t byte : {0, 1}) EXPECT_TRUE(places.insert(2 * (layout.scale_at(g, row) + byte)).second);
      }
      for (int64_t k = 0; k < 192; ++k) {  // a nibble is half a place
        const int64_t half = 2 * layout.value_at(k, row) + (layout.upper_half(k) ? 1 : 0);
        EXPECT_TRUE(places.insert(half).second) << format << " " << row << " " << k;
      }
    }
    EXPECT_GE(*places.begin(), 0);
    EXPECT_LT(*places.rbegin(), 2 * layout.bytes());
    EXPECT_EQ(layout.bytes() % kPanelLine, 0);
  }
}

TEST(PanelLayout, TakesTheBytesItsGroupsSay) {
  const Shape shape{32, 1024};
  EXPECT_EQ(Format(Block::q8, 32).bytes_for(shape), 32 * (1024 + 2 * 32));
  EXPECT_EQ(Format(Block::q4, 32).bytes_for(shape), 32 * (512 + 2 * 32));
  EXPECT_EQ(Format(Block::q4, 256).bytes_for(shape), 32 * (512 + 2 * 4));
  EXPECT_EQ(Format(Block::q8, 0).bytes_for(shape), 32 * (1024 + 4));  // half a line of scales is padding
  EXPECT_EQ(Format(Block::q8, 0).bytes_for(Shape{3, 17, 1024}), 3 * 32 * (1024 + 4));  // rows are padded to sixteen
}

TEST(PanelLayout, RefusesWhatItCannotHold) {
  expect_says([] { Format(Block::q8, 48); }, {"q8", "48"});
  expect_says([] { Format(Block::q4_0, 32); }, {"q4_0", "32"});
  expect_says([] { std::ignore = Format(Block::q8, 64).bytes_for(Shape{2, 96}); }, {"q8/64", "96"});
  expect_says([] { std::ignore = Format(Block::q4, 0).bytes_for(Shape{2, 40}); }, {"q4", "40"});
  expect_says([] { std::ignore = Format(Block::q4, 0).bytes_for(Shape{2, 1 << 17}); }, {"q4", "131072"});
  expect_says([] { std::ignore = Format(Block::q4, 0).bytes_for(Shape{64}); }, {"q4", "[64]"});
  expect_says([] { std::ignore = Format(Block::q8, 32).bytes_for(64); }, {"q8/32", "64"});
}

TEST(PanelLayout, WholeMatricesCanBeSlicedButNotRows) {
  const Format format(Block::q4, 32);
  const Storage s(cpu_device(), format, Shape{3, 20, 64});
  const Tensor t(s, {3, 20, 64});
  EXPECT_EQ(t.slice(0, 2, 1).data() - t.data(), 2 * format.bytes_for(Shape{20, 64}));
  expect_says([&] { std::ignore = t.slice(1, 0, 16); }, {"slice", "q4/32"});
  expect_says([&] { std::ignore = t.slice(2, 0, 32); }, {"slice", "q4/32"});
}

TEST(Param, MayStandOnBytesThatLiveElsewhere) {
  const Storage s(cpu_device(), Format(Block::q8_0), 64);
  const Param w("w", cpu_device(), s.format(), {2, 32}, {.in_place = s.data()});
  EXPECT_EQ(w.master().data(), s.data());
  EXPECT_EQ(w.format(), Format(Block::q8_0));
}

}  // namespace
}  // namespace qkv::test
