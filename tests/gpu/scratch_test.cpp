// What a GPU's scratch has no room for lies elsewhere: nothing is written behind it, and no bit changes.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/host_values.h"
#include "support/pass.h"

namespace qkv::test {
namespace cuda_scratch_test {

constexpr int64_t kLittle = 1 << 12, kBehind = 1 << 20;

// What run(exec) gives with all of scratch and with little of it.
template <class F>
void expect_the_same_with_little(Pass& pass, const F& run) {
  const Exec& all = pass.cx.exec;
  const auto right = run(all);
  Exec little = all;
  const Tensor bytes = all.scratch.view({all.scratch.count()}), behind = bytes.slice(0, kLittle, kBehind);
  little.scratch = bytes.slice(0, 0, kLittle);
  std::vector<std::byte> marks(kBehind, std::byte{0x5a}), found(kBehind);
  behind.device().upload(behind.data(), marks.data(), kBehind);
  EXPECT_EQ(run(little), right);
  behind.device().download(found.data(), behind.data(), kBehind);
  EXPECT_EQ(std::mismatch(found.begin(), found.end(), marks.begin()).first - found.begin(), kBehind)
      << "the first byte that was written behind scratch";
}

std::vector<int32_t> some_ids(int64_t count, int32_t limit) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i % 1009 % static_cast<size_t>(limit));
  return ids;
}

class CudaScratch : public testing::Test {
 protected:
  void SetUp() override {
    const char* why = nullptr;
    if (!kernels::cuda::available(&why)) GTEST_SKIP() << "there is no GPU: " << why;
    pass_ = std::make_unique<Pass>(Pass::Options{.kernels = &kernels::cuda::table()});
  }
  std::unique_ptr<Pass> pass_;
};

TEST_F(CudaScratch, OfGradientsOfEmbeddings) {
  constexpr int64_t kRows = 3000, kWidth = 24;
  for (const int32_t words : {5, 700}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor dy = pass_->input(normals(1, kRows * kWidth), {kRows, kWidth}, dtype);
      const Tensor ids = pass_->indices(some_ids(kRows, words), {kRows});
      expect_the_same_with_little(*pass_, [&](const Exec& exec) {
        const Tensor table = pass_->zeros({words, kWidth}, DType::f32);
        pass_->cx.kernels.embedding_backward(exec, {.dtable = {table, false}, .dy = dy, .ids = ids});
        return to_host(table);
      });
    }
  }
}

TEST_F(CudaScratch, OfThePlanOfExperts) {
  constexpr int64_t kRows = 2500, kTop = 2, kExperts = 9;
  const Tensor ids = pass_->indices(some_ids(kRows * kTop, kExperts), {kRows, kTop});
  expect_the_same_with_little(*pass_, [&](const Exec& exec) {
    const Tensor slots = pass_->zeros({kRows, kTop}, DType::i32), order = pass_->zeros({kRows * kTop}, DType::i32),
                 groups = pass_->zeros({kExperts + 1}, DType::i32);
    pass_->cx.kernels.dispatch_plan(exec, {.order = order, .slots = slots, .groups = groups, .ids = ids});
    return std::array{host_ints(slots), host_ints(order), host_ints(groups)};
  });
}

TEST_F(CudaScratch, OfGradientsOfBiases) {
  constexpr int64_t kRows = 700, kInner = 3, kOutputs = 1000;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor dy = pass_->input(normals(2, kRows * kOutputs), {kRows, kOutputs}, dtype);
    const Tensor x = pass_->input(normals(3, kRows * kInner), {kRows, kInner}, dtype);
    const Tensor w = pass_->input(normals(4, kOutputs * kInner), {kOutputs, kInner}, dtype);
    expect_the_same_with_little(*pass_, [&](const Exec& exec) {
      const Tensor db = pass_->zeros({kOutputs}, DType::f32);
      pass_->cx.kernels.linear_backward(exec, {.db = {db, false}, .dy = dy, .x = x, .w = w});
      return to_host(db);
    });
  }
}

// More rows than a grid has blocks in y, times those of a block.
TEST_F(CudaScratch, AndGridsDoNotLimitRows) {
  struct Sizes {
    int64_t rows, inner;
  };
  for (const Sizes& s : {Sizes{64 * 65536 + 9, 1}, Sizes{128 * 65536 + 9, 4}}) {
    Numbers numbers(static_cast<size_t>(s.rows * s.inner));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 8191) - 4000;
    const Tensor x = pass_->input(numbers, {s.rows, s.inner}, DType::f32);
    const Tensor w = pass_->input(Numbers(static_cast<size_t>(s.inner), 0.5), {1, s.inner}, DType::f32);
    const Tensor y = pass_->zeros({s.rows, 1}, DType::f32);
    pass_->cx.kernels.linear(pass_->cx.exec, {.y = y, .x = x, .w = w});
    const std::vector<float> got = host_floats(y);
    int64_t wrong = 0;
    for (size_t r = 0; r < got.size(); ++r) {
      double sum = 0;  // exact
      for (size_t k = 0; k < static_cast<size_t>(s.inner); ++k) {
        sum += 0.5 * numbers[r * static_cast<size_t>(s.inner) + k];
      }
      wrong += static_cast<double>(got[r]) == sum ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0) << s.rows << " rows of " << s.inner;
  }
}

}  // namespace cuda_scratch_test
}  // namespace qkv::test
