// The tuned lens: its learning rate falls to 0 over all epochs.
#include <gtest/gtest.h>

#include <cmath>

#include "inspect/lens/tuned_lens.h"
#include "inspect/tiny.h"
#include "kernels/tables.h"

namespace qkv {
namespace {

// The same text again and again: its gradient keeps its sign, so each step of AdamW is as long as the rate.
TEST(TunedLensRate, FallsToZeroAtTheEnd) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("gpt2")).model();
  for (auto& [name, weight] : model->weights()) weight.trainable = false;
  constexpr size_t kTexts = 10;
  constexpr int64_t kEpochs = 2;
  const std::vector<TokenText> texts(kTexts, TokenText{.ids = test::some_ids(12, 3)});
  // What the lens of depth 0 makes of a stream of ones after `steps` steps.
  const auto after = [&](size_t steps) {
    Reader reader(*model, engine, {.rows = 12});  // a pass, so a step, for each text
    TunedLens lens(*model, engine);
    if (steps > 0) {
      lens.train(reader, texts, {.epochs = kEpochs, .lr = 1e-3}, [&](size_t done) { return done < steps; });
    }
    Arena arena(engine.device());
    Context cx = engine.context(arena, Precision::f32());
    const int64_t width = model->spec().width;
    const std::vector<float> ones(static_cast<size_t>(width), 1.0F);
    return host_floats(lens.moved(cx, 0, cx.upload(ones, {1, width})));
  };
  const auto distance = [](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i] - b[i]), 2);
    return std::sqrt(sum);
  };
  const size_t last = kTexts * kEpochs;
  const double first_step = distance(after(1), after(0)), middle = distance(after(last / 2 + 1), after(last / 2)),
               last_step = distance(after(last), after(last - 1));
  EXPECT_GT(first_step, 0);
  EXPECT_LT(middle, 0.8 * first_step) << "half of the way the rate is half";
  EXPECT_LT(last_step, 0.15 * first_step) << "the last step has a twentieth of the rate";
}

}  // namespace
}  // namespace qkv
