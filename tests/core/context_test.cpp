#include "core/context.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/says.h"
#include "ops/ops.h"
#include "support/pass.h"

namespace qkv::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void backward(Pass& p, const Tensor& y, const Tensor& dy) {
  p.tape.seed(p.cx, y, dy);
  p.tape.backward(p.cx);
}

TEST(GuardFinite, NamesTheOpThatMadeTheFirstNan) {
  Pass p;
  p.cx.guard_finite = true;
  const Tensor big = p.input(Numbers{1, 2, 3e30, 4e30}, {2, 2});
  const Tensor fine = ops::scale(p.cx, big, 2);
  expect_error([&] { ops::scale(p.cx, fine, 1e20); }, {"scale", "2 of 4", "f32 [2, 2]", "index 2"});
}

TEST(GuardFinite, SaysWhichOfTheNumbersIsTheFirst) {
  Pass p;
  p.cx.guard_finite = true;
  const Tensor x = p.input(Numbers{1, 2, 3, 4, kNan, 6}, {2, 3});
  const Tensor zeros = p.zeros({2, 3}, DType::f32);
  expect_error([&] { ops::add(p.cx, x, zeros); }, {"add", "1 of 6", "index 4"});
}

TEST(GuardFinite, IsOffUnlessAsked) {
  Pass p;
  const Tensor x = p.input(Numbers{kNan}, {1});
  EXPECT_NO_THROW(ops::scale(p.cx, x, 2));
}

TEST(GuardFinite, NamesTheOpWhoseBackwardOverflows) {
  Pass p({.tape = true});
  p.cx.guard_finite = true;
  const Tensor x = p.input(Numbers{1e-30}, {1});
  const Tensor h = ops::activation(p.cx, x, ops::act::relu);
  const Tensor y = ops::scale(p.cx, h, 1e30);  // forward 1, backward 1e30 * 1e30
  const Tensor z = ops::add(p.cx, y, y);
  const Tensor dy = p.zeros({1}, DType::f32);
  to_device(dy, Numbers{1e30});
  expect_error([&] { backward(p, z, dy); }, {"scale", "gradient", "1 of 1"});
}

TEST(GuardFinite, SeesTheGradientOfAnInput) {
  Pass p({.tape = true});
  p.cx.guard_finite = true;
  const Tensor x = p.input(Numbers{1e-30}, {1});
  const Tensor y = ops::scale(p.cx, x, 1e30);
  const Tensor dy = p.zeros({1}, DType::f32);
  to_device(dy, Numbers{1e30});
  expect_error([&] { backward(p, y, dy); }, {"scale", "gradient"});
}

TEST(GuardFinite, SeesTheGradientOfAWeight) {
  Pass p({.tape = true});
  p.cx.guard_finite = true;
  const Param& w = p.param("w", Numbers{1e-30}, {1, 1});
  const Tensor x = p.input(Numbers{1e30}, {1, 1});
  const Tensor y = ops::linear(p.cx, x, w);  // 1; dx is 1 too, only dw overflows
  const Tensor dy = p.zeros({1, 1}, DType::f32);
  to_device(dy, Numbers{1e30});
  expect_error([&] { backward(p, y, dy); }, {"linear", "gradient"});
}

class CountingProbe : public Probe {
 public:
  explicit CountingProbe(Ask answer) : answer_(answer) {}
  Ask ask(Place, Site) const override { return answer_; }
  void visit(Context&, const Tap& tap, Tensor&) override {
    ++visits;
    seen = tap;
  }
  int visits = 0;
  Tap seen;

 private:
  Ask answer_;
};

TEST(Tap, WithoutAProbeTouchesNothing) {
  Pass p;
  Tensor x = p.input(Numbers{1, 2}, {2});
  const std::byte* data = x.data();
  const int64_t used = p.arena.used();
  p.cx.tap({}, Site::resid_pre, x);
  EXPECT_EQ(x.data(), data);
  EXPECT_EQ(p.arena.used(), used);
  EXPECT_EQ(p.cx.ask({}, Site::resid_pre), Ask::none);
}

TEST(Tap, VisitsOnlyAProbeThatReadsOrEdits) {
  for (const auto& [answer, visits] : {std::pair{Ask::none, 0}, std::pair{Ask::stats | Ask::pattern | Ask::rows, 0},
                                       std::pair{Ask::read, 1}, std::pair{Ask::edit, 1}}) {
    Pass p;
    CountingProbe probe(answer);
    p.cx.probe = &probe;
    Tensor x = p.input(Numbers{1}, {1});
    p.cx.tap({}, Site::mlp_out, x);
    EXPECT_EQ(probe.visits, visits) << static_cast<int>(answer);
  }
}

TEST(Tap, SaysWhereItIs) {
  Pass p;
  CountingProbe probe(Ask::read);
  p.cx.probe = &probe;
  const Rows rows = Rows::batch(p.cx, 1, 1);
  Tensor x = p.input(Numbers{1}, {1});
  p.cx.tap({.stack = Stack::cross, .layer = 7}, Site::attn_out, x, &rows);
  EXPECT_EQ(probe.seen.place.stack, Stack::cross);
  EXPECT_EQ(probe.seen.place.layer, 7);
  EXPECT_EQ(probe.seen.site, Site::attn_out);
  EXPECT_EQ(probe.seen.rows, &rows);
}

TEST(Tap, WhileReplayingOnlyEdits) {
  for (const auto& [answer, visits] :
       {std::pair{Ask::read, 0}, std::pair{Ask::edit, 1}, std::pair{Ask::read | Ask::edit, 1}}) {
    Pass p;
    CountingProbe probe(answer);
    p.cx.probe = &probe;
    p.cx.replaying = true;
    Tensor x = p.input(Numbers{1}, {1});
    p.cx.tap({}, Site::mlp_out, x);
    EXPECT_EQ(probe.visits, visits) << static_cast<int>(answer);
  }
}

class ReplacingProbe : public Probe {
 public:
  explicit ReplacingProbe(Tensor with) : with_(with) {}
  Ask ask(Place, Site) const override { return Ask::edit; }
  void visit(Context&, const Tap&, Tensor& x) override { x = with_; }

 private:
  Tensor with_;
};

TEST(Tap, TakesTheEditedTensor) {
  Pass p;
  ReplacingProbe probe(p.input(Numbers{8, 9}, {2}));
  p.cx.probe = &probe;
  Tensor x = p.input(Numbers{1, 2}, {2});
  p.cx.tap({}, Site::embed, x);
  EXPECT_EQ(to_host(x), Numbers({8, 9}));
}

TEST(Tap, RefusesAnEditThatChangesShapeOrDtype) {
  Pass p;
  Tensor x = p.input(Numbers{1, 2}, {2});
  ReplacingProbe longer(p.input(Numbers{1, 2, 3}, {3}));
  p.cx.probe = &longer;
  expect_error([&] { p.cx.tap({.layer = 4}, Site::mlp_post, x); }, {"mlp.post", "layer 4", "f32 [2]", "f32 [3]"});

  x = p.input(Numbers{1, 2}, {2});
  ReplacingProbe wider(p.input(Numbers{1, 2}, {2}, DType::f64));
  p.cx.probe = &wider;
  expect_error([&] { p.cx.tap({}, Site::mlp_post, x); }, {"f32 [2]", "f64 [2]"});
}

TEST(Context, MakesNodesOnlyUnderATape) {
  Pass without, with({.tape = true});
  EXPECT_EQ(without.cx.make({2}, DType::f32).node(), -1);
  EXPECT_GE(with.cx.make({2}, DType::f32).node(), 0);
  EXPECT_EQ(with.cx.constant({2}, DType::f32).node(), -1);
}

TEST(Context, UploadsNumbersInTheExactDtype) {
  const std::vector<float> numbers{0.5F, -1.25F, 3};
  for (const auto& [precision, dtype] :
       {std::pair{Precision::f32(), DType::f32}, std::pair{Precision::f64(), DType::f64},
        std::pair{Precision::bf16(), DType::f32}}) {
    Pass p({.precision = precision});
    const Tensor t = p.cx.upload(numbers, {3});
    EXPECT_EQ(t.dtype(), dtype);
    EXPECT_EQ(to_host(t), Numbers({0.5, -1.25, 3}));
    expect_says([&] { p.cx.upload(numbers, {2, 2}); }, {"upload", "3", "[2, 2]"});
  }
}

TEST(Context, UploadsIndices) {
  Pass p;
  const std::vector<int32_t> ids{4, -1, 7};
  const Tensor t = p.cx.upload(ids);
  EXPECT_EQ(t.dtype(), DType::i32);
  EXPECT_EQ(to_host(t), Numbers({4, -1, 7}));
}

}  // namespace
}  // namespace qkv::test
