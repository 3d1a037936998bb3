// A pass on a planning arena with kernels that do nothing predicts the memory of the real pass.
#include <gtest/gtest.h>

#include "core/recompute.h"
#include "ops/ops.h"
#include "ops/optim.h"
#include "support/pass.h"

namespace qkv::test {
namespace plan_test {

constexpr int64_t kVocabulary = 20, kWidth = 16, kHeads = 4, kInner = 24, kExperts = 3, kBatch = 2, kLength = 7;
constexpr int64_t kRows = kBatch * kLength;

class Model {
 public:
  explicit Model(Pass& p) : p_(p) {}

  // Two blocks, one with a gated feed-forward and one with experts; then the loss and its gradient.
  void step(bool again) {
    Context& cx = p_.cx;
    cx.training = true;
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < kRows; ++i) ids.push_back(i % int32_t{kVocabulary});
    const Tensor tokens = cx.upload(ids);
    const Rows rows = Rows::batch(cx, kBatch, kLength);
    Param& embed = weight({kVocabulary, kWidth});
    Param &q = weight({kWidth, kWidth}), &k = weight({kWidth / 2, kWidth}), &v = weight({kWidth / 2, kWidth});
    Param &o = weight({kWidth, kWidth}), &norm = weight({kWidth});
    Param &up = weight({2 * kInner, kWidth}), &down = weight({kWidth, kInner});
    Param &router = weight({kExperts, kWidth}), &expert = weight({kExperts, kWidth, kWidth});

    const auto attend = [&](Context& c, const Tensor& x) {
      const Tensor n = ops::rms_norm(c, x, {.weight = &norm});
      const auto heads = [&](const Param& w, int64_t count) { return ops::split_heads(ops::linear(c, n, w), count); };
      const ops::Attended z = ops::attention(c, heads(q, kHeads), heads(k, kHeads / 2), heads(v, kHeads / 2), rows,
                                             {.causal = true, .dropout = 0.1F});
      return ops::add(c, x, ops::linear(c, ops::merge_heads(z.z), o));
    };
    const auto feed = [&](Context& c, const Tensor& x) {
      const Tensor both = ops::linear(c, ops::rms_norm(c, x, {.weight = &norm}), up);
      const Tensor h = ops::gated(c, both.slice(-1, 0, kInner), both.slice(-1, kInner, kInner), ops::gate::swiglu);
      return ops::add(c, x, ops::dropout(c, ops::linear(c, h, down), {.p = 0.1F}));
    };
    const auto route = [&](Context& c, const Tensor& x) {
      const Tensor n = ops::layer_norm(c, x, {.weight = &norm});
      const ops::Routed r = ops::route(c, ops::linear(c, n, router, {.dtype = c.precision.exact}), {.top_k = 2});
      const ops::Dispatch plan = ops::plan_dispatch(c, r.ids, kExperts);
      const Tensor z = ops::linear(c, ops::dispatch(c, n, plan), expert, {.groups = plan.groups});
      return ops::add(c, x, ops::combine(c, z, r.weights, plan));
    };
    const auto part = [&](const auto& f, const Tensor& x) { return again ? recompute(cx, x, f) : f(cx, x); };

    Tensor x = ops::embedding(cx, {{.ids = tokens, .table = &embed}});
    x = part(route, part(attend, part(feed, part(attend, x))));
    const ops::Loss loss =
        ops::cross_entropy(cx, ops::rms_norm(cx, x, {.weight = &norm}), embed, tokens, {.divisor = kRows});
    cx.tape->backward(cx, loss.loss);
    // The optimiser's working memory is part of the plan too.
    ops::muon_step(cx, q, buffer_, {});
  }

 private:
  Param& weight(const Shape& shape) {
    if (!buffer_.defined()) buffer_ = p_.cx.constant({kWidth, kWidth}, p_.cx.precision.exact);
    ++seed_;
    return p_.param("w" + std::to_string(seed_), normals(seed_, shape.count(), 0.3), shape);
  }

  Pass& p_;
  Tensor buffer_;
  uint64_t seed_ = 0;
};

struct Setting {
  std::string name;
  Precision precision;
  bool recompute = false;
  friend void PrintTo(const Setting& one, std::ostream* out) { *out << one.name; }
};

class PlanOf : public ::testing::TestWithParam<Setting> {};

TEST_P(PlanOf, ATrainingStepIsItsPeakToTheByte) {
  Pass dry({.kernels = &Kernels::none(), .precision = GetParam().precision, .tape = true, .mode = Arena::Mode::plan});
  Pass real({.precision = GetParam().precision, .tape = true});
  Model(dry).step(GetParam().recompute);
  Model(real).step(GetParam().recompute);
  EXPECT_EQ(dry.arena.peak(), real.arena.peak());
  EXPECT_EQ(dry.gradients.peak(), real.gradients.peak());
  EXPECT_EQ(dry.arena.used(), real.arena.used());
  EXPECT_EQ(dry.arena.reserved(), 0);
  EXPECT_GT(real.arena.peak(), kRows * kWidth * 4 * 10);
  EXPECT_GT(real.gradients.peak(), kRows * kWidth * 4);
}

INSTANTIATE_TEST_SUITE_P(Settings, PlanOf,
                         ::testing::Values(Setting{"f32", Precision::f32()}, Setting{"f64", Precision::f64()},
                                           Setting{"bf16", Precision::bf16()},
                                           Setting{"f32_recompute", Precision::f32(), true},
                                           Setting{"bf16_recompute", Precision::bf16(), true}),
                         [](const auto& one) { return one.param.name; });

// A plan of the model that will train: its weights are the same objects.
class PlanWithTheRealWeights : public ::testing::Test {
 protected:
  PlanWithTheRealWeights() { to_device(w_.master(), Numbers{1, 2, 3, 4}); }

  void run(Pass& p) {
    const Tensor x = p.cx.constant({1, 2}, p.cx.precision.compute);
    if (!p.arena.planning()) to_device(x, Numbers{1, 10});
    const Tensor y = ops::linear(p.cx, x, w_);
    if (!p.arena.planning()) {
      EXPECT_EQ(to_host(y), Numbers({21, 43}));
    }
    const Tensor dy = p.cx.constant({1, 2}, y.dtype());
    if (!p.arena.planning()) to_device(dy, Numbers{1, 2});
    p.tape.seed(p.cx, y, dy);
    p.tape.backward(p.cx);
  }

  Param w_{"w", cpu_device(), DType::f32, {2, 2}};
};

TEST_F(PlanWithTheRealWeights, LeavesTheirBf16FormToTheRealPass) {
  Pass dry({.kernels = &Kernels::none(), .precision = Precision::bf16(), .tape = true, .mode = Arena::Mode::plan});
  Pass real({.precision = Precision::bf16(), .tape = true});
  run(dry);
  run(real);
}

TEST_F(PlanWithTheRealWeights, LeavesTheirGradientEmpty) {
  Pass dry({.kernels = &Kernels::none(), .tape = true, .mode = Arena::Mode::plan});
  Pass real({.tape = true});
  run(dry);
  EXPECT_FALSE(w_.gradient().defined());
  run(real);
  EXPECT_EQ(to_host(w_.gradient()), Numbers({1, 10, 2, 20}));
}

TEST_F(PlanWithTheRealWeights, LeavesAGradientThatIsThereAlone) {
  Pass first({.tape = true}), dry({.kernels = &Kernels::none(), .tape = true, .mode = Arena::Mode::plan});
  Pass second({.tape = true});
  run(first);
  run(dry);
  run(second);
  EXPECT_EQ(to_host(w_.gradient()), Numbers({2, 20, 4, 40}));
}

}  // namespace plan_test
}  // namespace qkv::test
