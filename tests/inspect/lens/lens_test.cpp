// The logit lens: the last depth is the model's output, bit by bit; the numbers agree with plain definitions.
#include "inspect/lens/lens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/expect_error.h"
#include "core/host_values.h"
#include "inspect/lens/tuned_lens.h"
#include "inspect/taps/recorder.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"
#include "support/some_ids.h"

namespace qkv {
namespace lens_test {

using test::some_ids;

std::vector<TokenText> some_texts(const ModelSpec& spec, int count) {
  std::vector<TokenText> texts;
  for (int i = 0; i < count; ++i) {
    texts.push_back({.ids = some_ids(6 + i % 5, static_cast<uint32_t>(i))});
    if (spec.has_source()) texts.back().source = some_ids(5, 7);
  }
  return texts;
}

struct Seen {
  std::vector<float> logits;                 // of the model
  std::vector<std::vector<float>> by_depth;  // read out of each stream
};

Seen look(const Model& model, const Engine& engine, const TokenText& text) {
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  std::vector<TapId> wanted = parse_taps(model.spec(), "embed,resid.post");
  Recorder recorder(wanted);
  cx.probe = &recorder;
  const Rows rows = Rows::batch(cx, 1, std::ssize(text.ids)), source_rows = Rows::batch(cx, 1, std::ssize(text.source));
  Model::Input input{.ids = cx.upload(text.ids), .rows = &rows};
  if (!text.source.empty()) {
    input.source_ids = cx.upload(text.source);
    input.source_rows = &source_rows;
  }
  Seen seen{.logits = host_floats(model.logits(cx, input))};
  cx.probe = nullptr;
  for (const RecordedTap& tap : recorder.all()) {
    seen.by_depth.push_back(host_floats(model.read_out(cx, cx.upload(tap.values, tap.shape))));
  }
  return seen;
}

class LensOf : public testing::TestWithParam<std::string> {};

TEST_P(LensOf, has_the_output_on_top) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden(GetParam())).model();
  const std::vector<TokenText> texts = some_texts(model->spec(), 6);
  const Seen seen = look(*model, engine, texts[0]);
  EXPECT_EQ(seen.by_depth.size(), model->spec().main_stack().layers.size() + 1);
  EXPECT_EQ(seen.by_depth.back(), seen.logits);  // every bit
  EXPECT_NE(seen.by_depth.front(), seen.logits);

  Reader reader(*model, engine, {.rows = 20});
  const LensReport report = read_lens(reader, texts);
  const LensLayer& top = report.layers.back();
  EXPECT_EQ(top.agrees.mean, 1);
  EXPECT_EQ(top.rank.mean, 1);
  EXPECT_EQ(top.kl.mean, 0);
  double settled = 0;
  for (const LensLayer& layer : report.layers) settled += layer.settled.mean;
  EXPECT_NEAR(settled, 1, 1e-12);
  if (model->spec().kind == ModelSpec::Kind::encoder_only) {
    EXPECT_EQ(top.loss.n, 0);
    return;
  }
  TextSum all;
  for (const std::vector<float>& text : Reader(*model, engine, {}).losses(texts)) {
    for (const float loss : text) all.add(static_cast<double>(loss));
  }
  EXPECT_NEAR(top.loss.mean, all.sum / static_cast<double>(all.count), 1e-5);
  EXPECT_EQ(top.loss.n, all.count);
}

INSTANTIATE_TEST_SUITE_P(families, LensOf,
                         testing::Values("gpt2", "gpt_neox", "llama", "llama3", "llama_linear", "mistral", "mixtral",
                                         "qwen2", "qwen2_yarn", "qwen3", "qwen3_moe", "phi3", "phi3_longrope", "gemma2",
                                         "gemma3", "olmo2", "gpt_oss", "deepseek_v3", "deepseek_yarn", "bert", "bart",
                                         "marian", "t5", "t5_gated"),
                         [](const auto& at) { return at.param; });

// Every number recomputed from whole rows of logits in double.
TEST(Lens, says_what_the_definitions_say) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const auto width = static_cast<size_t>(model->spec().vocabulary);
  const std::vector<TokenText> texts{{.ids = some_ids(17, 3)}};
  const Seen seen = look(*model, engine, texts[0]);
  Reader reader(*model, engine, {});
  const LensReport report = read_lens(reader, texts);
  const size_t depths = seen.by_depth.size(), rows = texts[0].ids.size();
  std::vector<double> agrees(depths), rank(depths), entropy(depths), kl(depths), loss(depths), settled(depths);
  for (size_t r = 0; r < rows; ++r) {
    std::vector<std::vector<double>> logp(depths);
    std::vector<size_t> top;
    for (size_t d = 0; d < depths; ++d) {
      double sum = 0;
      for (size_t v = 0; v < width; ++v) sum += std::exp(static_cast<double>(seen.by_depth[d][r * width + v]));
      for (size_t v = 0; v < width; ++v) {
        logp[d].push_back(static_cast<double>(seen.by_depth[d][r * width + v]) - std::log(sum));
      }
      top.push_back(static_cast<size_t>(std::max_element(logp[d].begin(), logp[d].end()) - logp[d].begin()));
    }
    size_t first = depths - 1;
    for (size_t d = 0; d < depths; ++d) {
      if (std::all_of(top.begin() + static_cast<std::ptrdiff_t>(d), top.end(),
                      [&](size_t t) { return t == top.back(); }))
        first = std::min(first, d);
    }
    settled[first] += 1;
    for (size_t d = 0; d < depths; ++d) {
      agrees[d] += top[d] == top.back() ? 1 : 0;
      const double at = logp[d][top.back()];
      rank[d] +=
          1 + static_cast<double>(std::count_if(logp[d].begin(), logp[d].end(), [&](double v) { return v > at; }));
      for (size_t v = 0; v < width; ++v) {
        entropy[d] -= std::exp(logp[d][v]) * logp[d][v];
        kl[d] += std::exp(logp.back()[v]) * (logp.back()[v] - logp[d][v]);
      }
      if (r + 1 < rows) loss[d] -= logp[d][static_cast<size_t>(texts[0].ids[r + 1])];
    }
  }
  const auto n = static_cast<double>(rows);
  for (size_t d = 0; d < depths; ++d) {
    const LensLayer& layer = report.layers[d];
    EXPECT_NEAR(layer.agrees.mean, agrees[d] / n, 1e-12);
    EXPECT_NEAR(layer.rank.mean, rank[d] / n, 1e-12);
    EXPECT_NEAR(layer.entropy.mean, entropy[d] / n, 1e-5);
    EXPECT_NEAR(layer.kl.mean, kl[d] / n, 1e-5);
    EXPECT_NEAR(layer.loss.mean, loss[d] / (n - 1), 1e-5);
    EXPECT_NEAR(layer.settled.mean, settled[d] / n, 1e-12);
    EXPECT_EQ(layer.kl.n, static_cast<int64_t>(rows));
  }
}

// Untrained maps are the identity; trained maps lower the KL to the output on held-out texts.
TEST(Lens, learns_maps_that_come_nearer) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("gpt2")).model();
  for (auto& [name, weight] : model->weights()) weight.trainable = false;
  const std::vector<TokenText> texts = some_texts(model->spec(), 60);
  const std::span<const TokenText> learnt = std::span(texts).first(45), kept = std::span(texts).subspan(45);
  Reader reader(*model, engine, {.rows = 32});
  TunedLens lens(*model, engine);
  const LensReport plain = read_lens(reader, kept), same = read_lens(reader, kept, &lens);
  for (size_t d = 0; d < plain.layers.size(); ++d) EXPECT_EQ(plain.layers[d].kl.mean, same.layers[d].kl.mean);
  size_t heard = 0;
  lens.train(reader, learnt, {.epochs = 5, .lr = 3e-3}, [&](size_t done) { return heard = done, true; });
  EXPECT_EQ(heard, 5 * learnt.size());
  const LensReport tuned = read_lens(reader, kept, &lens);
  for (size_t d = 0; d + 1 < plain.layers.size(); ++d) {
    EXPECT_LT(tuned.layers[d].kl.mean, plain.layers[d].kl.mean) << plain.layers[d].name;
  }
  EXPECT_EQ(tuned.layers.back().kl.mean, 0);
  for (const auto& [name, weight] : model->weights()) EXPECT_FALSE(weight.gradient().defined()) << name;
}

}  // namespace lens_test
}  // namespace qkv
