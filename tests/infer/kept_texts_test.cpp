// Which finished texts the scheduler keeps for their prefixes.
#include <gtest/gtest.h>

#include "infer/scheduler.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace kept_texts_test {

TEST(KeptTexts, ATextThatIsThePrefixOfAKeptOneIsNotKeptBesideIt) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const std::unique_ptr<Model> model = Checkpoint::open(test::golden("llama")).model();
  Runner runner(*model, engine, {.precision = Precision::f32(), .cache = DType::f32, .positions = 1024});
  Scheduler scheduler(runner);
  const auto counts_after = [&](int64_t max_new, int32_t owner) {
    SessionOptions options{.prompt = std::vector<int32_t>(40, 5), .sampling = {.temperature = 0}, .max_new = max_new};
    options.eos.emplace();
    options.owner = owner;
    scheduler.submit({.options = options});
    scheduler.run();
    return scheduler.counts();
  };
  const Scheduler::Counts once = counts_after(20, 1);
  EXPECT_EQ(once.kept, 1);
  for (const int64_t shorter : {20, 1, 10}) {
    const Scheduler::Counts again = counts_after(shorter, 1);
    EXPECT_EQ(again.kept, 1) << shorter << " tokens";
    EXPECT_EQ(again.pages_used, once.pages_used) << shorter << " tokens";
  }
  EXPECT_EQ(counts_after(30, 1).kept, 1) << "a longer one takes its place";
  EXPECT_EQ(counts_after(10, 2).kept, 2) << "another owner's is another text";
}

}  // namespace kept_texts_test
}  // namespace qkv
