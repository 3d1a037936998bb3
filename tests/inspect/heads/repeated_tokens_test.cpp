// How many rows the scores of repeated random tokens are means of.
#include <gtest/gtest.h>

#include "inspect/heads/head_roles.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace {

TEST(RepeatedTokens, CountTheRowsOfTheRepeats) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  constexpr int64_t kTexts = 3, kLength = 7, kRepeats = 3;
  for (const std::string family : {"llama", "gpt2", "bert"}) {
    const auto model = Checkpoint::open(test::golden(family)).model();
    Reader reader(*model, engine, {});
    const int64_t begin = model->spec().tokens.bos ? 1 : 0;
    for (const RepeatScore& score : repeat_scores(reader, {.length = kLength, .repeats = kRepeats, .texts = kTexts})) {
      EXPECT_EQ(score.previous.n, kTexts * (begin + kLength * kRepeats - 2))
          << family << ": all but the first two rows";
      EXPECT_EQ(score.duplicate.n, kTexts * kLength * (kRepeats - 1)) << family << ": the rows with an earlier copy";
      EXPECT_EQ(score.induction.n, kTexts * kLength * (kRepeats - 1)) << family << ": the rows with an earlier copy";
    }
  }
}

}  // namespace
}  // namespace qkv
