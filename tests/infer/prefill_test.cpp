// A prompt read in chunks ends in the logits that were asked for, also where they would begin in the chunk before.
#include <gtest/gtest.h>

#include "infer/runner.h"
#include "infer/whole_pass.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"

namespace qkv {
namespace prefill_test {

TEST(Prefill, HasTheLogitsAskedForAtTheEdgeOfAChunk) {
  constexpr int64_t kChunk = 8;
  const Engine engine(kernels::best_table(), {.threads = 1});
  const std::unique_ptr<Model> model = Checkpoint::open(test::golden("llama")).model();
  Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 64, .chunk = kChunk});
  const auto vocabulary = static_cast<size_t>(runner.vocabulary());
  for (const int64_t length : {3, 8, 9, 11, 17, 25}) {
    const std::vector<int32_t> ids = test::some_ids(length, 5, model->spec().vocabulary);
    const std::vector<float> all = test::whole_pass(*model, engine, Precision::f32(), ids, {});
    for (const int64_t wanted : {1, 2, 3, 8}) {
      if (wanted > length) continue;
      const Runner::Sequence sequence = runner.start();
      const std::span<const float> got = runner.prefill({.sequence = sequence, .ids = ids, .logits = wanted});
      ASSERT_EQ(got.size(), static_cast<size_t>(wanted) * vocabulary) << length << " tokens, " << wanted << " rows";
      EXPECT_TRUE(std::equal(got.begin(), got.end(), all.end() - std::ssize(got)))
          << length << " tokens, " << wanted << " rows";
      EXPECT_EQ(runner.length(sequence), length);
      runner.end(sequence);
    }
  }
}

}  // namespace prefill_test
}  // namespace qkv
