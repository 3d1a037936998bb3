// Norms of many rows beside the same rows by a few: a table may take them in other ways, with the same bits.
#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace norm_rows_test
}  // namespace qkv::test
