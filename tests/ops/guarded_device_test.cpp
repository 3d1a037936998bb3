// Every op, forward and backward, on a device whose memory the host cannot touch: the same bits as on the CPU.
#include "support/guarded_device.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>

#include "ops/dropout.h"
#include "ops/optim.h"
#include "support/pass.h"

namespace qkv::test {
namespace guarded_device_test {

// One op under a tape: its inputs, weights and outputs, and all their numbers afterwards.
class Traced {
 public:
  explicit Traced(Pass& p) : pass(p), cx(p.cx) {
    cx.training = true;
    cx.rng = {.seed = 3, .step = 1};
  }

  Tensor input(const Shape& shape) {
    const Tensor t = pass.input(normals(next(), shape.count()), shape);
    inputs_.push_back(t);
    return t;
  }
  Param& weight(const Shape& shape) {
    Param& w = pass.param("w", normals(next(), shape.count(), 0.5), shape);
    weights_.push_back(&w);
    return w;
  }
  Tensor ids(const std::vector<int32_t>& values) { return cx.upload(values); }

  void output(const Tensor& t) { outputs_.push_back(t); }  // the first is the one backward starts from

  std::vector<Numbers> numbers() {
    std::vector<Numbers> all;
    for (const Tensor& t : outputs_) all.push_back(to_host(t));
    const Tensor y = outputs_.front();
    if (cx.tape != nullptr && y.node() >= 0) {
      const Tensor dy = cx.constant(y.shape(), y.dtype());
      to_device(dy, normals(77, y.count()));
      pass.tape.seed(cx, y, dy);
      pass.tape.backward(cx);
      for (const Tensor& t : inputs_) {
        const Tensor g = pass.tape.gradient(t);
        all.push_back(g.defined() ? to_host(g) : Numbers{});
      }
    }
    for (const Param* w : weights_) {
      all.push_back(to_host(w->master()));
      all.push_back(w->gradient().defined() ? to_host(w->gradient()) : Numbers{});
    }
    return all;
  }

  Pass& pass;
  Context& cx;

 private:
  uint64_t next() { return ++seed_; }

  uint64_t seed_ = 0;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<Param*> weights_;
};

struct Case {
  std::string name;
  std::function<void(Traced&)> run;
  bool tape = true;
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

class Guarded : public ::testing::TestWithParam<Case> {
 protected:
  static std::vector<Numbers> run(const Kernels& kernels, Device* device, Precision precision) {
    Pass pass({.kernels = &kernels, .precision = precision, .device = device, .tape = GetParam().tape});
    Traced traced(pass);
    GetParam().run(traced);
    return traced.numbers();
  }
};

TEST_P(Guarded, GivesTheBitsOfTheCpu) {
  for (const Precision precision : {Precision::f32(), Precision::bf16()}) {
    GuardedDevice device;
    const auto cpu = run(kernels::ref::table(), nullptr, precision);
    const auto guarded = run(guarded_kernels(), &device, precision);
    ASSERT_EQ(cpu.size(), guarded.size());
    for (size_t i = 0; i < cpu.size(); ++i) EXPECT_EQ(cpu[i], guarded[i]) << "number " << i;
    EXPECT_FALSE(cpu.front().empty());
    EXPECT_NE(cpu.front(), Numbers(cpu.front().size(), 0.0)) << "a result of zeros proves nothing";
  }
}

using T = Traced;

void trained_step(T& t, const std::function<void(Param&, const Tensor&)>& step, const Shape& shape) {
  Param& w = t.weight(shape);
  to_device(w.use_gradient(DType::f32).tensor, normals(5, shape.count()));
  const Tensor buffer = t.pass.zeros(shape, DType::f32);
  step(w, buffer);
  step(w, buffer);
  t.output(w.master());
  t.output(buffer);
}

struct All : Probe {
  std::vector<Numbers> seen;
  Tensor classes;
  Ask ask(Place, Site site) const override {
    if (site == Site::attn_probs) return Ask::stats | Ask::pattern;
    return site == Site::attn_scores ? Ask::rows : Ask::read;
  }
  void visit(Context&, const Tap&, Tensor& x) override { seen.push_back(to_host(x)); }
  StatsWanted stats_wanted(Place) const override { return {.offsets = {0, 1}, .key_classes = classes, .classes = 2}; }
  void visit_stats(Context&, const Tap&, const AttentionStats& s) override {
    for (const Tensor& t : {s.entropy, s.distance, s.first, s.highest, s.argmax, s.at_offset, s.in_class}) {
      seen.push_back(to_host(t));
    }
  }
  std::vector<int32_t> rows_wanted(Place) const override { return {1, 3}; }
};

std::vector<Case> every_op() {
  return {
      Case{"add",
           [](T& t) {
             t.output(ops::add(t.cx, t.input({3, 4}), t.input({3, 4})));
           }},
      Case{"blocks",
           [](T& t) {
             Param w("w", t.pass.engine.device(), Format(Block::q4, 32), {20, 64});
             ops::quantize(t.cx, w, t.input({20, 64}));
             t.output(ops::dequantize(t.cx, w, DType::f32));
             t.output(ops::linear(t.cx, t.input({3, 64}), w));
             t.output(ops::embedding(t.cx, {{t.ids({19, 0, 7}), &w}}));
           },
           false},
      Case{"scale",
           [](T& t) {
             t.output(ops::scale(t.cx, t.input({3, 4}), 1.5));
           }},
      Case{"cast",
           [](T& t) {
             t.output(ops::cast(t.cx, t.input({3, 4}), DType::bf16));
           }},
      Case{"cast_of_columns",
           [](T& t) {
             t.output(ops::cast(t.cx, t.input({3, 4}).transposed(0, 1), DType::f64));
           }},
      Case{"concat",
           [](T& t) {
             t.output(ops::concat(t.cx, t.input({3, 2, 4}), t.input({3, 2, 2})));
           }},
      Case{"concat_shared",
           [](T& t) {
             t.output(ops::concat(t.cx, t.input({3, 2, 4}), t.input({3, 1, 2})));
           }},
      Case{"softmax",
           [](T& t) {
             t.output(ops::softmax(t.cx, t.input({3, 4})));
           }},
      Case{"heads",
           [](T& t) {
             t.output(ops::merge_heads(ops::scale(t.cx, ops::split_heads(t.input({3, 4}), 2), 2)));
           }},
      Case{"linear",
           [](T& t) {
             t.output(ops::linear(t.cx, t.input({3, 4}), t.weight({5, 4}), {.bias = &t.weight({5})}));
           }},
      Case{"linear_residual",
           [](T& t) {
             t.output(ops::linear(t.cx, t.input({3, 4}), t.weight({5, 4}), {.residual = {t.input({3, 5})}}));
           }},
      Case{"feed_forward",
           [](T& t) {
             t.output(ops::feed_forward(t.cx, ops::cast(t.cx, t.input({3, 4}), t.cx.precision.compute),
                                        {.up = {&t.weight({6, 4}), &t.weight({6})},
                                         .gate = {&t.weight({6, 4})},
                                         .down = {&t.weight({5, 6}), &t.weight({5})},
                                         .form = ops::gate::swiglu,
                                         .residual = {t.input({3, 5})}}));
           }},
      Case{"feed_forward_without_gate",
           [](T& t) {
             t.output(ops::feed_forward(
                 t.cx, ops::cast(t.cx, t.input({3, 4}), t.cx.precision.compute),
                 {.up = {&t.weight({6, 4})}, .gate = {}, .down = {&t.weight({5, 6})}, .form = {ops::act::gelu_tanh}}));
           }},
      Case{"linear_of_experts",
           [](T& t) {
             t.output(ops::linear(
                 t.cx, t.input({5, 4}), t.weight({3, 2, 4}),
                 {.bias = &t.weight({3, 2}), .groups = ops::RowGroups::of_sizes(t.cx, std::vector<int32_t>{2, 0, 3})}));
           }},
      Case{"linear_of_batches",
           [](T& t) {
             t.output(ops::linear(t.cx, t.input({2, 3, 4}), t.weight({2, 5, 4})));
           }},
      Case{"embedding",
           [](T& t) {
             t.output(ops::embedding(t.cx, {{.ids = t.ids({4, 0, 4}), .table = &t.weight({5, 3}), .factor = 2},
                                            {.ids = t.ids({0, 1, 2}), .table = &t.weight({4, 3})}}));
           }},
      Case{"scatter_rows",
           [](T& t) {
             const Tensor cache = t.pass.zeros({4, 2, 3}, DType::f32);
             ops::scatter_rows(t.cx, cache, t.input({2, 2, 3}), t.ids({3, 1}));
             t.output(cache);
           },
           false},
      Case{"layer_norm",
           [](T& t) {
             t.output(ops::layer_norm(t.cx, t.input({3, 4}), {.weight = &t.weight({4}), .bias = &t.weight({4})}));
           }},
      Case{"rms_norm",
           [](T& t) {
             t.output(ops::rms_norm(t.cx, t.input({3, 4}), {.weight = &t.weight({4}), .offset = 1}));
           }},
      Case{"dropout",
           [](T& t) {
             t.output(ops::dropout(t.cx, t.input({3, 16}), {.p = 0.4F}));
           }},
      Case{"dropout_to_stream",
           [](T& t) {
             t.cx.training = true;
             t.output(ops::add_residual(t.cx, {.x = t.input({3, 16}), .dropout = ops::dropout_of(t.cx, {.p = 0.4F})},
                                        t.input({3, 16})));
           }},
      Case{"activation",
           [](T& t) {
             t.output(ops::activation(t.cx, t.input({3, 4}), ops::act::gelu_erf));
           }},
      Case{"gated",
           [](T& t) {
             t.output(ops::gated(t.cx, t.input({3, 4}), t.input({3, 4}), ops::gate::clamped_swiglu));
           }},
      Case{"rotary",
           [](T& t) {
             const Tensor cos = t.input({6, 2}), sin = t.input({6, 2});
             t.output(ops::rotary(t.cx, t.input({3, 2, 4}), t.ids({5, 0, 2}), {.cos = cos, .sin = sin}));
           }},
      Case{"attention",
           [](T& t) {
             const std::vector<int32_t> lengths{3, 2};
             const Tensor importance = t.pass.zeros({5, 4}, DType::f32);
             const ops::Attended out = ops::attention(t.cx, t.input({5, 4, 4}), t.input({5, 2, 4}), t.input({5, 2, 3}),
                                                      Rows::ragged(t.cx, lengths),
                                                      {.softcap = 3,
                                                       .causal = true,
                                                       .window = 2,
                                                       .sinks = &t.weight({4}),
                                                       .dropout = 0.3F,
                                                       .importance = importance});
             t.output(out.z);
             t.output(out.lse);
           }},
      Case{"attention_with_biases",
           [](T& t) {
             const Tensor slopes = t.input({2}), mask = t.input({1, 1, 4, 4});
             t.output(ops::attention(t.cx, t.input({8, 2, 4}), t.input({8, 2, 4}), t.input({8, 2, 4}),
                                     Rows::batch(t.cx, 2, 4),
                                     {.kv_map = t.ids({1, 0}),
                                      .slopes = slopes,
                                      .bias = &t.weight({2, 3}),
                                      .buckets = t.ids({0, 1, 2}),
                                      .mask = mask})
                          .z);
           }},
      Case{"attention_on_pages",
           [](T& t) {
             const Rows rows = Rows::make(t.cx, {{.rows = 1, .keys = 3, .position = 2}}, 1, Rows::kPaged);
             t.output(ops::attention(t.cx, t.input({1, 2, 4}), t.input({4, 2, 2, 4}), t.input({4, 2, 2, 4}), rows,
                                     {.causal = true, .table = t.ids({3, 1}).view({1, 2})})
                          .z);
           },
           false},
      Case{"attention_on_pages_of_bytes",
           [](T& t) {
             const Rows rows = Rows::make(t.cx, {{.rows = 1, .keys = 3, .position = 2}}, 1, Rows::kPaged);
             const Tensor bytes = t.pass.zeros({8, 2, 4}, DType::i8), scales = t.pass.zeros({8, 2}, DType::f32);
             ops::scatter_rows(t.cx, bytes, t.input({3, 2, 4}), t.ids({6, 7, 2}), scales);
             const Tensor pages = bytes.view({4, 2, 2, 4}), beside = scales.view({4, 2, 2});
             t.output(ops::attention(
                          t.cx, t.input({1, 2, 4}), pages, pages, rows,
                          {.causal = true, .table = t.ids({3, 1}).view({1, 2}), .k_scales = beside, .v_scales = beside})
                          .z);
           },
           false},
      Case{"attention_pattern",
           [](T& t) {
             const Tensor q = t.input({4, 2, 4}), k = t.input({4, 2, 4});
             const Rows rows = Rows::batch(t.cx, 1, 4);
             const ops::Attended out = ops::attention(t.cx, q, k, k, rows, {.causal = true});
             t.output(ops::attention_pattern(t.cx, q, k, out.lse, rows, {.causal = true}, {.which = t.ids({3, 0})}));
           }},
      Case{"attention_watched",
           [](T& t) {
             All probe;
             probe.classes = t.ids({0, 1, 1, 0});
             t.cx.probe = &probe;
             const Tensor q = t.input({4, 2, 4}), k = t.input({4, 2, 4});
             t.output(ops::attention(t.cx, q, k, k, Rows::batch(t.cx, 1, 4), {.causal = true}).z);
             t.cx.probe = nullptr;
             for (const Numbers& seen : probe.seen) {
               const Tensor kept = t.pass.zeros({static_cast<int64_t>(seen.size())}, DType::f64);
               to_device(kept, seen);
               t.output(kept);
             }
           }},
      Case{"attention_sums",
           [](T& t) {
             const auto some = [&](const Shape& shape) { return ops::cast(t.cx, t.input(shape), DType::f32); };
             const AttentionStats stats{.entropy = some({4, 2}),
                                        .distance = some({4, 2}),
                                        .first = some({4, 2}),
                                        .argmax = t.ids({0, 1, 2, 1, 0, 0, 3, 2}).view({4, 2}),
                                        .offsets = t.ids({1}),
                                        .at_offset = some({4, 2, 1})};
             const StatsColumns at{.offsets = 1, .wanted = kMostWanted};
             const Tensor y = t.pass.zeros({2, 2, at.count()}, DType::f64);
             const ops::StatsRowsOnHost rows{.groups = {{.rows = 3}, {.first_row = 3, .rows = 1}},
                                             .weights = std::vector<std::array<double, 3>>(4, {1, 0.5, 1}),
                                             .labels = {7, 8, 7, 9},
                                             .wanted = std::vector<std::array<int32_t, kMostWanted>>(4, {7, 9})};
             ops::attention_sums(t.cx, stats, ops::stats_rows(t.cx, rows), y);
             t.output(y);
           },
           false},
      Case{"experts",
           [](T& t) {
             const Tensor x = t.input({4, 3}), logits = t.input({4, 5});
             const ops::Routed r =
                 ops::route(t.cx, logits, {.top_k = 2, .sigmoid = true, .renormalise = true}, &t.weight({5}));
             const ops::Dispatch plan = ops::plan_dispatch(t.cx, r.ids, 5);
             t.output(ops::combine(t.cx, ops::dispatch(t.cx, x, plan), r.weights, plan));
             t.output(ops::scale_rows(t.cx, x, t.input({4, 1})));
             for (const Tensor& index : {r.ids, plan.order, plan.slots, plan.groups.starts()}) t.output(index);
           }},
      Case{"balance_loss",
           [](T& t) {
             const Tensor logits = t.input({4, 5});
             const ops::Routed r = ops::route(t.cx, logits, {.top_k = 2});
             const std::vector<ops::RouterUse> layers{{logits, r.ids}};
             t.output(ops::balance_loss(t.cx, layers, 0.5));
           }},
      Case{"pool",
           [](T& t) {
             const std::vector<int32_t> lengths{3, 2};
             t.output(ops::pool(t.cx, t.input({5, 3}), Rows::ragged(t.cx, lengths), ops::Pooling::mean));
           }},
      Case{"cross_entropy",
           [](T& t) {
             const ops::Loss loss = ops::cross_entropy(
                 t.cx, t.input({3, 4}), t.weight({6, 4}), t.ids({5, -100, 0}),
                 {.bias = &t.weight({6}), .rule = {.smoothing = 0.1, .z_loss = 0.01, .softcap = 5}, .divisor = 2});
             t.output(loss.loss);
             t.output(loss.losses);
           }},
      Case{"guard_finite",
           [](T& t) {
             t.cx.guard_finite = true;
             t.output(ops::softmax(t.cx, ops::scale(t.cx, t.input({3, 4}), 2)));
           }},
      Case{"adamw",
           [](T& t) {
             ops::AdamState state{.m = t.pass.zeros({3, 4}, DType::f32), .v = t.pass.zeros({3, 4}, DType::f32)};
             trained_step(t, [&](Param& w, const Tensor&) { ops::adamw_step(t.cx, w, state, {.decay = 0.1}); }, {3, 4});
             t.output(state.v);
           },
           false},
      Case{"sgd",
           [](T& t) {
             trained_step(
                 t, [&](Param& w, const Tensor& b) { ops::sgd_step(t.cx, w, b, {.momentum = 0.9, .decay = 0.1}); },
                 {3, 4});
           },
           false},
      Case{"muon",
           [](T& t) {
             trained_step(t, [&](Param& w, const Tensor& b) { ops::muon_step(t.cx, w, b, {.decay = 0.1}); }, {2, 4, 3});
           },
           false},
      Case{"global_norm",
           [](T& t) {
             Param& w = t.weight({3, 4});
             to_device(w.use_gradient(DType::f32).tensor, normals(5, 12));
             const Param* all[] = {&w};
             const Tensor norm = t.pass.zeros({1}, DType::f64);
             to_device(norm, Numbers{ops::global_norm(t.cx, all)});
             t.output(norm);
           },
           false}};
}

INSTANTIATE_TEST_SUITE_P(Op, Guarded, ::testing::ValuesIn(every_op()), [](const auto& one) { return one.param.name; });

TEST(GuardedDevice, CarriesBytesInAndOut) {
  GuardedDevice device;
  const Storage s(device, DType::i32, 3);
  const std::vector<int32_t> in{1, 2, 3};
  std::vector<int32_t> out(3);
  device.upload(s.data(), in.data(), 12);
  device.download(out.data(), s.data(), 12);
  EXPECT_EQ(out, in);
}

TEST(GuardedDevice, IsOpenWhileOpened) {
  GuardedDevice device;
  const Storage s(device, DType::i32, 1);
  device.open();
  *reinterpret_cast<volatile int32_t*>(s.data()) = 5;
  device.close();
  int32_t out = 0;
  device.download(&out, s.data(), 4);
  EXPECT_EQ(out, 5);
}

// The sanitizer catches the signal first and ends the program in its own way.
#if defined(__SANITIZE_ADDRESS__)
#define EXPECT_SEGMENTATION_FAULT(statement) EXPECT_DEATH(statement, "SEGV")
#else
#define EXPECT_SEGMENTATION_FAULT(statement) EXPECT_EXIT(statement, ::testing::KilledBySignal(SIGSEGV), "")
#endif

TEST(GuardedDeviceDeathTest, AHostThatReadsItDies) {
  GuardedDevice device;
  const Storage s(device, DType::i32, 1);
  const int32_t zero = 0;
  device.upload(s.data(), &zero, 4);
  EXPECT_SEGMENTATION_FAULT(std::exit(*reinterpret_cast<volatile int32_t*>(s.data())));
}

TEST(GuardedDeviceDeathTest, AHostThatWritesItDies) {
  GuardedDevice device;
  const Storage s(device, DType::i32, 1);
  EXPECT_SEGMENTATION_FAULT(*reinterpret_cast<volatile int32_t*>(s.data()) = 1);
}

TEST(GuardedDeviceDeathTest, AKernelOfTheCpuDiesOnIt) {
  GuardedDevice device;
  Pass pass({.kernels = &kernels::ref::table(), .device = &device});
  const Tensor x = pass.input(Numbers{1, 2}, {2});
  EXPECT_SEGMENTATION_FAULT(ops::add(pass.cx, x, x));
}

}  // namespace guarded_device_test
}  // namespace qkv::test
