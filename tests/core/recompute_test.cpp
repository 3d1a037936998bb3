#include "core/recompute.h"

#include <gtest/gtest.h>

#include "core/says.h"
#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace recompute_test {

constexpr int64_t kRows = 6, kWidth = 8, kInner = 32;
constexpr int kBlocks = 4;

class Stack {
 public:
  explicit Stack(Precision precision, Arena::Mode mode = Arena::Mode::real)
      : pass({.precision = precision, .tape = true, .mode = mode}) {
    pass.cx.training = true;
    pass.cx.rng = {.seed = 5, .step = 3, .first_row = 100};
    for (int i = 0; i < kBlocks; ++i) {
      const auto seed = static_cast<uint64_t>(10 * i);
      up.push_back(&pass.param("up", normals(seed, kInner * kWidth, 0.3), {kInner, kWidth}));
      down.push_back(&pass.param("down", normals(seed + 1, kWidth * kInner, 0.3), {kWidth, kInner}));
    }
    x = pass.input(normals(99, kRows * kWidth), {kRows, kWidth});
  }

  std::function<Tensor(Context&, const Tensor&)> block(int i) const {
    const auto n = static_cast<size_t>(i);
    return [w1 = up[n], w2 = down[n], i](Context& cx, const Tensor& in) {
      const Place place{.layer = static_cast<int16_t>(i)};
      Tensor h = ops::activation(cx, ops::linear(cx, in, *w1), ops::act::gelu_erf);
      cx.tap(place, Site::mlp_post, h);
      h = ops::dropout(cx, h, {.p = 0.3F, .place = place, .site = Site::mlp_post});
      return ops::add(cx, in, ops::linear(cx, h, *w2));
    };
  }

  Tensor forward(bool again) {
    Tensor y = x;
    for (int i = 0; i < kBlocks; ++i) y = again ? recompute(pass.cx, y, block(i)) : block(i)(pass.cx, y);
    return y;
  }
  void backward(const Tensor& y) {
    const Tensor dy = pass.cx.constant(y.shape(), y.dtype());
    to_device(dy, normals(77, y.count()));
    pass.tape.seed(pass.cx, y, dy);
    pass.tape.backward(pass.cx);
  }
  std::vector<Numbers> gradients() const {
    std::vector<Numbers> all{to_host(pass.tape.gradient(x))};
    for (const auto* list : {&up, &down}) {
      for (const Param* w : *list) all.push_back(to_host(w->gradient()));
    }
    return all;
  }

  Pass pass;
  std::vector<Param*> up, down;
  Tensor x;
};

class RecomputeIn : public ::testing::TestWithParam<DType> {
 protected:
  static Precision precision() {
    return GetParam() == DType::bf16  ? Precision::bf16()
           : GetParam() == DType::f64 ? Precision::f64()
                                      : Precision::f32();
  }
};

TEST_P(RecomputeIn, GivesTheSameBitsAsNotRecomputing) {
  Stack plain(precision()), again(precision());
  const Tensor a = plain.forward(false), b = again.forward(true);
  EXPECT_EQ(to_host(a), to_host(b));
  plain.backward(a);
  again.backward(b);
  EXPECT_EQ(plain.gradients(), again.gradients());
}

TEST_P(RecomputeIn, NeedsLessMemory) {
  Stack plain(precision()), again(precision());
  plain.backward(plain.forward(false));
  again.backward(again.forward(true));
  EXPECT_LT(again.pass.arena.peak(), plain.pass.arena.peak());
}

INSTANTIATE_TEST_SUITE_P(Precisions, RecomputeIn, ::testing::Values(DType::f32, DType::bf16, DType::f64),
                         [](const auto& one) { return name_of(one.param); });

TEST(Recompute, WasTestedWithDropoutOn) {
  Stack on(Precision::f32()), off(Precision::f32());
  off.pass.cx.training = false;
  EXPECT_NE(to_host(on.forward(true)), to_host(off.forward(true)));
}

TEST(Recompute, UsesTheRandomNumbersOfTheForwardPass) {
  Stack plain(Precision::f32()), again(Precision::f32());
  const Tensor a = plain.forward(false), b = again.forward(true);
  again.pass.cx.rng.step = 1000;
  again.pass.cx.training = false;
  plain.backward(a);
  again.backward(b);
  EXPECT_EQ(plain.gradients(), again.gradients());
}

TEST(Recompute, WithoutATapeIsTheBlockItself) {
  Stack plain(Precision::f32()), again(Precision::f32());
  plain.pass.cx.tape = again.pass.cx.tape = nullptr;
  EXPECT_EQ(to_host(plain.forward(false)), to_host(again.forward(true)));
  EXPECT_EQ(plain.pass.arena.peak(), again.pass.arena.peak());
}

TEST(Recompute, Nests) {
  Stack plain(Precision::f32()), again(Precision::f32());
  const Tensor a = plain.forward(false);
  const Tensor b = recompute(again.pass.cx, again.x, [&](Context& cx, const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < kBlocks; ++i) y = recompute(cx, y, again.block(i));
    return y;
  });
  EXPECT_EQ(to_host(a), to_host(b));
  plain.backward(a);
  again.backward(b);
  EXPECT_EQ(plain.gradients(), again.gradients());
}

TEST(Recompute, OfAnInputThatIsUsedElsewhereTooGivesTheSameBits) {
  Stack plain(Precision::f32()), again(Precision::f32());
  const Tensor a = ops::add(plain.pass.cx, plain.block(0)(plain.pass.cx, plain.x), plain.x);
  const Tensor b = ops::add(again.pass.cx, recompute(again.pass.cx, again.x, again.block(0)), again.x);
  plain.backward(a);
  again.backward(b);
  EXPECT_EQ(to_host(plain.pass.tape.gradient(plain.x)), to_host(again.pass.tape.gradient(again.x)));
}

TEST(Recompute, OfABlockThatIsNotReachedDoesNothing) {
  Stack s(Precision::f32());
  recompute(s.pass.cx, s.x, s.block(0));
  const Tensor y = ops::scale(s.pass.cx, ops::scale(s.pass.cx, s.x, 1), 1);
  s.backward(y);
  EXPECT_EQ(to_host(s.pass.tape.gradient(s.x)), to_host(s.pass.input(normals(77, kRows * kWidth), {kRows, kWidth})));
}

// As when a probe patches the block's input with something stored.
TEST(Recompute, OfABlockThatIgnoresItsInputGivesItNoGradient) {
  Stack s(Precision::f32());
  const Tensor used = s.pass.gradients.take(DType::f32, {kRows, kWidth});  // gradient memory with something in it
  to_device(used, Numbers(kRows * kWidth, 7.0));
  s.pass.gradients.rewind({});
  const Tensor patch = s.pass.zeros({kRows, kWidth}, DType::f32);
  const Tensor y = recompute(s.pass.cx, s.x, [&](Context& cx, const Tensor&) { return s.block(0)(cx, patch); });
  s.backward(y);
  if (const Tensor dx = s.pass.tape.gradient(s.x)) {
    EXPECT_EQ(to_host(dx), Numbers(kRows * kWidth, 0.0));
  }
  EXPECT_TRUE(s.down[0]->gradient().defined());
}

TEST(Recompute, OfABlockThatDoesNothingPassesTheGradientOn) {
  Stack s(Precision::f32());
  const Tensor y = recompute(s.pass.cx, s.x, [](Context&, const Tensor& x) { return x; });
  EXPECT_EQ(to_host(y), to_host(s.x));
  s.backward(y);
  EXPECT_EQ(to_host(s.pass.tape.gradient(s.x)), to_host(s.pass.input(normals(77, kRows * kWidth), {kRows, kWidth})));
}

TEST(Recompute, RefusesABlockThatChangesTheShape) {
  Stack s(Precision::f32());
  expect_error(
      [&] { recompute(s.pass.cx, s.x, [&](Context& cx, const Tensor& x) { return ops::linear(cx, x, *s.up[0]); }); },
      {"recompute", "f32 [6, 8]", "f32 [6, 32]"});
}

// The input is a slice; the gradient of the columns around it must stay zero.
TEST(Recompute, OfAPartOfATensorGivesTheSameBits) {
  std::vector<Numbers> gradients;
  for (const bool again : {false, true}) {
    Stack s(Precision::f32());
    const Tensor wide = s.pass.input(normals(1, kRows * 3 * kWidth), {kRows, 3 * kWidth});
    const Tensor part = wide.slice(1, kWidth, kWidth);
    s.backward(again ? recompute(s.pass.cx, part, s.block(0)) : s.block(0)(s.pass.cx, part));
    gradients.push_back(to_host(s.pass.tape.gradient(wide)));
    const Numbers left = to_host(s.pass.tape.gradient(wide.slice(1, 0, kWidth)));
    EXPECT_EQ(left, Numbers(kRows * kWidth, 0.0));
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

class DoublingProbe : public Probe {
 public:
  explicit DoublingProbe(Ask answer) : answer_(answer) {}
  Ask ask(Place, Site) const override { return answer_; }
  void visit(Context& cx, const Tap&, Tensor& x) override {
    ++visits;
    if (answer_ == Ask::edit) x = ops::scale(cx, x, 2);
  }
  int visits = 0;

 private:
  Ask answer_;
};

TEST(Recompute, DoesNotShowAReaderTheSameSpotTwice) {
  Stack s(Precision::f32());
  DoublingProbe probe(Ask::read);
  s.pass.cx.probe = &probe;
  s.backward(s.forward(true));
  EXPECT_EQ(probe.visits, kBlocks);
}

TEST(Recompute, AppliesAnEditAgain) {
  Stack plain(Precision::f32()), again(Precision::f32()), unedited(Precision::f32());
  DoublingProbe one(Ask::edit), two(Ask::edit);
  plain.pass.cx.probe = &one;
  again.pass.cx.probe = &two;
  const Tensor a = plain.forward(false), b = again.forward(true);
  EXPECT_NE(to_host(a), to_host(unedited.forward(false)));
  EXPECT_EQ(to_host(a), to_host(b));
  plain.backward(a);
  again.backward(b);
  EXPECT_EQ(one.visits, kBlocks);
  EXPECT_EQ(two.visits, 2 * kBlocks);
  EXPECT_EQ(plain.gradients(), again.gradients());
}

}  // namespace recompute_test
}  // namespace qkv::test
