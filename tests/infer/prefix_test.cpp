// Which texts in the cache may lend their prefix: those of the same owner and the same rotary angles.
#include <gtest/gtest.h>

#include "infer/scheduler.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"

namespace qkv {
namespace prefix_test {

SessionOptions request(std::vector<int32_t> prompt, int64_t max_new, int32_t owner = 0) {
  SessionOptions r{.prompt = std::move(prompt), .max_new = max_new, .owner = owner};
  r.sampling.temperature = 0;
  r.eos.emplace();  // no id ends it
  return r;
}

class Prefixes : public testing::Test {
 protected:
  // A model whose rotary angles change beyond 64 tokens.
  std::unique_ptr<Model> with_long_rope() const {
    const Checkpoint checkpoint = Checkpoint::open(test::golden("phi3_longrope"));
    ModelSpec spec = checkpoint.spec;
    for (LayerSpec& layer : spec.decoder.layers) layer.attention.rope->scaling.original_context = 64;
    return Model::make(std::move(spec), checkpoint.weights(engine_.device()));
  }
  std::vector<int32_t> alone(const Model& model, const SessionOptions& options) const {
    Runner runner(model, engine_, options_);
    Session session(runner, options);
    while (session.next()) {
    }
    return session.ids();
  }

  const RunOptions options_{.precision = Precision::f32(), .cache = DType::f32, .positions = 1024, .chunk = 64};
  Engine engine_{kernels::best_table(), {.threads = 1}};
};

TEST_F(Prefixes, OfARunningTextAreNotSharedAcrossRopeForms) {
  const auto model = with_long_rope();
  const std::vector<int32_t> prompt = test::some_ids(40, 1, model->spec().vocabulary);
  std::vector<int32_t> longer = prompt;
  for (const int32_t id : test::some_ids(8, 2, model->spec().vocabulary)) longer.push_back(id);
  for (const bool joins_long : {false, true}) {
    // Up to 56 tokens have the angles of short texts, up to 108 those of long ones.
    const SessionOptions running = request(prompt, 16), other = request(longer, joins_long ? 60 : 8);
    const std::vector<int32_t> right = alone(*model, other);
    Runner runner(*model, engine_, options_);
    Scheduler scheduler(runner);
    std::vector<int32_t> written;
    scheduler.submit({.options = running});
    for (int pass = 0; pass < 3; ++pass) ASSERT_TRUE(scheduler.step());
    ASSERT_EQ(scheduler.counts().active, 1);
    scheduler.submit({.options = other, .on_end = [&](const Session& s) { written = s.ids(); }});
    scheduler.run();
    EXPECT_EQ(scheduler.counts().shared, joins_long ? 0 : 40);
    EXPECT_EQ(written, right) << (joins_long ? "a long text" : "a short text") << " beside a short one";
  }
}

TEST_F(Prefixes, OfOneOwnerStayWhenAnotherWritesMore) {
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Runner runner(*model, engine_, options_);
  Scheduler scheduler(runner);
  std::vector<int32_t> first;
  const std::vector<int32_t> prompt = test::some_ids(48, 3, model->spec().vocabulary);
  scheduler.submit({.options = request(prompt, 4, 1), .on_end = [&](const Session& s) { first = s.ids(); }});
  scheduler.run();
  std::vector<int32_t> extended = first;
  for (const int32_t id : test::some_ids(20, 4, model->spec().vocabulary)) extended.push_back(id);
  scheduler.submit({.options = request(extended, 4, 2)});
  scheduler.run();
  EXPECT_EQ(scheduler.counts().shared, 0) << "the second owner has nothing in the cache";
  EXPECT_EQ(scheduler.counts().kept, 2) << "a text of another owner replaces nothing";
  scheduler.submit({.options = request(prompt, 4, 1)});
  scheduler.run();
  EXPECT_EQ(scheduler.counts().shared, 47) << "the first owner's prefix is still there";
}

TEST_F(Prefixes, JustSharedOutliveOlderUnusedOnes) {
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Runner runner(*model, engine_, options_);
  Scheduler scheduler(runner, {.most_kept = 2});
  const auto shared_by = [&](uint32_t text) {
    const int64_t before = scheduler.counts().shared;
    scheduler.submit({.options = request(test::some_ids(40, text, model->spec().vocabulary), 4)});
    scheduler.run();
    return scheduler.counts().shared - before;
  };
  EXPECT_EQ(shared_by(10), 0);
  EXPECT_EQ(shared_by(11), 0);
  EXPECT_EQ(shared_by(10), 39) << "now the most recently used";
  EXPECT_EQ(shared_by(12), 0);  // takes the place of the other one
  EXPECT_EQ(shared_by(10), 39) << "the text just shared was dropped";
  EXPECT_EQ(shared_by(11), 0);
}

}  // namespace prefix_test
}  // namespace qkv
