// Looking inside a model whose weights and activations the host cannot touch: the numbers of the host. And on a GPU, where
// there is one: theirs but for rounding.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "inspect/cut/cut_model.h"
#include "inspect/cut/importance.h"
#include "inspect/heads/head_roles.h"
#include "inspect/heads/twins.h"
#include "inspect/lens/lens.h"
#include "inspect/lens/tuned_lens.h"
#include "inspect/look/attribution.h"
#include "inspect/look/looking.h"
#include "inspect/taps/recorder.h"
#include "inspect/taps/tap_price.h"
#include "inspect/tiny.h"
#include "inspect/watch/watcher.h"
#include "support/guarded_device.h"

namespace qkv {
namespace inspect_device_test {

using test::on_both, test::tiny_texts;

class OnADevice : public testing::TestWithParam<const char*> {
 protected:
  Checkpoint checkpoint_ = Checkpoint::open(test::golden(GetParam()));
  const ModelSpec& spec_ = checkpoint_.spec;
  std::vector<TokenText> texts_ = tiny_texts(spec_, {12, 9, 17});

  std::unique_ptr<Model> model(const Engine& engine) const {
    auto made = checkpoint_.model(engine.device(), BlockWeights::decoded);
    for (auto& [name, weight] : made->weights()) weight.trainable = false;
    return made;
  }
};

using Numbers = std::vector<double>;

void add(Numbers& to, const Estimate& e) {
  to.insert(to.end(), {e.mean, e.low, e.high, static_cast<double>(e.n)});
}
void add(Numbers& to, std::span<const float> values) {
  to.insert(to.end(), values.begin(), values.end());
}

// look(engine) gives the same numbers on both; on a GPU they are at most this far away.
template <class Look>
void expect_the_hosts_numbers(const Look& look, double nmse) {
  const auto [device, host] = on_both(look);
  EXPECT_EQ(device, host);
  if (!kernels::cuda::available()) return;
  const Numbers seen = look(Engine(kernels::cuda::table(), {.threads = 1}));
  ASSERT_EQ(seen.size(), host.size());
  EXPECT_LT(test::nmse(seen, host), nmse);
}
constexpr double kFullNmse = 1e-8, kHalfNmse = 1e-3;  // all in f32, some in bf16

TEST_P(OnADevice, RolesOfHeadsAndTwins) {
  const auto look = [&](const Engine& engine) {
    const auto whole = model(engine);
    Reader reader(*whole, engine, {.rows = 16});
    Numbers all;
    for (const HeadScore& head : head_roles(reader, nullptr, texts_, {.repeated_texts = 2}).heads) {
      for (const Estimate& e : head.values) add(all, e);
      for (const Estimate& e : head.value_weighted) add(all, e);
    }
    for (const TwinPair& pair : find_twins(reader, texts_, {.pairs = 2}).closest) {
      all.insert(all.end(), {pair.distance, pair.cka, pair.qk_cosine.value_or(0), pair.ov_cosine.value_or(0)});
      add(all, pair.synergy);
    }
    return all;
  };
  expect_the_hosts_numbers(look, kFullNmse);
}

TEST_P(OnADevice, OneTextAndWhatMadeALogit) {
  const auto look = [&](const Engine& engine) {
    const auto whole = model(engine);
    const Looked seen = look_at(*whole, engine, texts_[0], {.precision = Precision::bf16()});
    Numbers all;
    for (const std::vector<float>& stream : seen.streams) add(all, stream);
    for (const SeenAttention& a : seen.attentions) {
      for (const auto* numbers : {&a.pattern, &a.q, &a.k, &a.v, &a.z, &a.out_norm, &a.scores_at}) add(all, *numbers);
    }
    const Attribution made = Attributor(*whole, engine, Precision::f32(), texts_[0], 5).of(3, 7);
    for (const AttributedPart& part : made.parts) all.push_back(part.share);
    all.push_back(made.difference);
    return all;
  };
  expect_the_hosts_numbers(look, kHalfNmse);
}

TEST_P(OnADevice, HeadsAreCutOffAndOut) {
  const TempFolder temp;
  const auto look = [&](const Engine& engine) {
    const auto whole = model(engine);
    Reader reader(*whole, engine, {.rows = 16});
    const auto outputs = measure_outputs(reader, texts_, Ablation::mean);
    Numbers all;
    for (const HeadImportance& head : ablation_importance(reader, texts_, Ablation::mean, outputs)) add(all, head.raw);
    for (const HeadImportance& head : gradient_importance(reader, texts_)) add(all, head.raw);
    const Cut cut{.heads = {all_heads(spec_).front()}, .ablation = Ablation::zero};
    const std::filesystem::path folder = temp.path() / engine.device().name();
    write_cut_model(folder, cut_out(checkpoint_, engine.device(), cut), test::golden(GetParam()));
    const auto smaller = Checkpoint::open(folder).model(engine.device());
    for (const auto& losses : Reader(*smaller, engine, {.rows = 16}).losses(texts_)) add(all, losses);
    return all;
  };
  expect_the_hosts_numbers(look, kFullNmse);
}

TEST_P(OnADevice, SnapshotsOfATraining) {
  for (TokenText& text : texts_) {
    text.targets.assign(text.ids.begin() + 1, text.ids.end());
    text.targets.push_back(TokenText::kIgnored);
  }
  const auto look = [&](const Engine& engine) {
    const auto whole = model(engine);
    TokenCounts counts(spec_.vocabulary, test::some_ids(50, 3));
    counts.add(test::some_ids(400, 1), test::some_ids(400, 2));
    counts.finish();
    Watcher watcher(*whole, engine, {.texts = texts_, .held_out = true, .counts = std::move(counts)},
                    {.steps = 100, .batch_tokens = 512, .length = 30, .seed = 4});
    watcher.before_step(0);
    const Snapshot s = watcher.take(1);
    Numbers all;
    for (const auto* numbers : {&s.sketches, &s.update, &s.embedding}) add(all, *numbers);
    for (const Snapshot::TextLosses& text : s.texts) all.insert(all.end(), {text.loss, text.unigram, text.bigram});
    EXPECT_GT(all.size(), static_cast<size_t>(Snapshot::kSketch));
    return all;
  };
  expect_the_hosts_numbers(look, kFullNmse);
}

// What reads texts in one way or another.
struct Way {
  const char* name;
  int64_t rows;  // of a pass
  std::function<void(Reader&, std::span<const TokenText>)> read;
};
std::vector<Way> all_ways(const ModelSpec& spec) {
  std::vector<TapId> maps;
  for (const TapInfo& tap : all_taps(spec)) {
    if (tap.id.site == Site::attn_probs) maps.push_back(tap.id);
  }
  const auto look = [=](Reader& reader, std::span<const TokenText> texts) {
    Recorder recorder(maps);
    reader.look(texts, recorder);
  };
  return {{"losses", 256, [](Reader& reader, std::span<const TokenText> texts) { reader.losses(texts); }},
          {"maps", 256, look},
          {"maps in stretches", 32, look},
          {"gradients", 256, [](Reader& reader, std::span<const TokenText> texts) {
             Recorder nothing({});
             reader.backward(texts, nothing);
           }}};
}

// With 2 % less memory than it takes a text is refused before a pass, with 10 % more it is read.
TEST_P(OnADevice, MemoryDecidesBeforeAPass) {
  const std::vector<TokenText> texts = tiny_texts(spec_, {90, 20});
  for (const Way& way : all_ways(spec_)) {
    SCOPED_TRACE(way.name);
    const auto taken_with = [&](int64_t free) {
      test::GuardedEngine guarded;
      guarded.device.free = free;
      const auto made = model(guarded.engine);
      const int64_t before = guarded.device.most;
      Reader reader(*made, guarded.engine, {.precision = Precision::bf16(), .rows = way.rows});
      way.read(reader, texts);
      return guarded.device.most - before;
    };
    // Of a text in stretches its pages lie in the arena's first block, which is of no less than a MiB.
    const int64_t pages = spec_.kind == ModelSpec::Kind::decoder_only && way.rows < 90 ? int64_t{1} << 20 : 0,
                  taken = taken_with(int64_t{1} << 40) - pages;
    EXPECT_EQ(taken_with(taken + taken / 10), taken + pages);
    expect_error([&] { taken_with(taken - taken / 50); }, {"tokens needs", "weights", "are free on guarded"});
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, OnADevice, testing::Values("gpt2", "bart", "bert"),
                         [](const auto& family) { return std::string(family.param); });

TEST(LensOnADevice, AndPricesOfTaps) {
  const Checkpoint checkpoint = Checkpoint::open(test::golden("gpt2"));
  const std::vector<TokenText> texts = tiny_texts(checkpoint.spec, {12, 9, 17});
  const auto look = [&](const Engine& engine) {
    const auto model = checkpoint.model(engine.device());
    for (auto& [name, weight] : model->weights()) weight.trainable = false;
    Reader reader(*model, engine, {.rows = 16});
    TunedLens lens(*model, engine);
    lens.train(reader, texts, {.epochs = 1});
    Numbers all;
    for (const LensLayer& layer : read_lens(reader, texts, &lens).layers) {
      for (const Estimate* e : {&layer.kl, &layer.entropy, &layer.rank, &layer.loss}) add(all, *e);
    }
    EXPECT_FALSE(tap_prices(*model, engine, {.tokens = 8, .rounds = 1}).empty());
    return all;
  };
  expect_the_hosts_numbers(look, kFullNmse);
}

}  // namespace inspect_device_test
}  // namespace qkv
