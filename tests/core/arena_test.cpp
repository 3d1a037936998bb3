#include "core/arena.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/says.h"

namespace qkv::test {
namespace {

TEST(Arena, TakesAlignedMemoryOneAfterTheOther) {
  Arena arena(cpu_device());
  const Tensor a = arena.take(DType::f32, {3}), b = arena.take(DType::f64, {100}), c = arena.take(DType::i8, {1});
  for (const Tensor& t : {a, b, c}) EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0U);
  EXPECT_EQ(b.data() - a.data(), 64);
  EXPECT_EQ(c.data() - b.data(), 832);  // 800 bytes, padded to whole lines
  EXPECT_EQ(arena.used(), 64 + 832 + 64);
  EXPECT_EQ(&a.device(), &cpu_device());
  EXPECT_EQ(b.shape(), Shape({100}));
  EXPECT_EQ(b.dtype(), DType::f64);
}

TEST(Arena, RewindGivesBackWhatWasTakenSinceTheMark) {
  Arena arena(cpu_device());
  arena.take(DType::f32, {16});
  const auto mark = arena.mark();
  const Tensor first = arena.take(DType::f32, {1000});
  EXPECT_EQ(arena.used(), 64 + 4032);
  arena.rewind(mark);
  EXPECT_EQ(arena.used(), 64);
  EXPECT_EQ(arena.take(DType::i8, {5}).data(), first.data());
  EXPECT_EQ(arena.peak(), 64 + 4032);
}

TEST(Arena, MarksNest) {
  Arena arena(cpu_device());
  const auto outer = arena.mark();
  arena.take(DType::i8, {64});
  const auto inner = arena.mark();
  arena.take(DType::i8, {640});
  arena.rewind(inner);
  EXPECT_EQ(arena.used(), 64);
  arena.rewind(inner);
  arena.rewind(outer);
  EXPECT_EQ(arena.used(), 0);
  EXPECT_EQ(arena.peak(), 704);
}

TEST(Arena, GrowsOverSeveralBlocksAndKeepsWhatItHolds) {
  constexpr int64_t kPiece = 700'000;
  Arena arena(cpu_device());
  std::vector<Tensor> pieces;
  for (int i = 0; i < 12; ++i) {
    pieces.push_back(arena.take(DType::i8, {kPiece}));
    std::memset(pieces.back().data(), i, static_cast<size_t>(kPiece));
  }
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(pieces[static_cast<size_t>(i)].as<int8_t>()[0], i);
    EXPECT_EQ(pieces[static_cast<size_t>(i)].as<int8_t>()[kPiece - 1], i);
  }
  const int64_t padded = (kPiece + 63) / 64 * 64;
  EXPECT_EQ(arena.used(), 12 * padded);
  EXPECT_GE(arena.reserved(), arena.used());
}

TEST(Arena, AMarkInAnEarlierBlockCanBeRewoundTo) {
  Arena arena(cpu_device());
  arena.take(DType::i8, {100});
  const auto mark = arena.mark();
  const Tensor first = arena.take(DType::i8, {1000});
  for (int i = 0; i < 8; ++i) arena.take(DType::i8, {1'000'000});
  const int64_t reserved = arena.reserved();
  arena.rewind(mark);
  EXPECT_EQ(arena.used(), 128);
  EXPECT_EQ(arena.take(DType::i8, {1000}).data(), first.data());
  for (int i = 0; i < 8; ++i) {
    const Tensor t = arena.take(DType::i8, {1'000'000});
    std::memset(t.data(), 1, 1'000'000);
  }
  EXPECT_EQ(arena.reserved(), reserved) << "the second round uses the blocks of the first";
}

TEST(Arena, ABlockIsAsLargeAsTheLargestPiece) {
  Arena arena(cpu_device());
  const Tensor t = arena.take(DType::i8, {50'000'000});
  t.as<int8_t>()[49'999'999] = 1;
  EXPECT_GE(arena.reserved(), 50'000'000);
}

TEST(Arena, AReserveOfThePeakIsTheOnlyBlock) {
  Arena first(cpu_device());
  for (int i = 0; i < 5; ++i) first.take(DType::f32, {400'000});
  Arena second(cpu_device(), first.peak());
  const std::byte* start = second.take(DType::f32, {400'000}).data();
  for (int i = 1; i < 5; ++i) EXPECT_EQ(second.take(DType::f32, {400'000}).data() - start, i * 1'600'000);
  EXPECT_EQ(second.reserved(), first.peak());
}

TEST(Arena, AReserveTakesThePlaceOfBlocksInWhichNothingLies) {
  Arena arena(cpu_device());
  const auto take = [&](int64_t bytes) { return arena.take(DType::i8, {bytes}); };
  EXPECT_EQ(arena.missing(5000), 5056);
  arena.reserve(5000);
  EXPECT_EQ(arena.reserved(), 5056);
  EXPECT_EQ(arena.missing(5000), 0);
  const Arena::Mark start = arena.mark();
  take(100);
  EXPECT_EQ(arena.missing(5000), 5056);
  arena.reserve(4900);
  EXPECT_EQ(arena.reserved(), 5056);
  arena.reserve(9000);
  EXPECT_EQ(arena.reserved(), 5056 + 9024);
  take(4000);
  take(5000);  // in the second block, and after the next two lines nothing is
  arena.rewind(start);
  arena.reserve(20000);
  EXPECT_EQ(arena.reserved(), 20032);
  take(20000);
  EXPECT_EQ(arena.reserved(), 20032);
}

TEST(Arena, GrowsByAQuarterBeyondItsReserve) {
  constexpr int64_t kReserve = int64_t{64} << 20;  // none of it is touched
  Arena arena(cpu_device(), kReserve);
  arena.take(DType::i8, {kReserve});
  EXPECT_EQ(arena.reserved(), kReserve);
  arena.take(DType::i8, {100});
  EXPECT_EQ(arena.reserved(), kReserve / 4 * 5);
  arena.take(DType::i8, {kReserve});
  EXPECT_EQ(arena.reserved(), kReserve / 4 * 9) << "or by what is asked for";
}

// A walk of takes, marks and rewinds that crosses blocks many times.
void walk(Arena& arena) {
  std::vector<Arena::Mark> marks;
  uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525U + 1013904223U; };
  for (int i = 0; i < 400; ++i) {
    if (next() % 3 == 0) marks.push_back(arena.mark());
    arena.take(i % 2 == 0 ? DType::f32 : DType::i8, {next() % 60'000});
    if (next() % 4 == 0 && !marks.empty()) {
      arena.rewind(marks.back());
      marks.pop_back();
    }
  }
}

TEST(Arena, APlanHasThePeakOfTheRealThing) {
  Arena real(cpu_device()), plan(cpu_device(), 0, Arena::Mode::plan);
  walk(real);
  walk(plan);
  EXPECT_GT(real.reserved(), int64_t{1} << 21) << "the walk must need several blocks";
  EXPECT_EQ(plan.peak(), real.peak());
  EXPECT_EQ(plan.used(), real.used());
  EXPECT_EQ(plan.reserved(), 0);
  EXPECT_TRUE(plan.planning());
  EXPECT_FALSE(real.planning());
}

TEST(Arena, APlanCanBeLargerThanTheMachine) {
  Arena plan(cpu_device(), 0, Arena::Mode::plan);
  plan.take(DType::f32, {int64_t{1} << 40});
  EXPECT_EQ(plan.peak(), int64_t{1} << 42);
}

TEST(Arena, EmptyTensorsHaveAnAddressOfTheirOwn) {
  Arena arena(cpu_device());
  const Tensor a = arena.take(DType::f32, {0}), b = arena.take(DType::f32, {0, 5});
  EXPECT_NE(a.data(), nullptr);
  EXPECT_NE(a.data(), b.data());
}

TEST(Arena, AMarkThatLiesAheadIsOurMistake) {
  Arena arena(cpu_device());
  const auto start = arena.mark();
  arena.take(DType::i8, {100});
  const auto ahead = arena.mark();
  arena.rewind(start);
  expect_says([&] { arena.rewind(ahead); }, {"arena", "ahead", "128"}, Error::Kind::internal);
}

TEST(Arena, RefusesPartsOfABlock) {
  Arena arena(cpu_device());
  expect_error([&] { arena.take(Format(Block::q4_0), {31}); }, {"q4_0", "32", "31"});
  EXPECT_EQ(arena.take(Format(Block::q4_0), {2, 32}).format(), Format(Block::q4_0));
}

#if defined(__SANITIZE_ADDRESS__)
TEST(ArenaDeathTest, TouchingRewoundMemoryIsReported) {
  Arena arena(cpu_device());
  const auto mark = arena.mark();
  const Tensor t = arena.take(DType::i8, {64});
  t.as<int8_t>()[0] = 1;
  arena.rewind(mark);
  EXPECT_DEATH(*static_cast<volatile int8_t*>(t.as<int8_t>()) = 2, "use-after-poison");
}

TEST(ArenaDeathTest, WritingPastATensorIsReported) {
  Arena arena(cpu_device());
  const Tensor t = arena.take(DType::i8, {60});
  arena.take(DType::i8, {60});
  EXPECT_DEATH(static_cast<volatile int8_t*>(t.as<int8_t>())[60] = 2, "AddressSanitizer");
}
#endif

}  // namespace
}  // namespace qkv::test
