// bench train runs sequences as long as asked, or refuses.
#include <gtest/gtest.h>

#include "../bench/micro_batches.h"
#include "base/expect_error.h"

namespace qkv {
namespace {

TEST(BenchMicroBatches, HoldWholeTexts) {
  constexpr int64_t kOfRecipe = 8;
  EXPECT_EQ(bench::micro_batches_of_whole_texts(32768, 1024, 0, kOfRecipe), 8);
  EXPECT_EQ(bench::micro_batches_of_whole_texts(4096, 1024, 0, kOfRecipe), 4);
  EXPECT_EQ(bench::micro_batches_of_whole_texts(1024, 1024, 0, kOfRecipe), 1);
  EXPECT_EQ(bench::micro_batches_of_whole_texts(3072, 1024, 0, kOfRecipe), 1);
  EXPECT_EQ(bench::micro_batches_of_whole_texts(4096, 1024, 2, kOfRecipe), 2);
  expect_error([] { std::ignore = bench::micro_batches_of_whole_texts(4096, 1024, 8, kOfRecipe); },
               {"4096 tokens", "8 micro-batches", "texts of 1024"});
  expect_error([] { std::ignore = bench::micro_batches_of_whole_texts(512, 1024, 0, kOfRecipe); },
               {"512 tokens in 1 micro-batch ", "texts of 1024"});
}

}  // namespace
}  // namespace qkv
