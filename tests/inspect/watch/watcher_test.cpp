// Snapshots of a model: each number against an independent computation.
#include "inspect/watch/watcher.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/host_values.h"
#include "inspect/heads/head_id.h"
#include "inspect/watch/watched.h"
#include "inspect/watch/watched_roles.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "support/pass.h"
#include "support/some_ids.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

// Every attention weight of every head, from the attention map.
struct Patterns : ReadingProbe {
  struct Seen {
    Place place;
    int32_t text, row, keys;
    std::vector<float> weights;  // [heads, keys]
  };
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place, Site site) const override { return site == Site::attn_probs ? Ask::pattern : Ask::none; }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    const auto heads = static_cast<size_t>(x.dim(1)), keys = static_cast<size_t>(x.dim(2));
    const std::vector<float> all = host_floats(x);
    for (const Segment& s : tap.rows->list) {
      for (int32_t r = 0; r < s.rows; ++r) {
        const auto begin = all.begin() + static_cast<int64_t>(static_cast<size_t>(s.first_row + r) * heads * keys);
        rows.push_back(
            {tap.place, s.request, s.position + r, s.keys, {begin, begin + static_cast<int64_t>(heads * keys)}});
      }
    }
  }
  std::vector<Seen> rows;
};

class WatchOf : public testing::TestWithParam<const char*> {};

TEST_P(WatchOf, measures_what_the_pattern_shows) {
  using enum WatchedRole;
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden(GetParam())).model();
  const WatchData material = test::watch_data(*model);
  std::vector<TokenText> repeated;
  constexpr int32_t kHalf = 8;
  for (uint32_t t = 0; t < 3; ++t) {
    std::vector<int32_t> ids = test::some_ids(kHalf, t), text{1};
    for (int i = 0; i < 2; ++i) text.insert(text.end(), ids.begin(), ids.end());
    repeated.push_back({.ids = text});
    if (model->spec().has_source()) repeated.back().source = text;
  }
  Reader reader(*model, engine, {.rows = 40});
  Snapshot s;
  measure_roles(reader, material.texts, repeated, material.counts, s);

  const std::vector<HeadId> heads = all_heads(model->spec());
  std::vector<std::array<TextSum, kWatchedRoles>> right(heads.size());
  for (const bool twice : {false, true}) {
    Patterns patterns;
    reader.look(twice ? repeated : material.texts, patterns);
    for (size_t h = 0; h < heads.size(); ++h) {
      const AttentionSpec& spec = attention_at(model->spec(), heads[h].place());
      const bool across = heads[h].stack == Stack::cross;
      for (const Patterns::Seen& seen : patterns.rows) {
        if (seen.place.stack != heads[h].stack || seen.place.layer != heads[h].layer) continue;
        const auto width = seen.weights.size() / static_cast<size_t>(spec.heads);
        const auto a = [&](int64_t j) {
          const bool inside = j >= 0 && j < seen.keys;
          return inside ? static_cast<double>(
                              seen.weights[static_cast<size_t>(heads[h].head) * width + static_cast<size_t>(j)])
                        : 0;
        };
        const auto add = [&](WatchedRole role, double value) { right[h][static_cast<size_t>(role)].add(value); };
        const int32_t i = seen.row;
        if (twice) {
          if (across || i <= kHalf) continue;
          add(duplicate, a(i - kHalf));
          add(induction, a(i - kHalf + 1));
        } else if (i >= 2) {
          double spread = 0, away = 0;
          for (int64_t j = 0; j < seen.keys; ++j) {
            if (a(j) > 0) spread -= a(j) * std::log(a(j));
            away += a(j) * static_cast<double>(i - j);
          }
          int64_t allowed = spec.causal ? i + 1 : seen.keys;
          if (spec.causal && spec.window > 0) allowed = std::min(allowed, spec.window);
          add(first, a(0));
          add(entropy, spread / std::log(static_cast<double>(allowed)));
          if (across) continue;
          add(previous, a(i - 1));
          add(distance, away);
        }
      }
    }
  }
  for (size_t h = 0; h < heads.size(); ++h) {
    for (size_t r = 0; r < kWatchedRoles; ++r) {
      TextSum got;
      for (const TextSum& text : s.roles[h][r]) got += text;
      EXPECT_EQ(got.count, right[h][r].count) << name_of(model->spec(), heads[h]);
      EXPECT_NEAR(got.sum, right[h][r].sum, 1e-4 * static_cast<double>(1 + got.count))
          << name_of(model->spec(), heads[h]) << ' ' << name_of(static_cast<WatchedRole>(r));
    }
  }
  // The losses are those Reader gives, by text and by position.
  const auto losses = reader.losses(material.texts);
  double all = 0, by_position = 0;
  for (size_t t = 0; t < losses.size(); ++t) {
    double sum = 0;
    for (const float loss : losses[t]) sum += static_cast<double>(loss);
    EXPECT_NEAR(s.texts[t].loss, sum, 1e-3);
    EXPECT_EQ(s.texts[t].targets, std::ssize(losses[t]));
    EXPECT_GT(s.texts[t].unigram, 0);
    all += sum;
  }
  for (const TextSum& position : s.positions) by_position += position.sum;
  EXPECT_NEAR(by_position, all, 1e-2);
  EXPECT_EQ(s.positions[1].count, 2 * std::ssize(losses));  // positions 1 and 2
}

// z of one head times a factor.
struct Gate : ReadingProbe {
  Gate(HeadId which, float times) : head(which), factor(times) {}
  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override {
    const bool here = site == Site::attn_z && place.stack == head.stack && place.layer == head.layer;
    return here ? Ask::edit : Ask::none;
  }
  void visit(Context&, const Tap&, Tensor& z) override {
    for (int64_t row = 0; row < z.dim(0); ++row) {
      float* values = z.as<float>() + (row * z.dim(1) + head.head) * z.dim(2);
      for (int64_t e = 0; e < z.dim(2); ++e) values[e] *= factor;
    }
  }
  HeadId head;
  float factor;
};

// A download in every step would cost more than a long training itself.
TEST(Watch, long_runs_measure_importance_in_some_steps_and_in_those_of_snapshots) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const auto asked = [&](int64_t steps) {
    WatchOptions options = test::kWatchOptions;
    options.steps = steps;
    Watcher watcher(*model, engine, test::watch_data(*model), options);
    int64_t count = 0;
    for (int64_t step = 0; step < steps; ++step) {
      watcher.before_step(step);
      const bool measures = watcher.ask({Stack::decoder, 0}, Site::attn_z) == Ask::importance;
      EXPECT_TRUE(measures || !watcher.due(step + 1)) << step;
      count += measures ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(asked(1000), 1000);
  const int64_t many = asked(12000);
  EXPECT_GE(many, 1500);
  EXPECT_LE(many, 1500 + 60);
}

// |dL(x)/d xi| of each example x, by the difference of two losses with the head's output scaled up and down.
TEST_P(WatchOf, importance_is_how_the_loss_changes_with_a_gate) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden(GetParam())).model();
  const std::vector<TokenText> texts = test::watched_texts(*model);
  Watcher watcher(*model, engine, test::watch_data(*model), test::kWatchOptions);

  // One batch of all texts on a tape, its loss divided by all targets, as in training.
  Arena arena(engine.device()), gradients(engine.device());
  Tape tape(gradients);
  Context cx = engine.context(arena, Precision::f32());
  cx.tape = &tape;
  cx.probe = &watcher;
  std::vector<int32_t> ids, targets, lengths, source, source_lengths;
  for (const TokenText& text : texts) {
    ids.insert(ids.end(), text.ids.begin(), text.ids.end());
    std::vector<int32_t> all = text.targets;
    all.back() = 3;  // a gate's loss is a mean over all rows
    targets.insert(targets.end(), all.begin(), all.end());
    lengths.push_back(static_cast<int32_t>(text.ids.size()));
    source.insert(source.end(), text.source.begin(), text.source.end());
    source_lengths.push_back(static_cast<int32_t>(text.source.size()));
  }
  const Rows rows = Rows::ragged(cx, lengths);
  const Rows source_rows = source.empty() ? Rows() : Rows::ragged(cx, source_lengths);
  Model::Input input{.ids = cx.upload(ids), .rows = &rows};
  if (!source.empty()) {
    input.source_ids = cx.upload(source);
    input.source_rows = &source_rows;
  }
  const auto counted = std::ssize(targets);
  const Tensor before = model->head().before_logits(cx, model->states(cx, input));
  const ops::Loss loss = ops::cross_entropy(cx, before, model->head().weight(), cx.upload(targets),
                                            {.bias = model->head().bias(),
                                             .rule = {.softcap = model->head().softcap()},
                                             .divisor = static_cast<double>(counted)});
  tape.backward(cx, loss.loss);
  watcher.after_step(counted);
  const Snapshot taken = watcher.take(7);

  std::vector<TokenText> whole = texts;
  for (TokenText& text : whole) text.targets.back() = 3;
  constexpr float kLittle = 0.01F;
  const std::vector<HeadId> heads = all_heads(model->spec());
  for (size_t h = 0; h < heads.size(); ++h) {
    Gate louder(heads[h], 1 + kLittle), quieter(heads[h], 1 - kLittle);
    Reader reader(*model, engine, {});
    const auto up = reader.losses(whole, &louder), down = reader.losses(whole, &quieter);
    double right = 0, squares = 0;
    for (size_t t = 0; t < whole.size(); ++t) {
      double change = 0;
      for (size_t r = 0; r < up[t].size(); ++r)
        change += static_cast<double>(up[t][r]) - static_cast<double>(down[t][r]);
      const double slope = std::abs(change) / (2 * static_cast<double>(kLittle)) / static_cast<double>(up[t].size());
      right += slope;
      squares += slope * slope;
    }
    EXPECT_EQ(taken.importance[h].examples, std::ssize(whole));
    EXPECT_NEAR(taken.importance[h].sum, right, 0.01 * right + 3e-4) << name_of(model->spec(), heads[h]);
    EXPECT_NEAR(taken.importance[h].squares, squares, 0.02 * squares + 3e-4);
  }
  EXPECT_EQ(watcher.take(8).importance[0].examples, 0);  // each step counts once
}

// Families without ReLU, whose kinks disturb a difference quotient.
INSTANTIATE_TEST_SUITE_P(families, WatchOf, testing::Values("gpt2", "gemma2", "bart"));

}  // namespace
}  // namespace qkv
