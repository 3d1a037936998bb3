// Patching against the same edit made by hand in a plain pass, and against what must hold by definition.
#include "inspect/patch/patch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "inspect/taps/recorder.h"
#include "inspect/tiny.h"
#include "kernels/tables.h"
#include "support/guarded_device.h"

namespace qkv {
namespace {

const Engine& patch_engine() {
  static const Engine one(kernels::best_table(), {.threads = 2});
  return one;
}

struct BothTexts {
  TokenText clean, corrupt;
};
BothTexts patch_texts(const ModelSpec& spec) {
  BothTexts both{{.ids = {5, 9, 2, 7, 11, 5, 9, 3}}, {.ids = {5, 9, 2, 8, 11, 5, 9, 3}}};
  if (spec.has_source()) {
    both.clean.source = {4, 8, 15, 16, 23};
    both.corrupt.source = {4, 8, 17, 16, 23};
    both.corrupt.ids = both.clean.ids;
  }
  return both;
}

// The edit, written down once more: row `position` of the tensor becomes what was recorded.
class ByHand : public Probe {
 public:
  ByHand(PatchSite at, const RecordedTap& clean) : at_(at), clean_(clean) {}
  Ask ask(Place place, Site site) const override {
    return site == at_.site && place.stack == at_.place.stack && place.layer == at_.place.layer ? Ask::edit : Ask::none;
  }
  void visit(Context& cx, const Tap&, Tensor& x) override {
    std::vector<float> values = host_floats(x);
    const auto rows = static_cast<size_t>(x.dim(0)), wide = values.size() / rows;
    const size_t heads = at_.head >= 0 ? static_cast<size_t>(x.dim(1)) : 1, each = wide / heads;
    for (size_t r = 0; r < rows; ++r) {
      if (at_.position >= 0 && r != static_cast<size_t>(at_.position)) continue;
      for (size_t i = 0; i < wide; ++i) {
        if (at_.head >= 0 && i / each != static_cast<size_t>(at_.head)) continue;
        values[r * wide + i] = clean_.values[r * wide + i];
      }
    }
    cx.kernels.copy(cx.exec, {.y = x, .x = cx.upload(values, x.shape())});
  }

 private:
  PatchSite at_;
  const RecordedTap& clean_;
};

std::vector<float> last_row(const std::vector<float>& logits, const ModelSpec& spec) {
  return {logits.end() - static_cast<std::ptrdiff_t>(spec.vocabulary), logits.end()};
}

class PatchingOf : public testing::TestWithParam<const char*> {};

TEST_P(PatchingOf, equals_the_same_edit_by_hand) {
  const auto model = Checkpoint::open(test::golden(GetParam())).model();
  const ModelSpec& spec = model->spec();
  const auto [clean, corrupt] = patch_texts(spec);
  Reader reader(*model, patch_engine(), {});
  Patcher patcher(reader, clean, corrupt);
  const PatchPlan plan = patch_plan(spec, clean, parse_heads(spec, "L0"));
  EXPECT_EQ(plan.maps.size(), spec.has_source() ? 12U : 5U);
  std::vector<std::vector<float>> patched(plan.patches.size());
  patcher.each(plan.patches,
               [&](size_t i, std::span<const float> logits) { patched[i].assign(logits.begin(), logits.end()); });
  size_t moved = 0;
  for (size_t i = 0; i < plan.patches.size(); i += 3) {
    const PatchSite at = plan.patches[i].front();
    Recorder recorder({{at.place, at.site}});
    Reader(*model, patch_engine(), {}).look({&clean, 1}, recorder);
    ByHand hand(at, recorder.last({at.place, at.site}));
    const std::vector<float> expected =
        last_row(test::plain_logits(*model, patch_engine(), corrupt, {.probe = &hand}), spec);
    ASSERT_EQ(patched[i].size(), expected.size());
    for (size_t v = 0; v < expected.size(); ++v) {
      ASSERT_NEAR(patched[i][v], expected[v], 1e-5)
          << name_of(at.site) << " of layer " << at.place.layer << ", " << at.position << ", head " << at.head;
    }
    moved += patched[i] != patcher.corrupt_logits() ? 1U : 0U;
  }
  EXPECT_GT(moved, 5U) << "edits that change nothing prove nothing";
}

TEST_P(PatchingOf, everything_gives_the_clean_answer_and_nothing_the_corrupt_one) {
  const auto model = Checkpoint::open(test::golden(GetParam())).model();
  const ModelSpec& spec = model->spec();
  const auto [clean, corrupt] = patch_texts(spec);
  Reader reader(*model, patch_engine(), {});
  Patcher patcher(reader, clean, corrupt);
  EXPECT_EQ(patcher.clean_logits(), last_row(test::plain_logits(*model, patch_engine(), clean), spec));
  EXPECT_EQ(patcher.corrupt_logits(), last_row(test::plain_logits(*model, patch_engine(), corrupt), spec));
  const auto last = static_cast<int16_t>(spec.main_stack().layers.size() - 1);
  const std::vector<Patch> patches{{},
                                   {{.place = {spec.main(), last}, .site = Site::resid_post}},
                                   {{.place = {spec.main(), last}, .site = Site::resid_post, .position = 7}}};
  size_t taken = 0;
  patcher.each(patches, [&](size_t i, std::span<const float> logits) {
    const std::vector<float> got(logits.begin(), logits.end());
    EXPECT_EQ(got, i == 0 ? patcher.corrupt_logits() : patcher.clean_logits()) << i;
    ++taken;
  });
  EXPECT_EQ(taken, 3U);
}
INSTANTIATE_TEST_SUITE_P(families, PatchingOf,
                         testing::Values("gpt2", "llama", "gpt_neox", "gemma2", "mixtral", "t5", "marian", "bert"),
                         [](const auto& at) { return at.param; });

// A causal model: what stands before the changed word is the same in both texts, and what is read last is all.
TEST(Patching, shares_are_0_before_the_change_and_1_where_all_comes_through) {
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const auto [clean, corrupt] = patch_texts(model->spec());
  Reader reader(*model, patch_engine(), {.rows = 24});  // three texts to a pass
  Patcher patcher(reader, clean, corrupt);
  PatchPlan plan = patch_plan(model->spec(), clean);
  size_t told = 0;
  const PatchOutcome outcome = patcher.outcome(plan.patches, 3, 17, [&](size_t done) {
    told = done;
    return true;
  });
  EXPECT_EQ(told, plan.patches.size());
  for (const PatchMap& map : filled(plan, outcome)) {
    for (size_t row = 0; row < map.rows.size() && map.across == PatchMap::Across::tokens; ++row) {
      for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(map.at(row, c), 0) << name_of(map.site) << c;
    }
    if (map.site == Site::resid_pre) {
      EXPECT_EQ(map.at(0, 3), 1) << "the texts differ in one token";
    }
  }
}

TEST(Patching, long_texts_in_chunks_are_patched_alike) {
  const auto model = Checkpoint::open(test::golden("llama")).model();
  const auto [clean, corrupt] = patch_texts(model->spec());
  const auto patched = [&](int64_t rows) {
    Reader reader(*model, patch_engine(), {.rows = rows});
    Patcher patcher(reader, clean, corrupt);
    return patcher.outcome(patch_plan(model->spec(), clean, parse_heads(model->spec(), "L1H0")).patches, 3, 17).patched;
  };
  EXPECT_EQ(patched(1024), patched(3));
}

TEST(Patching, works_where_the_host_cannot_touch_memory) {
  const auto [device, host] = test::on_both([](const Engine& on) {
    const auto model = Checkpoint::open(test::golden("llama")).model(on.device());
    const auto [clean, corrupt] = patch_texts(model->spec());
    Reader reader(*model, on, {});
    Patcher patcher(reader, clean, corrupt);
    return patcher.outcome(patch_plan(model->spec(), clean).patches, 3, 17).patched;
  });
  EXPECT_EQ(device, host);
}

TEST(Patching, refuses_what_cannot_be_compared) {
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Reader reader(*model, patch_engine(), {});
  const TokenText four{.ids = {5, 9, 2, 7}}, three{.ids = {5, 9, 2}}, other{.ids = {5, 9, 2, 8}};
  expect_error([&] { Patcher(reader, four, three); }, {"clean text has 4 tokens", "corrupt one 3"});
  expect_error([&] { Patcher(reader, four, four); }, {"the same 4 tokens"});
  expect_error([&] { Patcher(reader, four, other, 4); }, {"no token 4", "0 to 3"});
  Patcher patcher(reader, four, other);
  expect_error([&] { patcher.outcome({}, 3, 3); }, {"both token 3"});
  Patcher before(reader, four, other, 2);  // the row before the change: the same logits
  expect_error([&] { before.outcome({}, 3, 17); }, {"nothing is lost"});
}

}  // namespace
}  // namespace qkv
