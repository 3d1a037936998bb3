// Products of the table `cuda` against the chain of the software tensor core, bit for bit.
#include "support/tensor_core.h"

#include <gtest/gtest.h>

#include <array>

#include "support/pass.h"

namespace qkv::test {
namespace {

// Numbers of row r of a matrix, or of column r.
std::vector<Bf16> line(const Numbers& m, int64_t r, int64_t width, bool column) {
  std::vector<Bf16> out;
  const auto count = static_cast<int64_t>(m.size()) / width;
  for (int64_t i = 0; i < (column ? count : width); ++i) {
    out.push_back(to_bf16(static_cast<float>(m[static_cast<size_t>(column ? i * width + r : r * width + i)])));
  }
  return out;
}

// y = x w^T, dx = dy w and dw = dy^T x: few rows and many, k that is whole tiles and not.
TEST(TensorCore, ProductsOnTheGpuAreItsChain) {
  const char* why = nullptr;
  if (!kernels::cuda::available(&why)) GTEST_SKIP() << "there is no GPU: " << why;
  for (const auto& [rows, inner, outputs] : {std::array<int64_t, 3>{37, 100, 70},
                                             {37, 64, 70},
                                             {300, 104, 136},
                                             {300, 2048, 136},
                                             {200, 72, 1032},
                                             {129, 1024, 1024}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << inner << " -> " << outputs);
    Pass pass({.kernels = &kernels::cuda::table(), .precision = Precision::bf16()});
    const Numbers x = normals(1, rows * inner), w = normals(2, outputs * inner), dy = normals(3, rows * outputs);
    const Tensor x_on = pass.input(x, {rows, inner}, DType::bf16), w_on = pass.input(w, {outputs, inner}, DType::bf16),
                 dy_on = pass.input(dy, {rows, outputs}, DType::bf16);
    const Tensor y = pass.zeros({rows, outputs}, DType::f32), dx = pass.zeros({rows, inner}, DType::f32),
                 dw = pass.zeros({outputs, inner}, DType::f32);
    pass.cx.kernels.linear(pass.cx.exec, {.y = y, .x = x_on, .w = w_on});
    pass.cx.kernels.linear_backward(pass.cx.exec, {.dx = {dx}, .dw = {dw}, .dy = dy_on, .x = x_on, .w = w_on});
    const auto check = [&](const char* what, const Tensor& got_on, const auto& right) {
      const Numbers got = to_host(got_on);
      const int64_t columns = got_on.dim(1), step = rows > 64 ? 97 : 1;
      int64_t wrong = 0, seen = 0;
      for (int64_t i = 0; i < got_on.count(); i += step, ++seen) {
        wrong += got[static_cast<size_t>(i)] != static_cast<double>(right(i / columns, i % columns)) ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0) << what << ", of " << seen;
    };
    check("y", y,
          [&](int64_t r, int64_t o) { return tensor_core_dot(line(x, r, inner, false), line(w, o, inner, false)); });
    check("dx", dx,
          [&](int64_t r, int64_t k) { return tensor_core_dot(line(dy, r, outputs, false), line(w, k, inner, true)); });
    check("dw", dw,
          [&](int64_t o, int64_t k) { return tensor_core_dot(line(dy, o, outputs, true), line(x, k, inner, true)); });
  }
}

}  // namespace
}  // namespace qkv::test
