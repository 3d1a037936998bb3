// Snapshots of a training run and the movie made from them: each number against an independent computation.
#include "inspect/watch/movie.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/temp_folder.h"
#include "core/host_values.h"
#include "inspect/heads/head_id.h"
#include "inspect/watch/pca.h"
#include "inspect/watch/watched_roles.h"
#include "inspect/watch/watcher.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "ops/ops.h"
#include "support/pass.h"
#include "support/some_ids.h"
#include "verify/recorded.h"

namespace qkv {
namespace {

using test::some_ids;

namespace fs = std::filesystem;

// --- steps of snapshots ----------------------------------------------------------------------------------------------

TEST(SnapshotSteps, are_dense_early_and_few) {
  for (const int64_t total : {1, 2, 12, 100, 350, 2000, 20000, 1'000'000}) {
    for (const int64_t most : {6, 20, 60}) {
      const std::vector<int64_t> steps = snapshot_steps(total, most);
      EXPECT_EQ(steps.front(), 0);
      EXPECT_EQ(steps.back(), total);
      EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end(), std::less_equal<>())) << total;  // none twice
      EXPECT_LE(std::ssize(steps), most) << total;
      for (size_t i = 1; i < steps.size() && most == 60 && total <= 20000; ++i) {
        EXPECT_LE(static_cast<double>(steps[i]), 1.2 * static_cast<double>(steps[i - 1]) + 1.5) << total;
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(snapshot_steps(350, 60).size()), 56, 4);  // it uses nearly all it may
}

// --- phases on constructed curves ------------------------------------------------------------------------------------

std::vector<int64_t> some_steps() {
  return snapshot_steps(4000, 60);
}
std::vector<double> over(const std::vector<int64_t>& steps, const std::function<double(double octaves)>& f) {
  std::vector<double> values;
  for (const int64_t step : steps) values.push_back(f(std::log2(static_cast<double>(step) + 1)));
  return values;
}

// The rule of qkv heads: a mean above the threshold is not enough.
TEST(WatchedRoles, need_the_whole_interval) {
  const Estimate near{.mean = 0.42, .low = 0.397, .high = 0.45, .n = 400, .texts = 12},
      enough{.mean = 0.42, .low = 0.4, .high = 0.45, .n = 400, .texts = 12},
      few{.mean = 0.6, .low = 0.5, .high = 0.7, .n = 400, .texts = 4};
  EXPECT_FALSE(has_role(WatchedRole::previous, near));
  EXPECT_TRUE(has_role(WatchedRole::previous, enough));
  EXPECT_TRUE(has_role(WatchedRole::first, near));  // from 0.3 on
  EXPECT_FALSE(has_role(WatchedRole::previous, few));
  EXPECT_FALSE(has_role(WatchedRole::entropy, enough));
}

TEST(Phases, are_dated_where_the_curve_turns) {
  const std::vector<int64_t> steps = some_steps();
  // Nearest to the frequencies after 6 octaves: step 63.
  const Phase turned = nearest_phase("unigram", steps, over(steps, [](double o) { return 1 + std::abs(o - 6); }));
  ASSERT_TRUE(turned.step.has_value());
  EXPECT_NEAR(static_cast<double>(*turned.step), 63, 6);
  EXPECT_FALSE(nearest_phase("bigram", steps, over(steps, [](double o) { return 9 - o / 2; })).step);  // keeps falling
  EXPECT_FALSE(nearest_phase("bigram", steps, over(steps, [](double o) { return o; })).step);          // a start
  EXPECT_FALSE(nearest_phase("bigram", std::vector<int64_t>{0, 5}, std::vector<double>{2, 1}).step);

  const auto logistic = [](double middle, double sharpness, double height) {
    return [=](double o) { return 0.02 + height / (1 + std::exp(-sharpness * (o - middle))); };
  };
  const Phase jumped = jump_phase(steps, over(steps, logistic(8, 6, 0.7)));
  ASSERT_TRUE(jumped.step.has_value());
  EXPECT_NEAR(std::log2(static_cast<double>(*jumped.step)), 8, 0.4);
  EXPECT_FALSE(jump_phase(steps, over(steps, logistic(8, 6, 0.1))).step);                      // low
  EXPECT_FALSE(jump_phase(steps, over(steps, [](double o) { return 0.08 * o; })).step);        // high, but no jump
  EXPECT_FALSE(jump_phase(steps, over(steps, [](double o) { return 0.9 - 0.07 * o; })).step);  // falls

  const double per_octave = std::log(2.0);
  const Phase flat = plateau_phase(
      steps, over(steps, [&](double o) { return o < 9 ? 8 - 0.6 * o : 8 - 0.6 * 9 - 0.05 * per_octave * (o - 9); }));
  ASSERT_TRUE(flat.step.has_value());
  EXPECT_NEAR(std::log2(static_cast<double>(*flat.step)), 9, 0.4);
  EXPECT_FALSE(plateau_phase(steps, over(steps, [](double o) { return 8 - 0.5 * o; })).step);
  // Flat for a while, then falling again: not a plateau.
  EXPECT_FALSE(plateau_phase(steps, over(steps, [](double o) { return 5 - (o < 10 ? 0 : o - 10); })).step);
}

TEST(Phases, say_why_with_their_numbers) {
  const std::vector<int64_t> steps{0, 1, 3, 7, 15};
  const Phase turned = nearest_phase("unigram", steps, std::vector<double>{4, 2, 1, 2, 3});
  EXPECT_EQ(why_of(turned), "KL(model || unigram) 4.000 at step 0, lowest here with 1.000, 3.000 at the end");
  EXPECT_EQ(why_of(nearest_phase("bigram", steps, std::vector<double>{4, 3, 2, 1, 0.5})),
            "KL(model || bigram) 4.000 at step 0, still falling at the end with 0.500");
  EXPECT_EQ(why_of(nearest_phase("bigram", steps, std::vector<double>{1, 2, 3, 4, 5})),
            "KL(model || bigram) 1.000 at step 0, never lower");
  EXPECT_EQ(why_of(jump_phase(steps, std::vector<double>{0, 0, 0.1, 0.8, 0.9})),
            "the best head's induction score goes from 0.000 to 0.900; it rises by 0.700 from step 3 to 7");
  EXPECT_EQ(why_of(jump_phase(steps, std::vector<double>{0, 0, 0.05, 0.1, 0.1})),
            "the best head's induction score goes from 0.000 to 0.100; it rises by 0.050 at most while the step "
            "doubles, a jump is 0.15");
  EXPECT_EQ(why_of(jump_phase(std::vector<int64_t>{0, 1}, std::vector<double>{0, 1})), "2 snapshots are too few");
  const double octave = std::log(2.0);
  EXPECT_EQ(
      why_of(plateau_phase(steps, std::vector<double>{9, 9 - octave, 9 - 2 * octave, 9 - 3 * octave, 9 - 4 * octave})),
      "the loss is still falling at the end: -1.000 nats per e-fold of steps, flat is under 0.1");
  EXPECT_EQ(why_of(plateau_phase(steps, std::vector<double>{3, 3, 3, 3, 3})),
            "from here on the loss changes by less than 0.1 nats per e-fold of steps");
  EXPECT_EQ(plateau_phase(steps, std::vector<double>{1, 2, 3, 4, 5}).reason, "still_rising");
}

// --- PCA -------------------------------------------------------------------------------------------------------------

TEST(Pca, finds_eigenvalues_known_by_hand) {
  const Eigen eigen = symmetric_eigen({2, -1, 0, -1, 2, -1, 0, -1, 2}, 3);
  const double root = std::sqrt(2.0);
  EXPECT_NEAR(eigen.values[0], 2 + root, 1e-12);
  EXPECT_NEAR(eigen.values[1], 2, 1e-12);
  EXPECT_NEAR(eigen.values[2], 2 - root, 1e-12);
  EXPECT_NEAR(std::abs(eigen.vectors[1]), root / 2, 1e-12);  // (1, -sqrt 2, 1) / 2
}

TEST(Pca, finds_the_axes_points_were_made_along) {
  // Points along (3, 4, 0, ...) / 5 with deviation 5 and (4, -3, 0, ...) / 5 with deviation 2, for both code paths.
  for (const auto& [count, width] : {std::pair<size_t, size_t>{8, 30}, {40, 6}}) {
    std::vector<float> points(count * width, 7.0F);  // far from the origin
    for (size_t i = 0; i < count; ++i) {
      const double a = i % 2 == 0 ? 5 : -5, b = i % 4 < 2 ? 2 : -2;
      points[i * width] += static_cast<float>((3 * a + 4 * b) / 5);
      points[i * width + 1] += static_cast<float>((4 * a - 3 * b) / 5);
    }
    const Plane plane = fit_plane(points, width);
    EXPECT_NEAR(plane.share[0], 25.0 / 29, 1e-6);
    EXPECT_NEAR(plane.share[1], 4.0 / 29, 1e-6);
    EXPECT_NEAR(plane.axes[0][0], 0.6, 1e-6);
    EXPECT_NEAR(plane.axes[0][1], 0.8, 1e-6);
    EXPECT_NEAR(plane.axes[1][0], 0.8, 1e-6);
    EXPECT_NEAR(plane.axes[1][1], -0.6, 1e-6);
    const auto [x, y] = plane.project(std::span(points).first(width));
    EXPECT_NEAR(x, 5, 1e-5);
    EXPECT_NEAR(y, 2, 1e-5);
  }
  EXPECT_EQ(fit_plane(std::vector<float>(12, 1.0F), 3).share[0], 0);  // all points equal
}

// --- frequencies -----------------------------------------------------------------------------------------------------

TEST(TokenCounts, give_the_divergences_of_their_definition) {
  constexpr int32_t kVocabulary = 7;
  TokenCounts counts(kVocabulary, std::vector<int32_t>{2, 3});
  const std::vector<int32_t> text{0, 2, 1, 2, 1, 2, 5, 3, 0, 2, 1, 4, 4};
  counts.add(std::span(text).first(12), std::span(text).subspan(1));
  counts.finish();
  EXPECT_EQ(counts.counted(), 12);
  EXPECT_EQ(counts.most_frequent(3), (std::vector<int32_t>{2, 1, 4}));
  EXPECT_DOUBLE_EQ(counts.unigram(6), 0.5 / 15.5);  // never seen
  EXPECT_DOUBLE_EQ(counts.bigram(2, 1), (3 + 10 * counts.unigram(1)) / (4 + 10));
  EXPECT_DOUBLE_EQ(counts.bigram(4, 1), counts.unigram(1));  // no pair begins with 4
  const std::vector<float> logits{0.3F, -1.5F, 2.0F, 0.0F, 40.0F, 39.0F, -60.0F};
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  for (const int32_t before : {2, 3, 4}) {
    double unigram = 0, bigram = 0, mass = 0;
    for (int32_t v = 0; v < kVocabulary; ++v) {
      const double p = std::exp(static_cast<double>(logits[static_cast<size_t>(v)])) / sum;
      unigram += p * std::log(p / counts.unigram(v));
      bigram += p * std::log(p / counts.bigram(before, v));
      mass += counts.bigram(before, v);
    }
    EXPECT_NEAR(mass, 1, 1e-12);
    const TokenCounts::Distance found = counts.distance(logits, before, 5);
    EXPECT_NEAR(found.loss, std::log(sum) - 39, 1e-6);
    EXPECT_NEAR(found.unigram, unigram, 1e-6);
    EXPECT_NEAR(found.bigram, bigram, 1e-6);
  }
}

// --- snapshots of a model --------------------------------------------------------------------------------------------

std::vector<TokenText> some_texts(const Model& model) {
  std::vector<TokenText> texts;
  for (const int64_t length : {9, 14, 6, 21, 11}) {
    TokenText text{.ids = some_ids(length, static_cast<uint32_t>(length))};
    text.targets = some_ids(length, 77);
    text.targets.back() = TokenText::kIgnored;
    if (model.spec().has_source()) text.source = some_ids(length + 3, 5);
    texts.push_back(std::move(text));
  }
  return texts;
}

WatchData material_of(const Model& model) {
  TokenCounts counts(model.spec().vocabulary, some_ids(50, 3));
  counts.add(some_ids(400, 1), some_ids(400, 2));
  counts.finish();
  return {.texts = some_texts(model), .held_out = true, .counts = std::move(counts)};
}

const WatchOptions kOptions{.steps = 100, .batch_tokens = 512, .length = 30, .seed = 4};

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
  const WatchData material = material_of(*model);
  std::vector<TokenText> repeated;
  constexpr int32_t kHalf = 8;
  for (uint32_t t = 0; t < 3; ++t) {
    std::vector<int32_t> ids = some_ids(kHalf, t), text{1};
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
    WatchOptions options = kOptions;
    options.steps = steps;
    Watcher watcher(*model, engine, material_of(*model), options);
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
  const std::vector<TokenText> texts = some_texts(*model);
  Watcher watcher(*model, engine, material_of(*model), kOptions);

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

// A movie that is read while the run goes on ends as the one that is read at the end; its axes stay while they can.
TEST(GrowingMovies, read_what_is_new_and_end_as_the_whole) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Watcher watcher(*model, engine, material_of(*model), kOptions);
  const TempFolder whole, part;
  WatchFolder folder = WatchFolder::create(whole.path(), watcher.plan());
  const auto changed = [&](int64_t step, double by) {
    Arena arena(engine.device());
    Context cx = engine.context(arena, Precision::f32());
    for (auto& [name, weight] : model->weights()) {
      if (name != "embed") continue;
      const Tensor w = weight.writable(cx);
      const test::Numbers noise = test::normals(static_cast<uint64_t>(step), w.count(), by);
      for (int64_t i = 0; i < w.count(); ++i) w.as<float>()[i] += static_cast<float>(noise[static_cast<size_t>(i)]);
      weight.updated();
    }
    folder.write(watcher.take(step));
    folder.wait();
  };
  changed(0, 0);
  changed(1, 1e-4);
  changed(2, 10);  // whatever the axes showed is lost in this
  changed(3, 1e-4);
  const auto copy = [&](const std::string& name) {
    std::filesystem::create_directories(part.path() / "watch");
    std::filesystem::copy_file(whole.path() / "watch" / name, part.path() / "watch" / name);
  };
  const auto snapshot = [](int step) { return "step-0000000" + std::to_string(step) + ".safetensors"; };

  GrowingMovie movie(part.path());
  EXPECT_FALSE(movie.grow()) << "there is no run yet";
  EXPECT_TRUE(movie.empty());
  copy("watch.json");
  copy(snapshot(0));
  EXPECT_TRUE(movie.grow());
  EXPECT_FALSE(movie.grow()) << "nothing is new";
  EXPECT_EQ(movie.movie(false).embedding.basis, 0);
  copy(snapshot(1));
  EXPECT_TRUE(movie.grow());
  const Movie early = movie.movie(false);
  EXPECT_EQ(early.steps, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(early.embedding.basis, 0) << "axes that still show it stay";
  copy(snapshot(2));
  EXPECT_TRUE(movie.grow());
  EXPECT_EQ(movie.movie(false).embedding.basis, 2) << "axes that show nothing are chosen anew";
  copy(snapshot(3));
  EXPECT_TRUE(movie.grow());
  EXPECT_EQ(movie.movie(false).embedding.basis, 2);
  const Movie last = movie.movie(true), at_once = make_movie(whole.path());
  EXPECT_EQ(last.embedding.basis, 3);
  const std::vector<std::string> texts(last.embedding.tokens.size(), "x");
  EXPECT_EQ(to_json(last, texts), to_json(at_once, texts));
  std::filesystem::remove(part.path() / "watch" / snapshot(3));  // a resumed run takes it again
  EXPECT_TRUE(movie.grow());
  EXPECT_EQ(movie.movie(false).steps, (std::vector<int64_t>{0, 1, 2}));
}

// Two models that differ in known ways: sampled entries against all entries.
TEST(Sketches, tell_motion_and_cosine_of_whole_matrices) {
  const Engine engine(kernels::best_table(), {.threads = 2});
  const auto model = Checkpoint::open(test::golden("llama")).model(),
             start = Checkpoint::open(test::golden("llama")).model();
  Watcher watcher(*model, engine, material_of(*model), kOptions);
  const TempFolder temp;
  WatchFolder folder = WatchFolder::create(temp.path(), watcher.plan());
  const auto take = [&](int64_t step) {
    Snapshot s = watcher.take(step);
    folder.write(std::move(s));
  };
  take(0);
  watcher.before_step(0);  // the step before the snapshot at step 1
  Arena arena(engine.device());
  Context cx = engine.context(arena, Precision::f32());
  uint64_t seed = 0;
  for (auto& [name, weight] : model->weights()) {
    const Tensor w = weight.writable(cx);
    const test::Numbers noise = test::normals(++seed, w.count(), 0.02);
    for (int64_t i = 0; i < w.count(); ++i) w.as<float>()[i] += static_cast<float>(noise[static_cast<size_t>(i)]);
    weight.updated();
  }
  take(1);
  folder.wait();

  const Movie movie = make_movie(temp.path());
  EXPECT_EQ(movie.steps, (std::vector<int64_t>{0, 1}));
  for (const auto& [label, name] :
       {std::pair("L0 W_Q", "layers.0.attn.q"), {"L1 W_O", "layers.1.attn.o"}, {"E", "embed"}}) {
    const auto at = std::find(movie.plan.weights.begin(), movie.plan.weights.end(), label);
    ASSERT_NE(at, movie.plan.weights.end()) << label;
    const Movie::Weight& weight = movie.weights[static_cast<size_t>(at - movie.plan.weights.begin())];
    const std::vector<float> a = host_floats(start->weights().at(name).master()),
                             b = host_floats(model->weights().at(name).master());
    double change = 0, size = 0, now = 0, both = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      change += (y - x) * (y - x);
      size += x * x;
      now += y * y;
      both += x * y;
    }
    EXPECT_NEAR(weight.moved[1], std::sqrt(change / size), 0.05 * weight.moved[1]) << label;
    EXPECT_NEAR(weight.cosine[0], both / std::sqrt(size * now), 0.05) << label;
    EXPECT_NEAR(weight.update[1], std::sqrt(change / now), 0.05 * weight.update[1]) << label;
    EXPECT_EQ(weight.moved[0], 0);
    EXPECT_NEAR(weight.cosine[1], 1, 1e-12);
  }
  EXPECT_EQ(movie.embedding.neighbours[1], 1);
  EXPECT_LT(movie.embedding.neighbours[0], 1);
  EXPECT_EQ(movie.loss[0].texts, 5);
  const Json json = to_json(movie, std::vector<std::string>(movie.embedding.tokens.size(), "猫"));
  EXPECT_EQ(json["heads"].size(), all_heads(model->spec()).size());
  EXPECT_EQ(json["heads"][0]["roles"]["previous"].size(), 2U);
  EXPECT_TRUE(json["heads"][0]["importance"][0].is_null());  // there was no backward pass
  EXPECT_EQ(json["embedding"]["x"][1].size(), movie.embedding.tokens.size());
  EXPECT_EQ(json["phases"].size(), 4U);

  // Without the snapshots, from the report alone.
  const std::filesystem::path report = temp.path() / "movie.json";
  std::ofstream(report) << Json{{"movie", json}}.dump();
  const ToldMovie told = read_movie(report);
  EXPECT_EQ(to_json(told.movie, told.texts), json);
  Json shorter = json;
  shorter["heads"][0]["roles"]["previous"].erase(1);
  std::ofstream(report) << Json{{"movie", shorter}}.dump();
  expect_error([&] { read_movie(report); }, {"1 entries but should have 2"});
  std::ofstream(report) << "{}";
  expect_error([&] { read_movie(report); }, {"not the report of a movie"});

  folder.remove_after(0);
  EXPECT_EQ(folder.steps(), std::vector<int64_t>{0});
}

TEST(WatchFolder, says_what_is_wrong_with_it) {
  const TempFolder temp;
  const fs::path run = temp.path() / "跑";
  expect_error([&] { make_movie(run); }, {"there is no", "跑"});
  fs::create_directory(run);
  const std::optional<Error> unwatched = error_of([&] { make_movie(run); });
  ASSERT_TRUE(unwatched.has_value());
  EXPECT_NE(unwatched->hint().find("--watch"), std::string::npos);

  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Watcher watcher(*model, engine, material_of(*model), kOptions);
  WatchFolder folder = WatchFolder::create(run, watcher.plan());
  expect_error([&] { make_movie(run); }, {"none has been taken"});
  folder.write(watcher.take(16));
  folder.wait();
  EXPECT_EQ(folder.read(16).step, 16);
  const fs::path file = WatchFolder::in(run) / "step-00000016.safetensors";
  const auto size = fs::file_size(file);

  const auto damaged = [&](const std::function<void()>& damage, std::initializer_list<std::string_view> parts) {
    const std::string good = read_file(file, size + 1);
    damage();
    expect_error([&] { make_movie(run); }, parts);
    write_file_atomic(file, std::as_bytes(std::span(good)));
  };
  damaged([&] { fs::resize_file(file, size - 9); }, {"step-00000016.safetensors"});
  const auto spoil = [&](std::streamoff from) {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(from);
    for (int i = 0; i < 16; ++i) out.put('\xff');
  };
  uint64_t header = 0;
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof(header));
  damaged([&] { spoil(static_cast<std::streamoff>(8 + header)); }, {"step-00000016.safetensors", "nan"});  // F64
  damaged([&] { spoil(static_cast<std::streamoff>(size) - 16); }, {"step-00000016.safetensors", "a count is -1"});
  damaged([&] { fs::copy_file(file, WatchFolder::in(run) / "step-00000032.safetensors"); },
          {"step-00000032.safetensors", "16", "32"});
  fs::remove(WatchFolder::in(run) / "step-00000032.safetensors");
  EXPECT_EQ(make_movie(run).steps.size(), 1U);
  WatchPlan other = watcher.plan();
  other.heads.pop_back();
  WatchFolder::create(run, other);
  expect_error([&] { make_movie(run); }, {"step-00000016.safetensors", "watch.json"});
  std::ofstream(WatchFolder::in(run) / "watch.json") << "{\"steps\": 3}";
  expect_error([&] { make_movie(run); }, {"watch.json"});
}

// Plans of equal sizes can differ too: the message names what does, and both values.
TEST(Watching, goes_on_only_with_its_own_snapshots) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Watcher watcher(*model, engine, material_of(*model), kOptions);
  const WatchPlan own = watcher.plan();
  watcher.resume(own, 1);
  const auto refused = [&](const std::function<void(WatchPlan&)>& change,
                           std::initializer_list<std::string_view> parts) {
    WatchPlan other = own;
    change(other);
    expect_error([&] { watcher.resume(other, 1); }, parts);
  };
  const std::string first = std::to_string(own.tokens[0]), second = std::to_string(own.tokens[1]);
  refused([](WatchPlan& plan) { std::swap(plan.tokens[0], plan.tokens[1]); },
          {"number 0 of the", "tokens is " + second + " in the existing snapshots but " + first});
  refused([](WatchPlan& plan) { plan.heads[2] = "L7H9"; }, {"number 2 of the", "heads is L7H9", "but L0H2"});
  refused([](WatchPlan& plan) { plan.heads.pop_back(); }, {"heads but this run has"});
  refused([](WatchPlan& plan) { plan.weights[1] = "L0 W_X"; }, {"number 1 of the", "matrices is L0 W_X"});
  refused([](WatchPlan& plan) { plan.texts = 8; }, {"8 texts but this run has 5"});
  refused([](WatchPlan& plan) { plan.synthetic += 1; }, {"synthetic texts but this run has"});
  refused([](WatchPlan& plan) { plan.width *= 2; }, {"numbers in an embedding"});
  refused([](WatchPlan& plan) { plan.repeated += 1; }, {"tokens that are repeated"});
}

}  // namespace
}  // namespace qkv
