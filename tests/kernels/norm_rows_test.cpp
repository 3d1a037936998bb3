// Norms of rows of any width, held to the formula in double; and of many rows beside the same rows by a few: a table may take
// them in other ways, with the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/pass.h"

namespace qkv::test {
namespace norm_rows_test {

constexpr int64_t kSome = 8;

struct Case {
  int64_t rows, width;
  DType dtype;
};

// y and statistics of both norms, and of one without weights, of rows from `first` on.
std::vector<Numbers> run(const Kernels& table, const Numbers& all, const Case& of, int64_t first, int64_t rows) {
  const auto& [_, width, dtype] = of;
  Pass pass({.kernels = &table, .threads = 2});
  const Tensor x = pass.input({all.data() + first * width, static_cast<size_t>(rows * width)}, {rows, width},
                              DType::f32),
               w = pass.input(normals(2, width), {width}, DType::f32),
               b = pass.input(normals(3, width), {width}, DType::f32);
  const Tensor y = pass.zeros({rows, width}, dtype), rms = pass.zeros({rows, width}, dtype),
               bare = pass.zeros({rows, width}, dtype);
  const Tensor mean = pass.zeros({rows}, DType::f32), rstd = pass.zeros({rows}, DType::f32),
               r = pass.zeros({rows}, DType::f32);
  table.layer_norm(pass.cx.exec, {.y = y, .mean = mean, .rstd = rstd, .x = x, .w = w, .b = b, .eps = 1e-5});
  table.rms_norm(pass.cx.exec, {.y = rms, .r = r, .x = x, .w = w, .eps = 1e-5, .offset = 1});
  table.rms_norm(pass.cx.exec, {.y = bare, .r = r, .x = x, .eps = 1e-5});
  return {to_host(y), to_host(mean), to_host(rstd), to_host(rms), to_host(bare), to_host(r)};
}

TEST(NormRows, HaveTheSameBitsWhetherManyOrFew) {
  for (const Case& of : {Case{1030, 1028, DType::bf16}, Case{1030, 1600, DType::f32}, Case{70, 2052, DType::bf16},
                         Case{70, 4100, DType::bf16}, Case{70, 8196, DType::bf16}}) {
    const Numbers all = normals(1, of.rows * of.width);
    for (const Kernels* table : kernels::all_tables()) {
      const std::vector<Numbers> many = run(*table, all, of, 0, of.rows);
      for (const int64_t first : {of.rows / 2, of.rows - kSome}) {
        const std::vector<Numbers> few = run(*table, all, of, first, kSome);
        for (size_t i = 0; i < few.size(); ++i) {
          const auto each = static_cast<int64_t>(few[i].size()) / kSome;
          EXPECT_TRUE(std::equal(few[i].begin(), few[i].end(), many[i].begin() + first * each))
              << table->name << ", " << of.width << " columns, result " << i << " from row " << first;
        }
      }
    }
  }
}

// Where kernels take turns (cuda), the second run goes from the last row to the first.
TEST(NormRows, HaveTheSameBitsTwice) {
  for (const Case& of : {Case{203, 512, DType::f32}, Case{1030, 1600, DType::bf16}}) {
    const Numbers all = normals(1, of.rows * of.width);
    for (const Kernels* table : kernels::all_tables()) {
      EXPECT_EQ(run(*table, all, of, 0, of.rows), run(*table, all, of, 0, of.rows)) << table->name << ", " << of.width;
    }
  }
}

// Widths that threads, warps and blocks take in their own ways, whole packs and not. Numbers of f32 on both sides: what is left
// is rounding, of a sum in order about as many times the square root of its numbers.
TEST(NormRows, AgreeWithTheFormulaAtEveryWidth) {
  const double u = unit_roundoff(DType::f32);
  for (const int64_t width : {20, 252, 260, 512, 516, 768, 772, 1000, 1024, 1028, 2048, 2052, 261, 1030}) {
    const Case of{5, width, DType::f32};
    const double limit = static_cast<double>(width) * u * u;
    const auto in_f32 = [](Numbers numbers) {
      for (double& x : numbers) x = static_cast<double>(static_cast<float>(x));
      return numbers;
    };
    const Numbers x = in_f32(normals(1, of.rows * width)), w = in_f32(normals(2, width)), b = in_f32(normals(3, width));
    Numbers right, right_rms;
    for (int64_t r = 0; r < of.rows; ++r) {
      const double* row = x.data() + r * width;
      double sum = 0, squares = 0, far = 0;
      for (int64_t c = 0; c < width; ++c) sum += row[c], squares += row[c] * row[c];
      const auto count = static_cast<double>(width);
      const double mean = sum / count, r_rms = 1 / std::sqrt(squares / count + 1e-5);
      for (int64_t c = 0; c < width; ++c) far += (row[c] - mean) * (row[c] - mean);
      const double rstd = 1 / std::sqrt(far / count + 1e-5);
      for (int64_t c = 0; c < width; ++c) {
        const auto i = static_cast<size_t>(c);
        right.push_back((row[c] - mean) * rstd * w[i] + b[i]);
        right_rms.push_back(row[c] * r_rms * (w[i] + 1));
      }
    }
    for (const Kernels* table : kernels::all_tables()) {
      const std::vector<Numbers> got = run(*table, x, of, 0, of.rows);
      EXPECT_LE(nmse(got[0], right), limit) << table->name << ", " << width << " columns";
      EXPECT_LE(nmse(got[3], right_rms), limit) << table->name << ", " << width << " columns";
    }
  }
}

}  // namespace norm_rows_test
}  // namespace qkv::test
