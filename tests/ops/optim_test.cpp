// Optimiser steps against their formulas in double, written out here once more and element by element.
#include "ops/optim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/pass.h"

namespace qkv::test {
namespace optim_test {

constexpr double kFactor = 0.7;

// A weight whose gradient is `g`.
Param& weight_with_gradient(Pass& pass, const Numbers& w, const Numbers& g, const Shape& shape) {
  Param& p = pass.param("w", w, shape);
  to_device(p.use_gradient(pass.cx.precision.exact).tensor, g);
  return p;
}

double bound(Precision precision) {
  return precision.exact == DType::f64 ? 1e-26 : 1e-12;
}

std::vector<Pass::Options> setups() {
  std::vector<Pass::Options> all;
  for (const Kernels* table : kernels::all_tables()) {
    for (const Precision precision : {Precision::f32(), Precision::f64()}) {
      all.push_back({.kernels = table, .precision = precision, .threads = 2});
    }
  }
  return all;
}

TEST(Optim, AdamWFollowsItsFormula) {
  for (const Pass::Options& setup : setups()) {
    Pass pass(setup);
    const Shape shape{3, 7};
    Numbers w = normals(1, 21), m(21, 0.0), v(21, 0.0);
    Param& p = weight_with_gradient(pass, w, normals(2, 21), shape);
    ops::AdamState state{pass.zeros(shape, setup.precision.exact), pass.zeros(shape, setup.precision.exact)};
    const ops::AdamW rule{.lr = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .decay = 0.1};
    for (int t = 1; t <= 5; ++t) {
      const Numbers g = normals(static_cast<uint64_t>(t) + 10, 21);
      to_device(p.gradient(), g);
      ops::adamw_step(pass.cx, p, state, rule, kFactor);
      for (size_t i = 0; i < 21; ++i) {
        const double grad = round_to(setup.precision.exact, g[i]) * kFactor;
        m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * grad;
        v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * grad * grad;
        const double mhat = m[i] / (1 - std::pow(rule.beta1, t)), vhat = v[i] / (1 - std::pow(rule.beta2, t));
        w[i] = w[i] - rule.lr * rule.decay * w[i] - rule.lr * mhat / (std::sqrt(vhat) + rule.eps);
      }
    }
    EXPECT_LE(nmse(to_host(p.master()), w), bound(setup.precision));
    EXPECT_LE(nmse(to_host(state.m), m), bound(setup.precision));
    EXPECT_LE(nmse(to_host(state.v), v), bound(setup.precision));
    EXPECT_EQ(state.step, 5);
  }
}

// More weights than one launch takes, some of them of odd sizes; one of several blocks.
TEST(Optim, ManyWeightsAtOnceHaveTheBitsOfOneByOne) {
  for (const Pass::Options& setup : setups()) {
    Pass pass(setup);
    struct Twins {
      Param *together, *alone;
      ops::AdamState together_state, alone_state;
    };
    std::vector<Twins> all;
    for (int64_t i = 0; i < 70; ++i) {
      const int64_t count = i == 3 ? 5000 : i % 5 == 0 ? 4 * i + 7 : 4 * i + 4;
      const Numbers w = normals(static_cast<uint64_t>(i), count), g = normals(static_cast<uint64_t>(i) + 100, count);
      const auto zeros = [&] { return pass.zeros({count}, setup.precision.exact); };
      Param &together = weight_with_gradient(pass, w, g, {count}), &alone = weight_with_gradient(pass, w, g, {count});
      all.push_back({&together, &alone, {zeros(), zeros()}, {zeros(), zeros()}});
    }
    std::vector<ops::AdamWStep> steps;
    std::vector<const Param*> params;
    const auto copy_of = [&](const Param& w) { return to_host(w.value(pass.cx, DType::bf16)); };
    for (Twins& one : all) {
      EXPECT_EQ(copy_of(*one.together), copy_of(*one.alone));  // made here, to be brought up to date
      const ops::AdamW rule{.lr = 1e-2, .decay = one.together->shape().count() % 8 == 0 ? 0.1 : 0};
      steps.push_back({one.together, &one.together_state, rule});
      params.push_back(one.together);
      ops::adamw_step(pass.cx, *one.alone, one.alone_state, rule, kFactor);
    }
    const std::vector<double> squares = ops::SquareNorms(pass.cx, params).read();
    ops::adamw_steps(pass.cx, steps, [] { return kFactor; });
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(to_host(all[i].together->master()), to_host(all[i].alone->master())) << i;
      EXPECT_EQ(to_host(all[i].together_state.v), to_host(all[i].alone_state.v)) << i;
      EXPECT_EQ(copy_of(*all[i].together), copy_of(*all[i].alone)) << i;
      EXPECT_EQ(all[i].together_state.step, 1);
      const Tensor square = pass.zeros({1}, DType::f64);
      pass.cx.kernels.sum_squares(pass.cx.exec, {.y = square, .x = params[i]->gradient()});
      EXPECT_EQ(Numbers({squares[i]}), to_host(square)) << i;
    }
  }
}

TEST(Optim, SgdFollowsItsFormula) {
  for (const Pass::Options& setup : setups()) {
    Pass pass(setup);
    Numbers w = normals(1, 12), buffer(12, 0.0);
    Param& p = weight_with_gradient(pass, w, normals(2, 12), {12});
    const Tensor state = pass.zeros({12}, setup.precision.exact);
    for (int t = 1; t <= 3; ++t) {
      const Numbers g = normals(static_cast<uint64_t>(t) + 20, 12);
      to_device(p.gradient(), g);
      ops::sgd_step(pass.cx, p, state, {.lr = 0.1, .momentum = 0.9, .decay = 0.01}, kFactor);
      for (size_t i = 0; i < 12; ++i) {
        buffer[i] = 0.9 * buffer[i] + g[i] * kFactor;
        w[i] -= 0.1 * (buffer[i] + 0.01 * w[i]);
      }
    }
    EXPECT_LE(nmse(to_host(p.master()), w), bound(setup.precision));
  }
}

using Matrix = std::vector<Numbers>;

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), Numbers(b[0].size(), 0.0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b[0].size(); ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Matrix turned(const Matrix& a) {
  Matrix t(a[0].size(), Numbers(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[0].size(); ++j) t[j][i] = a[i][j];
  }
  return t;
}

// X <- a X + b (X X^T) X + c (X X^T)(X X^T) X, five times, on the matrix itself (wide) or its transpose (tall).
Matrix newton_schulz(Matrix x) {
  const bool tall = x.size() > x[0].size();
  if (tall) x = turned(x);
  double norm = 0;
  for (const Numbers& row : x) {
    for (const double v : row) norm += v * v;
  }
  for (Numbers& row : x) {
    for (double& v : row) v /= std::sqrt(norm) + 1e-7;
  }
  for (int step = 0; step < 5; ++step) {
    const Matrix gram = times(x, turned(x));
    const Matrix once = times(gram, x), twice = times(gram, once);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x[0].size(); ++j) x[i][j] = 3.4445 * x[i][j] - 4.7750 * once[i][j] + 2.0315 * twice[i][j];
    }
  }
  return tall ? turned(x) : x;
}

Matrix as_matrix(const Numbers& values, size_t first, size_t rows, size_t cols) {
  Matrix m;
  for (size_t r = 0; r < rows; ++r) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(first + r * cols);
    m.emplace_back(from, from + static_cast<std::ptrdiff_t>(cols));
  }
  return m;
}

void expect_muon(const Pass::Options& setup, const Shape& shape) {
  Pass pass(setup);
  const auto count = shape.count();
  const size_t rows = static_cast<size_t>(shape[-2]), cols = static_cast<size_t>(shape[-1]);
  Numbers w = normals(1, count), buffer(static_cast<size_t>(count), 0.0);
  Param& p = weight_with_gradient(pass, w, normals(2, count), shape);
  const Tensor state = pass.zeros(shape, setup.precision.exact);
  for (int t = 1; t <= 2; ++t) {
    const Numbers g = normals(static_cast<uint64_t>(t) + 30, count);
    to_device(p.gradient(), g);
    ops::muon_step(pass.cx, p, state, {.lr = 0.02, .momentum = 0.95, .decay = 0.1}, kFactor);
    Numbers update(static_cast<size_t>(count));
    for (size_t i = 0; i < update.size(); ++i) {
      buffer[i] = 0.95 * buffer[i] + g[i] * kFactor;
      update[i] = g[i] * kFactor + 0.95 * buffer[i];
    }
    for (size_t first = 0; first < update.size(); first += rows * cols) {
      const Matrix o = newton_schulz(as_matrix(update, first, rows, cols));
      for (size_t i = 0; i < rows * cols; ++i) {
        w[first + i] = w[first + i] * (1 - 0.02 * 0.1) -
                       0.02 * 0.2 * std::sqrt(static_cast<double>(std::max(rows, cols))) * o[i / cols][i % cols];
      }
    }
  }
  EXPECT_LE(nmse(to_host(p.master()), w), bound(setup.precision)) << shape;
}

TEST(Optim, MuonFollowsItsFormula) {
  for (const Pass::Options& setup : setups()) {
    expect_muon(setup, {4, 9});
    expect_muon(setup, {9, 4});
    expect_muon(setup, {5, 5});
    expect_muon(setup, {3, 4, 6});
    expect_muon(setup, {3, 12, 8});  // in fours, as kernels over many matrices take them
    expect_muon(setup, {68, 76});
    expect_muon(setup, {72, 68});
  }
}

// More matrices than fit into a launch, of many shapes: each has the bits it has alone, in the master and its bf16 copy.
TEST(Optim, MuonTakesManyMatricesWithTheBitsOfEach) {
  const Shape shapes[] = {{8, 12}, {68, 64}, {64, 132}, {5, 7}, {70, 8, 4}, {4, 4}};
  const ops::Muon rule{.lr = 0.02, .momentum = 0.95, .decay = 0.1};
  for (const Kernels* table : kernels::all_tables()) {
    Pass pass({.kernels = table, .precision = Precision::bf16(), .threads = 1});
    std::vector<ops::MuonStep> together, alone;
    uint64_t seed = 0;
    for (const Shape& shape : shapes) {
      const Numbers w = normals(++seed, shape.count()), g = normals(++seed, shape.count());
      for (auto* list : {&together, &alone}) {
        list->push_back({&weight_with_gradient(pass, w, g, shape), pass.zeros(shape, DType::f32), rule});
        list->back().weight->value(pass.cx);
      }
    }
    ops::muon_steps(pass.cx, together, [] { return kFactor; });
    for (const ops::MuonStep& one : alone) ops::muon_steps(pass.cx, {&one, 1}, [] { return kFactor; });
    for (size_t i = 0; i < alone.size(); ++i) {
      const Numbers master = to_host(together[i].weight->master());
      EXPECT_EQ(master, to_host(alone[i].weight->master())) << table->name << " " << shapes[i];
      EXPECT_EQ(to_host(together[i].buffer), to_host(alone[i].buffer)) << table->name << " " << shapes[i];
      Numbers rounded = master;
      for (double& v : rounded) v = round_to(DType::bf16, v);
      EXPECT_EQ(to_host(together[i].weight->value(pass.cx)), rounded) << table->name << " " << shapes[i];
    }
  }
}

// What the iteration is for: all singular values near 1, so U U^T is near the identity.
TEST(Optim, MuonsUpdateIsNearlyOrthogonal) {
  Pass pass({.precision = Precision::f64()});
  const Shape shape{6, 10};
  Param& p = weight_with_gradient(pass, Numbers(60, 0.0), normals(5, 60), shape);
  ops::muon_step(pass.cx, p, pass.zeros(shape, DType::f64), {.lr = 1, .momentum = 0, .decay = 0});
  const Matrix u = as_matrix(to_host(p.master()), 0, 6, 10);
  const Matrix gram = times(u, turned(u));
  const double unit = 0.04 * 10;  // (0.2 sqrt(10))^2
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < 6; ++j) EXPECT_NEAR(gram[i][j] / unit, i == j ? 1 : 0, 0.45) << i << " " << j;
  }
}

TEST(Optim, GlobalNormIsTheDoubleNormOverAllGradients) {
  for (const Pass::Options& setup : setups()) {
    Pass pass(setup);
    double squares = 0;
    std::vector<const Param*> params;
    for (const int64_t size : {7, 130, 1, 50'003}) {
      const Numbers g = normals(static_cast<uint64_t>(size), size);
      params.push_back(&weight_with_gradient(pass, g, g, {size}));
      for (const double v : g) squares += round_to(setup.precision.exact, v) * round_to(setup.precision.exact, v);
    }
    const double norm = ops::global_norm(pass.cx, params);
    EXPECT_NEAR(norm, std::sqrt(squares), 1e-12 * norm);  // 50'003 additions in double, in whatever order
    EXPECT_DOUBLE_EQ(ops::clip_factor(norm, norm / 4), 0.25);
    EXPECT_EQ(ops::clip_factor(norm, norm * 4), 1);
  }
}

TEST(Optim, GlobalNormHasTheSameBitsOnAnyNumberOfThreads) {
  const Numbers g = normals(3, 100'000);
  for (const Kernels* table : kernels::all_tables()) {
    const auto norm_on = [&](int threads) {
      Pass pass({.kernels = table, .threads = threads});
      const Param* const all[] = {&weight_with_gradient(pass, g, g, {100'000})};
      return ops::global_norm(pass.cx, all);
    };
    const double one = norm_on(1);
    for (const int threads : {2, 5}) EXPECT_EQ(norm_on(threads), one) << table->name;
  }
}

TEST(Optim, ANanGradientIsRefusedByName) {
  Pass pass;
  Numbers g(5, 1.0);
  g[3] = std::nan("");
  Param& bad = pass.param("layers.3.attn.q", g, {5});
  to_device(bad.use_gradient(DType::f32).tensor, g);
  const std::vector<const Param*> params{&bad};
  try {
    ops::global_norm(pass.cx, params);
    FAIL() << "a NaN went through";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("layers.3.attn.q"), std::string::npos) << e.what();
  }
}

// The pass multiplies bf16 copies; a step on the master must reach them.
TEST(Optim, AStepReachesTheBf16Copy) {
  Pass pass({.precision = Precision::bf16()});
  Param& p = weight_with_gradient(pass, Numbers(4, 1.0), Numbers(4, 1.0), {4});
  EXPECT_EQ(to_host(p.value(pass.cx)), Numbers(4, 1.0));
  ops::sgd_step(pass.cx, p, {}, {.lr = 0.5});
  EXPECT_EQ(to_host(p.value(pass.cx)), Numbers(4, 0.5));
}

}  // namespace optim_test
}  // namespace qkv::test
