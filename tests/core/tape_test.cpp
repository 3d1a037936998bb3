#include "core/tape.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/says.h"
#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

// Small whole numbers everywhere, so every expected gradient is exact and worked out by hand.
class TapeOf : public ::testing::Test {
 protected:
  Tensor input(const Numbers& values, const Shape& shape) { return p_.input(values, shape); }
  void backward(const Tensor& y, const Numbers& dy) {
    const Tensor seed = p_.zeros(y.shape(), y.dtype());
    to_device(seed, dy);
    p_.tape.seed(p_.cx, y, seed);
    p_.tape.backward(p_.cx);
  }
  Numbers gradient(const Tensor& t) { return to_host(p_.tape.gradient(t)); }

  Pass p_{{.tape = true}};
  Context& cx_ = p_.cx;
};

TEST_F(TapeOf, ATensorUsedTwiceGetsTheSum) {
  const Tensor x = input({1, 2}, {2});
  const Tensor y = ops::add(cx_, ops::scale(cx_, x, 3), ops::scale(cx_, x, 4));
  backward(y, {1, 10});
  EXPECT_EQ(gradient(x), Numbers({7, 70}));
}

TEST_F(TapeOf, ATensorUsedTwiceInOneOpGetsTheSum) {
  const Tensor x = input({1, 2}, {2});
  backward(ops::add(cx_, x, x), {1, 10});
  EXPECT_EQ(gradient(x), Numbers({2, 20}));
}

TEST_F(TapeOf, AChainMultipliesItsFactors) {
  const Tensor x = input({1}, {1});
  backward(ops::scale(cx_, ops::scale(cx_, ops::scale(cx_, x, 2), 3), 5), {1});
  EXPECT_EQ(gradient(x), Numbers({30}));
}

TEST_F(TapeOf, ASliceGetsItsPartAndTheRestIsZero) {
  const Tensor x = input({1, 2, 3, 4, 5, 6}, {2, 3});
  backward(ops::scale(cx_, x.slice(1, 1, 2), 2), {1, 2, 3, 4});
  EXPECT_EQ(gradient(x), Numbers({0, 2, 4, 0, 6, 8}));
}

TEST_F(TapeOf, OverlappingSlicesAddWhereTheyMeet) {
  const Tensor x = input({1, 2, 3}, {3});
  const Tensor y = ops::add(cx_, ops::scale(cx_, x.slice(0, 0, 2), 2), ops::scale(cx_, x.slice(0, 1, 2), 3));
  backward(y, {1, 10});
  EXPECT_EQ(gradient(x), Numbers({2, 20 + 3, 30}));
}

TEST_F(TapeOf, OfTwoSlicesOnlyTheUsedOneGetsAGradient) {
  const Tensor x = input({1, 2, 3, 4}, {4});
  const Tensor used = ops::scale(cx_, x.slice(0, 0, 2), 2);
  ops::scale(cx_, x.slice(0, 2, 2), 5);
  backward(used, {1, 1});
  EXPECT_EQ(gradient(x), Numbers({2, 2, 0, 0}));
}

TEST_F(TapeOf, AWholeUseAfterAPartAddsToIt) {
  const Tensor x = input({1, 2, 3}, {3});
  const Tensor whole = ops::scale(cx_, x, 2);
  const Tensor part = ops::scale(cx_, x.slice(0, 0, 1), 5);
  backward(ops::add(cx_, whole.slice(0, 0, 1), part), {1});
  EXPECT_EQ(gradient(x), Numbers({7, 0, 0}));
}

TEST_F(TapeOf, ViewsOfViewsFindTheirPlace) {
  const Tensor x = input({0, 1, 2, 3, 4, 5, 6, 7}, {2, 4});
  const Tensor middle = x.view({8}).slice(0, 2, 4).view({2, 2}).slice(1, 1, 1);  // 3 and 5
  ASSERT_EQ(to_host(middle), Numbers({3, 5}));
  backward(ops::scale(cx_, middle, 2), {1, 10});
  EXPECT_EQ(gradient(x), Numbers({0, 0, 0, 2, 0, 20, 0, 0}));
}

TEST_F(TapeOf, HeadsSplitAndMergedAreTheSameGradient) {
  const Tensor x = input({1, 2, 3, 4}, {1, 4});
  const Tensor y = ops::merge_heads(ops::scale(cx_, ops::split_heads(x, 2), 3));
  backward(y, {1, 2, 3, 4});
  EXPECT_EQ(gradient(x), Numbers({3, 6, 9, 12}));
}

TEST_F(TapeOf, BackwardCanStartAtAView) {
  const Tensor x = input({1, 2, 3, 4}, {2, 2});
  backward(ops::scale(cx_, x, 3).slice(0, 1, 1), {1, 10});
  EXPECT_EQ(gradient(x), Numbers({0, 0, 3, 30}));
}

TEST_F(TapeOf, AStepWhoseOutputNobodyUsedIsSkipped) {
  const Tensor x = input({1}, {1});
  const Tensor first = ops::scale(cx_, x, 2);
  int ran = 0;
  cx_.make({1}, DType::f32);
  p_.tape.record("unused", [&](Backward&) { ++ran; });
  backward(ops::scale(cx_, first, 3), {1});
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(gradient(x), Numbers({6}));
}

TEST_F(TapeOf, AWeightThatLeadsNowhereGetsNoGradient) {
  const Tensor x = input({1, 2}, {1, 2});
  const Param& used = p_.param("used", Numbers{1, 1, 1, 1}, {2, 2});
  const Param& unused = p_.param("unused", Numbers{1, 1, 1, 1}, {2, 2});
  const Tensor y = ops::linear(cx_, x, used);
  ops::linear(cx_, y, unused);
  backward(y, {1, 0});
  EXPECT_TRUE(used.gradient().defined());
  EXPECT_FALSE(unused.gradient().defined());
}

// The input is made just before the unused op and used by a later one.
TEST_F(TapeOf, AnInputInUseDoesNotWakeTheUnusedOpMadeAfterIt) {
  const Tensor x = input({1, 2}, {1, 2});
  const Param& unused = p_.param("unused", Numbers{1, 1, 1, 1}, {2, 2});
  ops::linear(cx_, x, unused);
  backward(ops::scale(cx_, x, 3), {1, 1});
  EXPECT_EQ(gradient(x), Numbers({3, 3}));
  EXPECT_FALSE(unused.gradient().defined());
}

TEST_F(TapeOf, StepsRunFromLastToFirst) {
  std::vector<int> order;
  Tensor x = input({1}, {1});
  for (int i = 0; i < 3; ++i) {
    x = ops::scale(cx_, x, 1);
    const Tensor y = cx_.make({1}, DType::f32);
    cx_.kernels.copy(cx_.exec, {.y = y, .x = x});
    p_.tape.record("mine", [&order, i, x, y](Backward& bk) {
      order.push_back(i);
      const Grad dx = bk.grad(x);
      bk.kernels.copy(bk.exec, {.y = dx.tensor, .x = bk.dy(y), .add = dx.add});
    });
    x = y;
  }
  backward(x, {1});
  EXPECT_EQ(order, std::vector<int>({2, 1, 0}));
}

// y = x, a step that passes its gradient on and then does something more.
class PassingOn : public TapeOf {
 protected:
  Tensor passed(const Tensor& x, const std::function<void(Backward&, const Tensor& y)>& then = {}) {
    const Tensor y = cx_.make(x.shape(), x.dtype());
    cx_.kernels.copy(cx_.exec, {.y = y, .x = x});
    p_.tape.record("passed", [=](Backward& bk) {
      bk.pass_on(y, x);
      if (then) then(bk, y);
    });
    return y;
  }
  // y = x that notes where the gradient it gets lies.
  Tensor noted(const Tensor& x, const std::byte*& where) {
    return passed(x, [&where](Backward& bk, const Tensor& y) { where = bk.dy(y).data(); });
  }
};

TEST_F(PassingOn, AWholeGradientIsNotCopied) {
  const std::byte *first = nullptr, *last = nullptr;
  const Tensor x = input({1, 2, 3, 4}, {2, 2});
  backward(noted(passed(noted(x, last).view({4})), first), {1, 2, 3, 4});
  EXPECT_EQ(first, last);
  EXPECT_EQ(gradient(x), Numbers({1, 2, 3, 4}));
}

TEST_F(PassingOn, AnInputAddedToInTheSameStepHasMemoryOfItsOwn) {
  const Tensor x = input({1, 2}, {2});
  Numbers after;
  backward(passed(x,
                  [&](Backward& bk, const Tensor& y) {
                    const Grad dx = bk.grad(x);
                    EXPECT_TRUE(dx.add);
                    bk.kernels.copy(bk.exec, {.y = dx.tensor, .x = bk.dy(y), .factor = 10, .add = dx.add});
                    after = to_host(bk.dy(y));
                  }),
           {1, 2});
  EXPECT_EQ(after, Numbers({1, 2}));
  EXPECT_EQ(gradient(x), Numbers({11, 22}));
}

TEST_F(PassingOn, OnlyOneOfTwoInputsTakesTheMemory) {
  const Tensor a = input({1}, {1}), b = input({1}, {1});
  const Tensor left = ops::scale(cx_, a, 1), right = ops::scale(cx_, b, 1);
  const Tensor more = ops::scale(cx_, left, 5);  // its gradient comes last
  backward(ops::add(cx_, ops::add(cx_, left, right), more), {2});
  EXPECT_EQ(gradient(a), Numbers({12}));
  EXPECT_EQ(gradient(b), Numbers({2}));
}

TEST_F(PassingOn, AGradientThatHasBegunIsAddedTo) {
  const Tensor x = input({1}, {1});
  const Tensor middle = ops::scale(cx_, x, 1);
  const Tensor y = passed(middle), late = ops::scale(cx_, middle, 3);
  backward(ops::add(cx_, y, late), {1});
  EXPECT_EQ(gradient(x), Numbers({4}));
}

TEST_F(PassingOn, AKeptGradientStays) {
  const Tensor x = input({1, 2}, {2});
  const Tensor middle = ops::scale(cx_, x, 1), y = passed(middle);
  p_.tape.keep(y);
  backward(ops::scale(cx_, y, 3), {1, 10});
  ASSERT_TRUE(p_.tape.gradient(y).defined());
  EXPECT_EQ(gradient(y), Numbers({3, 30}));
  EXPECT_EQ(gradient(x), Numbers({3, 30}));
  EXPECT_NE(p_.tape.gradient(y).data(), p_.tape.gradient(x).data());
}

TEST_F(PassingOn, APartOrAnotherTypeIsCopied) {
  const Tensor x = input({1, 2, 3}, {3});
  const Tensor part = passed(x.slice(0, 1, 2));
  const Tensor wide = cx_.make({2}, DType::f64);
  cx_.kernels.copy(cx_.exec, {.y = wide, .x = part});
  p_.tape.record("wide", [=](Backward& bk) { bk.pass_on(wide, part); });
  backward(wide, {5, 7});
  EXPECT_EQ(gradient(x), Numbers({0, 5, 7}));
}

TEST_F(PassingOn, AnotherTapesGradientIsWrittenInPlace) {
  const Tensor given = p_.zeros({2}, DType::f32);
  for (const bool add : {false, true}) {
    Tape inner(p_.gradients);
    cx_.tape = &inner;
    const Tensor x = inner.input(p_.zeros({2}, DType::f32), {given, add});
    const Tensor y = ops::add(cx_, x, p_.zeros({2}, DType::f32)), seed = p_.zeros({2}, DType::f32);
    to_device(seed, Numbers{3, 4});
    inner.seed(cx_, y, seed);
    inner.backward(cx_);
    EXPECT_EQ(to_host(given), add ? Numbers({6, 8}) : Numbers({3, 4}));
  }
}

TEST_F(TapeOf, OneOfTwoOutputsUsedGivesZerosForTheOther) {
  const Tensor x = input({1}, {1});
  const Tensor a = cx_.make({1}, DType::f32), b = cx_.make({2}, DType::f32);
  Numbers da, db;
  p_.tape.record("two", [&, x, a, b](Backward& bk) {
    da = to_host(bk.dy(a));
    db = to_host(bk.dy(b));
    cx_.kernels.fill(cx_.exec, {.y = bk.grad(x).tensor, .value = 0});
  });
  backward(a, {7});
  EXPECT_EQ(da, Numbers({7}));
  EXPECT_EQ(db, Numbers({0, 0}));
}

TEST_F(TapeOf, KeptGradientsCanBeReadAfterwardsOthersAreGone) {
  const Tensor x = input({1}, {1});
  const Tensor kept = ops::scale(cx_, x, 2), gone = ops::scale(cx_, kept, 3);
  p_.tape.keep(kept);
  backward(ops::scale(cx_, gone, 5), {1});
  EXPECT_EQ(gradient(kept), Numbers({15}));
  EXPECT_EQ(gradient(x), Numbers({30}));
  EXPECT_FALSE(p_.tape.gradient(gone).defined());
}

TEST_F(TapeOf, AnInputThatNothingReachesHasNoGradient) {
  const Tensor x = input({1}, {1}), other = input({1}, {1});
  backward(ops::scale(cx_, x, 2), {1});
  EXPECT_FALSE(p_.tape.gradient(other).defined());
}

TEST_F(TapeOf, ConstantsGetNoGradient) {
  const Tensor x = input({1}, {1}), constant = p_.zeros({1}, DType::f32);
  backward(ops::add(cx_, x, constant), {4});
  EXPECT_EQ(gradient(x), Numbers({4}));
  expect_says([&] { std::ignore = p_.tape.gradient(constant); }, {"gradient", "f32 [1]", "not made under this tape"});
}

TEST_F(TapeOf, TheGradientOfAPartIsAViewOfTheWhole) {
  const Tensor x = input({1, 2, 3, 4}, {2, 2});
  backward(ops::scale(cx_, x, 2), {1, 2, 3, 4});
  EXPECT_EQ(gradient(x.slice(1, 1, 1)), Numbers({4, 8}));
}

TEST_F(TapeOf, MicroBatchesAddUpInTheWeight) {
  Param& w = p_.param("w", Numbers{2}, {1, 1});
  for (const double x : {3.0, 5.0}) {
    Tape tape(p_.gradients);
    cx_.tape = &tape;
    const Tensor in = p_.zeros({1, 1}, DType::f32);
    to_device(in, Numbers{x});
    tape.backward(cx_, ops::linear(cx_, in, w));
  }
  EXPECT_EQ(to_host(w.gradient()), Numbers({8}));
}

TEST_F(TapeOf, FiftyEqualOpsReuseAFewBuffers) {
  constexpr int64_t kWidth = 1024;
  const Tensor x = input(Numbers(kWidth, 1.0), {kWidth});
  Tensor y = x;
  for (int i = 0; i < 50; ++i) y = ops::scale(cx_, y, -1);
  backward(y, Numbers(kWidth, 1.0));
  EXPECT_LE(p_.gradients.peak(), 3 * kWidth * 4) << "the input's, and one on each side of a step";
  EXPECT_EQ(gradient(x), Numbers(kWidth, 1.0));
}

TEST_F(TapeOf, WorkingMemoryOfAStepEndsWithIt) {
  const Tensor x = input({1}, {1});
  Tensor y = x;
  for (int i = 0; i < 20; ++i) {
    const Tensor next = cx_.make({1}, DType::f32);
    p_.tape.record("greedy", [x = y, next](Backward& bk) {
      bk.make({10'000}, DType::f32);
      const Grad dx = bk.grad(x);
      bk.kernels.copy(bk.exec, {.y = dx.tensor, .x = bk.dy(next), .add = dx.add});
    });
    y = next;
  }
  const int64_t before = p_.arena.used();
  p_.tape.backward(cx_, y);
  EXPECT_EQ(p_.arena.used(), before);
  EXPECT_LT(p_.arena.peak(), before + 2 * 40'000);
}

TEST_F(TapeOf, BackwardOfOneNumberStartsWithOne) {
  const Tensor x = input({5}, {1});
  p_.tape.backward(cx_, ops::scale(cx_, x, 3));
  EXPECT_EQ(gradient(x), Numbers({3}));
}

TEST_F(TapeOf, BackwardOfManyNumbersNeedsTheirGradient) {
  const Tensor y = ops::scale(cx_, input({1, 2, 3, 4, 5, 6}, {2, 3}), 3);
  expect_error([&] { p_.tape.backward(cx_, y); }, {"backward", "f32 [2, 3]"});
}

TEST_F(TapeOf, BackwardNeedsAGradientOfTheSameShapeAndDtype) {
  const Tensor y = ops::scale(cx_, input({1, 2}, {2}), 3);
  expect_says([&] { p_.tape.seed(cx_, y, p_.zeros({3}, DType::f32)); }, {"backward", "f32 [2]", "f32 [3]"});
  expect_says([&] { p_.tape.seed(cx_, y, p_.zeros({2}, DType::f64)); }, {"backward", "f32 [2]", "f64 [2]"});
}

TEST_F(TapeOf, BackwardOfAConstantIsRefused) {
  const Tensor constant = p_.zeros({1}, DType::f32);
  expect_says([&] { p_.tape.backward(cx_, constant); }, {"backward", "not made under this tape"});
}

TEST_F(TapeOf, KeepingAConstantIsOurMistake) {
  const Tensor constant = p_.zeros({1}, DType::f32);
  expect_says([&] { p_.tape.keep(constant); }, {"f32 [1]", "no node"}, Error::Kind::internal);
}

TEST_F(TapeOf, EmptyTensorsGoThrough) {
  const Tensor x = input({}, {0, 3});
  backward(ops::scale(cx_, x, 2), {});
  EXPECT_EQ(p_.tape.gradient(x).shape(), Shape({0, 3}));
}

}  // namespace
}  // namespace qkv::test
