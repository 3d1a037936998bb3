// Products of many and of few rows on the GPU, in whole tiles and not, against the plain kernels: a copy of x or dy whose rows are an
// odd number apart goes to those, and every bit is the same. Where there is no GPU they are skipped.
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "support/pass.h"

namespace qkv::test {
namespace cuda_products_test {

struct Sizes {
  int64_t rows, inner, outputs;
  std::vector<int32_t> groups = {};
};

class Both {
 public:
  Both(const Sizes& s, DType dtype) : s_(s), dtype_(dtype), pass_({.kernels = &kernels::cuda::table()}) {
    const auto experts = static_cast<int64_t>(s.groups.size());
    x_ = made(1, {s.rows, s.inner});
    dy_ = made(2, {s.rows, s.outputs});
    w_ = made(3, experts > 0 ? Shape{experts, s.outputs, s.inner} : Shape{s.outputs, s.inner}, 0.1);
    b_ = made(4, experts > 0 ? Shape{experts, s.outputs} : Shape{s.outputs});
    if (experts == 0) return;
    std::vector<int32_t> starts(s.groups.size() + 1, 0);
    std::partial_sum(s.groups.begin(), s.groups.end(), starts.begin() + 1);
    groups_ = pass_.indices(starts, {experts + 1});
  }

  Tensor made(uint64_t seed, const Shape& shape, double deviation = 1) {
    return pass_.input(normals(seed, shape.count(), deviation), shape, dtype_);
  }
  Tensor like_y(DType dtype, uint64_t seed = 20) {
    return pass_.input(normals(seed, s_.rows * s_.outputs), {s_.rows, s_.outputs}, dtype);
  }

  void leave_scratch(int64_t bytes) { exec_.scratch = exec_.scratch.view({exec_.scratch.count()}).slice(0, 0, bytes); }

  Tensor kept() { return pass_.zeros(kept_shape(s_.rows, s_.outputs), DType::i32); }

  // y of the product by the fast kernels, or the plain ones.
  Numbers forward(bool plain, DType out, const Epilogue& epilogue) {
    const Tensor y = like_y(out);
    pass_.cx.kernels.linear(
        exec_, {.y = y, .x = plain ? apart(x_) : x_, .w = w_, .b = b_, .groups = groups_, .epilogue = epilogue});
    return to_host(y);
  }

  std::vector<Numbers> backward(bool plain, DType dx_dtype, bool add, bool biased = true) {
    const Shape dw_shape = w_.shape(), db_shape = b_.shape();
    const Tensor dx = pass_.input(normals(21, x_.count()), x_.shape(), dx_dtype);
    const Tensor dw = pass_.input(normals(22, dw_shape.count()), dw_shape, DType::f32);
    const Tensor db = pass_.input(normals(23, db_shape.count()), db_shape, DType::f32);
    pass_.cx.kernels.linear_backward(exec_, {.dx = {dx, add},
                                             .dw = {dw, add},
                                             .db = biased ? Grad{db, add} : Grad{},
                                             .dy = plain ? apart(dy_) : dy_,
                                             .x = plain ? apart(x_) : x_,
                                             .w = w_,
                                             .groups = groups_});
    return {to_host(dx), to_host(dw), to_host(db)};
  }

  std::vector<Numbers> backward_through(bool plain, const Gating& form, bool gated) {
    const Tensor dpre = pass_.zeros(x_.shape(), dtype_), dgate = gated ? pass_.zeros(x_.shape(), dtype_) : Tensor();
    LinearBackwardArgs args{.dy = plain ? apart(dy_) : dy_, .x = x_, .w = w_, .groups = groups_};
    args.input_act = {.form = form,
                      .pre = made(24, x_.shape()),
                      .gate = gated ? made(25, x_.shape()) : Tensor(),
                      .dpre = {dpre},
                      .dgate = {dgate}};
    pass_.cx.kernels.linear_backward(exec_, args);
    return {to_host(dpre), gated ? to_host(dgate) : Numbers{}};
  }

  // y of several weights, then dx, and dw and db of each: in one launch, or by the plain kernels.
  std::vector<Numbers> set(bool plain, bool add) {
    const Tensor x = plain ? apart(x_) : x_;
    const Tensor dx = pass_.input(normals(50, x_.count()), x_.shape(), dtype_);
    std::vector<LinearArgs> forward;
    std::vector<LinearBackwardArgs> backward;
    uint64_t seed = 60;
    for (const int64_t outputs : {s_.outputs, int64_t{8}, 2 * s_.outputs + 40}) {
      const Tensor w = made(seed++, {outputs, s_.inner}, 0.1), b = made(seed++, {outputs});
      const Tensor dy = made(seed++, {s_.rows, outputs});
      forward.push_back({.y = pass_.zeros({s_.rows, outputs}, dtype_), .x = x, .w = w, .b = b});
      backward.push_back({.dw = {pass_.input(normals(seed++, w.count()), w.shape(), DType::f32), add},
                          .db = {pass_.input(normals(seed++, outputs), {outputs}, DType::f32), add},
                          .dy = plain ? apart(dy) : dy,
                          .x = x,
                          .w = w});
    }
    const Kernels& kernels = pass_.cx.kernels;
    kernels.linear_set(pass_.cx.exec, forward);
    EXPECT_TRUE(kernels.linear_backward_set(pass_.cx.exec, {dx, add}, backward));
    std::vector<Numbers> all{to_host(dx)};
    for (size_t i = 0; i < forward.size(); ++i) {
      all.push_back(to_host(forward[i].y));
      all.push_back(to_host(backward[i].dw.tensor));
      all.push_back(to_host(backward[i].db.tensor));
    }
    return all;
  }

 private:
  Tensor apart(const Tensor& t) {
    const Tensor wide = pass_.zeros({t.dim(0), t.dim(1) + 1}, t.dtype()), copy = wide.slice(1, 0, t.dim(1));
    pass_.cx.kernels.copy(pass_.cx.exec, {.y = copy, .x = t});
    return copy;
  }

  Sizes s_;
  DType dtype_;
  Pass pass_;
  Exec exec_ = pass_.cx.exec;
  Tensor x_, dy_, w_, b_, groups_;
};

class CudaProducts : public ::testing::TestWithParam<Sizes> {
 protected:
  void SetUp() override {
    const char* why = nullptr;
    if (!kernels::cuda::available(&why)) GTEST_SKIP() << "there is no GPU: " << why;
  }
};

TEST_P(CudaProducts, HaveTheBitsOfThePlainOnes) {
  Both both(GetParam(), DType::bf16);
  for (const DType out : {DType::bf16, DType::f32}) {
    EXPECT_EQ(both.forward(false, out, {}), both.forward(true, out, {}));
    const Tensor residual = both.like_y(out, 30);
    EXPECT_EQ(both.forward(false, out, {.residual = residual}), both.forward(true, out, {.residual = residual}));
    for (const bool add : {false, true}) EXPECT_EQ(both.backward(false, out, add), both.backward(true, out, add));
  }
}

// One goes from the first tile to the last, the next from the last to the first.
TEST_P(CudaProducts, HaveThemInBothDirections) {
  Both both(GetParam(), DType::bf16);
  EXPECT_EQ(both.forward(false, DType::bf16, {}), both.forward(false, DType::bf16, {}));
}

TEST_P(CudaProducts, OfOneInputHaveThemInOneLaunch) {
  if (!GetParam().groups.empty()) return;
  Both both(GetParam(), DType::bf16);
  for (const bool add : {false, true}) {
    const std::vector<Numbers> fast = both.set(false, add), plain = both.set(true, add);
    for (size_t i = 0; i < fast.size(); ++i) EXPECT_EQ(fast[i], plain[i]) << i << (add ? " added" : "");
  }
}

TEST_P(CudaProducts, HaveThemWithActivationsToo) {
  Both both(GetParam(), DType::bf16);
  const Tensor gate = both.like_y(DType::bf16, 31);
  using Kind = Activation::Kind;
  for (const Kind kind :
       {Kind::identity, Kind::relu, Kind::gelu_erf, Kind::gelu_tanh, Kind::silu, Kind::tanh, Kind::relu_squared}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const Gating plain{{kind, 1.5F}}, clamped{{kind, 1.5F}, 1.25F, 1.0F};
    const Tensor fast_pre = both.like_y(DType::bf16, 32), plain_pre = both.like_y(DType::bf16, 32);
    EXPECT_EQ(both.forward(false, DType::bf16, {.form = plain, .pre = fast_pre}),
              both.forward(true, DType::bf16, {.form = plain, .pre = plain_pre}));
    EXPECT_EQ(to_host(fast_pre), to_host(plain_pre));
    EXPECT_EQ(both.forward(false, DType::bf16, {.form = clamped, .gate = gate}),
              both.forward(true, DType::bf16, {.form = clamped, .gate = gate}));
    EXPECT_EQ(both.backward_through(false, plain, false), both.backward_through(true, plain, false));
    EXPECT_EQ(both.backward_through(false, clamped, true), both.backward_through(true, clamped, true));
  }
}

// What passes through scratch does so some rows at a time, and groups are cut with them.
TEST_P(CudaProducts, HaveThemThroughLittleScratch) {
  const Gating plain{{Activation::Kind::silu}}, gate{{Activation::Kind::silu}, 1.25F, 1.0F};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Both both(GetParam(), dtype);
    const auto all = [&] {
      return std::array{both.backward_through(true, plain, false), both.backward_through(true, gate, true)};
    };
    const auto with_much = all();
    both.leave_scratch(1 << 18);
    EXPECT_EQ(all(), with_much) << name_of(dtype);
  }
}

// Tiles of 256 and of 320 columns: dw over many rows, and dx over many outputs.
TEST(CudaWideProducts, HaveThemInTheWidestTilesToo) {
  const char* why = nullptr;
  if (!kernels::cuda::available(&why)) GTEST_SKIP() << "there is no GPU: " << why;
  for (const Sizes& sizes :
       {Sizes{8200, 2048, 1600}, Sizes{2000, 2048, 8256}, Sizes{4104, 1592, 2680}, Sizes{2680, 1592, 4104}}) {
    Both both(sizes, DType::bf16);
    for (const bool biased : {false, true}) {
      EXPECT_EQ(both.backward(false, DType::bf16, false, biased), both.backward(true, DType::bf16, false, biased))
          << sizes.rows << " rows, " << sizes.inner << " -> " << sizes.outputs << (biased ? " with biases" : "");
    }
  }
  Both joined({2680, 4104, 1592}, DType::bf16);
  const Tensor residual = joined.like_y(DType::f32, 30);
  for (const float p : {0.0F, 0.25F}) {
    const Epilogue epilogue{.residual = residual, .dropout = {.p = p, .key = {7, 8}}, .kept = joined.kept()};
    EXPECT_EQ(joined.forward(false, DType::f32, epilogue), joined.forward(true, DType::f32, epilogue)) << p;
  }
  Both set({4104, 1592, 840}, DType::bf16);
  for (const bool add : {false, true}) EXPECT_EQ(set.set(false, add), set.set(true, add)) << (add ? "added" : "");
}

TEST_P(CudaProducts, OfF32HaveThemToo) {
  Both both(GetParam(), DType::f32);
  EXPECT_EQ(both.forward(false, DType::f32, {}), both.forward(true, DType::f32, {}));
  EXPECT_EQ(both.backward(false, DType::f32, true), both.backward(true, DType::f32, true));
}

INSTANTIATE_TEST_SUITE_P(, CudaProducts,
                         ::testing::Values(Sizes{3, 2048, 21}, Sizes{12, 136, 50}, Sizes{30, 72, 131},  // few rows, and
                                           Sizes{61, 128, 196},  // columns that are not in whole packs
                                           Sizes{65, 136, 50}, Sizes{192, 72, 131},
                                           Sizes{256, 4480, 200},                    // 64 rows each
                                           Sizes{1, 4480, 72}, Sizes{31, 4480, 72},  // through the deepest rings
                                           Sizes{130, 64, 12},                       // of a set the first alone
                                           Sizes{300, 104, 136}, Sizes{129, 512, 1024}, Sizes{200, 72, 1032},
                                           Sizes{9000, 64, 200},   // weight gradients in pieces of rows
                                           Sizes{600, 4416, 600},  // dx and dw in wider tiles
                                           Sizes{4100, 576, 520},  // more pieces of one than of a set
                                           Sizes{485, 136, 264, {0, 130, 1, 77, 0, 277}},
                                           Sizes{200, 256, 64, {64, 0, 7, 129}}),
                         [](const auto& one) {
                           const Sizes& s = one.param;
                           return std::to_string(s.rows) + "_" + std::to_string(s.inner) + "_" +
                                  std::to_string(s.outputs) + (s.groups.empty() ? "" : "_in_groups");
                         });

}  // namespace cuda_products_test
}  // namespace qkv::test
