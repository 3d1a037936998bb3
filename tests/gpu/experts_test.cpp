// Loads of experts on a GPU pass through scratch, some rows at a time.
#include <gtest/gtest.h>

#include "support/pass.h"

namespace qkv::test {
namespace cuda_experts_test {

TEST(CudaExperts, HaveTheirLoadsThroughLittleScratch) {
  const char* why = nullptr;
  if (!kernels::cuda::available(&why)) GTEST_SKIP() << "there is no GPU: " << why;
  constexpr int64_t kRows = 3000, kExperts = 16;
  Pass pass({.kernels = &kernels::cuda::table()});
  const Tensor logits = pass.input(normals(1, kRows * kExperts), {kRows, kExperts}, DType::f32);
  std::vector<int32_t> chosen(static_cast<size_t>(kRows));
  for (size_t r = 0; r < chosen.size(); ++r) chosen[r] = static_cast<int32_t>(r * r % kExperts);
  const Tensor ids = pass.indices(chosen, {kRows, 1});
  const auto loads = [&](const Exec& exec) {
    const Tensor counts = pass.zeros({kExperts}, DType::f32), mass = pass.zeros({kExperts}, DType::f32);
    pass.cx.kernels.router_load(exec, {.counts = counts, .mass = mass, .logits = logits, .ids = ids});
    return std::pair{to_host(counts), to_host(mass)};
  };
  Exec little = pass.cx.exec;  // for 512 rows at a time
  little.scratch = little.scratch.view({little.scratch.count()}).slice(0, 0, 1 << 16);
  const auto [counts, mass] = loads(little);
  const auto [all_counts, all_mass] = loads(pass.cx.exec);
  EXPECT_EQ(counts, all_counts);
  EXPECT_LT(nmse(mass, all_mass), 1e-12);
}

}  // namespace cuda_experts_test
}  // namespace qkv::test
