// Inputs without rows are valid.
#include "ops/errors/refusals.h"

namespace qkv::test {
namespace errors_test {

struct Empty {
  const char* name;
  Tensor (*call)(Bench&);  // the output
  Shape shape;             // that it must have
  friend void PrintTo(const Empty& one, std::ostream* out) { *out << one.name; }
};

class NoRows : public ::testing::TestWithParam<Empty> {};

// Forward and backward; a weight that was used but saw no row gets a gradient of zeros, not of what lay in memory.
TEST_P(NoRows, GoThrough) {
  Bench b;
  b.cx.training = true;
  b.tape();
  const Tensor y = GetParam().call(b);
  EXPECT_EQ(y.shape(), GetParam().shape);
  EXPECT_EQ(y.count(), 0);
  if (y.node() < 0) return;
  b.pass.tape.seed(b.cx, y, b.pass.zeros(y.shape(), y.dtype()));
  b.pass.tape.backward(b.cx);
}

INSTANTIATE_TEST_SUITE_P(
    Of, NoRows,
    ::testing::ValuesIn(std::vector<Empty>{
        {"add",
         [](B& b) {
           return ops::add(b.cx, b.floats({0, 3}), b.floats({0, 3}));
         },
         {0, 3}},
        {"scale",
         [](B& b) {
           return ops::scale(b.cx, b.floats({0, 3}), 2);
         },
         {0, 3}},
        {"cast",
         [](B& b) {
           return ops::cast(b.cx, b.floats({0, 3}), DType::f64);
         },
         {0, 3}},
        {"concat",
         [](B& b) {
           return ops::concat(b.cx, b.floats({0, 2, 3}), b.floats({0, 1, 2}));
         },
         {0, 2, 5}},
        {"softmax",
         [](B& b) {
           return ops::softmax(b.cx, b.floats({0, 3}));
         },
         {0, 3}},
        {"softmax_of_no_columns",
         [](B& b) {
           return ops::softmax(b.cx, b.floats({3, 0}));
         },
         {3, 0}},
        {"heads",
         [](B& b) {
           return ops::merge_heads(ops::split_heads(b.floats({0, 6}), 2));
         },
         {0, 6}},
        {"linear",
         [](B& b) {
           return ops::linear(b.cx, b.floats({0, 3}), b.weight({2, 3}));
         },
         {0, 2}},
        {"linear_of_experts",
         [](B& b) {
           return ops::linear(b.cx, b.floats({0, 3}), b.weight({2, 2, 3}), {.groups = b.groups({0, 0})});
         },
         {0, 2}},
        {"feed_forward",
         [](B& b) {
           return ops::feed_forward(b.cx, b.floats({0, 3}),
                                    {.up = {&b.weight({2, 3})}, .gate = {}, .down = {&b.weight({4, 2})}});
         },
         {0, 4}},
        {"linear_of_batches",
         [](B& b) {
           return ops::linear(b.cx, b.floats({2, 0, 3}), b.weight({2, 4, 3}));
         },
         {2, 0, 4}},
        {"embedding",
         [](B& b) {
           return ops::embedding(b.cx, {{.ids = b.ids({0}), .table = &b.weight({5, 3})}});
         },
         {0, 3}},
        {"layer_norm",
         [](B& b) {
           return ops::layer_norm(b.cx, b.floats({0, 3}), {.weight = &b.weight({3})});
         },
         {0, 3}},
        {"rms_norm",
         [](B& b) {
           return ops::rms_norm(b.cx, b.floats({0, 3}), {.weight = &b.weight({3})});
         },
         {0, 3}},
        {"dropout",
         [](B& b) {
           return ops::dropout(b.cx, b.floats({0, 3}), {.p = 0.5F});
         },
         {0, 3}},
        {"activation",
         [](B& b) {
           return ops::activation(b.cx, b.floats({0, 3}), ops::act::silu);
         },
         {0, 3}},
        {"gated",
         [](B& b) {
           return ops::gated(b.cx, b.floats({0, 3}), b.floats({0, 3}), ops::gate::swiglu);
         },
         {0, 3}},
        {"rotary",
         [](B& b) {
           return ops::rotary(b.cx, b.floats({0, 2, 4}), b.ids({0}),
                              {.cos = b.floats({8, 2}), .sin = b.floats({8, 2})});
         },
         {0, 2, 4}},
        {"attention",
         [](B& b) {
           const Tensor q = b.floats({0, 2, 4});
           return ops::attention(b.cx, q, q, q, Rows::batch(b.cx, 0, 4), {}).z;
         },
         {0, 2, 4}},
        {"attention_of_empty_sequences",
         [](B& b) {
           const Tensor q = b.floats({0, 2, 4});
           return ops::attention(b.cx, q, q, q, Rows::batch(b.cx, 3, 0), {.causal = true}).z;
         },
         {0, 2, 4}},
        {"attention_pattern",
         [](B& b) {
           const Tensor q = b.floats({0, 2, 4});
           return ops::attention_pattern(b.cx, q, q, b.floats({0, 2}), Rows::batch(b.cx, 0, 4), {});
         },
         {0, 2, 0}},
        {"route",
         [](B& b) {
           return ops::route(b.cx, b.floats({0, 4}), {.top_k = 2}).weights;
         },
         {0, 2}},
        {"dispatch",
         [](B& b) {
           return ops::dispatch(b.cx, b.floats({0, 3}), ops::plan_dispatch(b.cx, b.ids({0, 2}), 4));
         },
         {0, 3}},
        {"combine",
         [](B& b) {
           return ops::combine(b.cx, b.floats({0, 3}), b.floats({0, 2}), ops::plan_dispatch(b.cx, b.ids({0, 2}), 4));
         },
         {0, 3}},
        {"pool",
         [](B& b) {
           return ops::pool(b.cx, b.floats({0, 3}), Rows::batch(b.cx, 0, 4), ops::Pooling::mean);
         },
         {0, 3}},
        {"cross_entropy",
         [](B& b) {
           return ops::cross_entropy(b.cx, b.floats({0, 3}), b.weight({5, 3}), b.ids({0}), {}).losses;
         },
         {0}},
    }),
    [](const auto& one) { return one.param.name; });

TEST(NoRowsAtAll, ScatterNothing) {
  Bench b;
  const Tensor cache = b.floats({2, 3});
  const Numbers before = to_host(cache);
  ops::scatter_rows(b.cx, cache, b.floats({0, 3}), b.ids({0}));
  EXPECT_EQ(to_host(cache), before);
}

TEST(NoRowsAtAll, LoseNothing) {
  Bench b;
  b.tape();
  Param& head = b.weight({5, 3});
  const ops::Loss loss = ops::cross_entropy(b.cx, b.floats({0, 3}), head, b.ids({0}), {});
  EXPECT_EQ(to_host(loss.loss), Numbers({0}));
  b.pass.tape.backward(b.cx, loss.loss);
  EXPECT_EQ(to_host(head.gradient()), Numbers(15, 0.0));
}

TEST(NoRowsAtAll, OfEmptySequencesPoolToZeros) {
  Bench b;
  for (const auto kind : {ops::Pooling::first, ops::Pooling::last, ops::Pooling::mean}) {
    const Tensor y = ops::pool(b.cx, b.floats({0, 2}), Rows::batch(b.cx, 3, 0), kind);
    EXPECT_EQ(to_host(y), Numbers(6, 0.0));
  }
}

TEST(NoRowsAtAll, LeaveWeightsWithGradientsOfZero) {
  Bench b;
  b.tape();
  Param &w = b.weight({2, 3}), &bias = b.weight({2}), &table = b.weight({4, 3}), &gain = b.weight({3}),
        &shift = b.weight({3}), &sinks = b.weight({2}), &experts = b.weight({2, 2, 2});
  for (const Param* p : {&w, &bias, &table, &gain, &shift, &sinks, &experts}) {
    const Grad g = p->use_gradient(DType::f32);  // memory with something in it
    to_device(g.tensor, Numbers(static_cast<size_t>(g.tensor.count()), 7.0));
  }
  for (Param* p : {&w, &bias, &table, &gain, &shift, &sinks, &experts}) p->clear_gradient();

  Tensor x = ops::embedding(b.cx, {{.ids = b.ids({0}), .table = &table}});
  x = ops::layer_norm(b.cx, x, {.weight = &gain, .bias = &shift});
  x = ops::linear(b.cx, x, w, {.bias = &bias});
  x = ops::linear(b.cx, x, experts, {.groups = b.groups({0, 0})});
  const Tensor heads = ops::split_heads(x, 2);
  const Tensor z = ops::attention(b.cx, heads, heads, heads, Rows::batch(b.cx, 0, 4), {.sinks = &sinks}).z;
  b.pass.tape.seed(b.cx, z, b.pass.zeros(z.shape(), z.dtype()));
  b.pass.tape.backward(b.cx);
  for (const Param* p : {&w, &bias, &table, &gain, &shift, &sinks, &experts}) {
    ASSERT_TRUE(p->gradient().defined());
    EXPECT_EQ(to_host(p->gradient()), Numbers(static_cast<size_t>(p->shape().count()), 0.0)) << p->shape();
  }
}

TEST(NoWeights, HaveANormOfZero) {
  Bench b;
  EXPECT_EQ(ops::global_norm(b.cx, {}), 0);
  const Param* without_gradient[] = {&b.weight({3})};
  EXPECT_EQ(ops::global_norm(b.cx, without_gradient), 0);
  EXPECT_EQ(ops::clip_factor(0, 1), 1);
}

TEST(NoWeights, OfSizeZeroTakeAStep) {
  Bench b;
  ops::AdamState state = b.adam({0, 3});
  ops::adamw_step(b.cx, b.trained({0, 3}), state, {});
  EXPECT_EQ(state.step, 1);
  ops::sgd_step(b.cx, b.trained({0, 3}), b.floats({0, 3}), {.momentum = 0.9});
  ops::muon_step(b.cx, b.trained({0, 3}), b.floats({0, 3}), {});
}

}  // namespace errors_test
}  // namespace qkv::test
