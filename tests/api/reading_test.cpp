// Reading with functions: names, shapes and values of the taps, edits that the pass goes on with, and what goes wrong.
#include <gtest/gtest.h>
#include <qkv/interrupt.h>

#include "api/small_model.h"
#include "base/expect_error.h"
#include "inspect/taps/recorder.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;
const Ids kRead{1, 5, 9, 4, 5, 9};

TEST(ApiRead, ShowsWhatARecorderRecords) {
  for (const api::Precision precision : {api::Precision::f32, api::Precision::bf16}) {
    const api::Model model = test::open_golden("llama", {.precision = precision});
    const OpenModel& open = inside(model);
    std::vector<TapId> all;
    std::string names;
    for (const TapInfo& tap : all_taps(open.spec())) {
      all.push_back(tap.id);
      names += (names.empty() ? "" : ",") + tap.name;
    }
    Recorder recorder(all);
    const TokenText text{.ids = kRead};
    Reader(open.model(), open.engine(), {.precision = open.precision()}).look({&text, 1}, recorder);

    std::vector<api::Array> seen;
    const api::ReadResult kept = model.read(
        kRead,
        {.keep = names, .see = {{names, [&](const std::string& name, api::Shape shape, std::span<const float> values) {
                                   seen.push_back({name, {shape.begin(), shape.end()}, {values.begin(), values.end()}});
                                 }}}});
    const api::ReadResult only_seen = model.read(kRead);
    EXPECT_TRUE(only_seen.arrays.empty());
    ASSERT_EQ(kept.arrays.size(), recorder.all().size());
    ASSERT_EQ(seen.size(), recorder.all().size());
    for (size_t i = 0; i < seen.size(); ++i) {
      const RecordedTap& wanted = recorder.all()[i];
      const std::string name = qkv::name_of(open.spec(), wanted.id);
      for (const api::Array* array : std::initializer_list<const api::Array*>{&seen[i], &kept.arrays[i]}) {
        EXPECT_EQ(array->name, name);
        EXPECT_EQ(array->values, wanted.values) << name;
        int64_t count = 1;
        for (const int64_t size : array->shape) count *= size;
        EXPECT_EQ(count, std::ssize(array->values)) << name;
      }
    }
    EXPECT_EQ(kept["logits"].shape, (std::vector<int64_t>{6, open.spec().vocabulary}));
  }
}

TEST(ApiRead, EditsAreWhatThePassGoesOnWith) {
  for (const api::Precision precision : {api::Precision::f32, api::Precision::bf16}) {
    const api::Model model = test::open_golden("llama", {.precision = precision});
    const api::Edit nothing{"attn.z,resid.mid,mlp.post", [](const std::string&, api::Shape, std::span<float>) {}};
    const api::Edit no_head{"1.attn.z", [](const std::string& name, api::Shape shape, std::span<float> values) {
                              EXPECT_EQ(name, "1.attn.z");
                              const int64_t heads = shape[1], width = shape[2];
                              for (int64_t row = 0; row < shape[0]; ++row) {
                                float* z = values.data() + (row * heads + 2) * width;
                                std::fill(z, z + width, 0.0F);
                              }
                            }};
    const auto logits = [&](const api::ReadOptions& options) { return model.read(kRead, options)["logits"].values; };
    const std::vector<float> plain = logits({.keep = "logits"});
    EXPECT_EQ(logits({.keep = "logits", .edit = {nothing}}), plain);
    const std::vector<float> without = logits({.keep = "logits", .edit = {no_head}});
    EXPECT_NE(without, plain);
    EXPECT_EQ(logits({.keep = "logits", .cut = api::Cut{.heads = "L1H2"}}), without) << "the same as cutting it";
    EXPECT_EQ(logits({.keep = "logits"}), plain) << "and nothing stays";
    const api::ReadResult both = model.read(kRead, {.keep = "1.attn.z", .edit = {no_head}});
    EXPECT_EQ(both["1.attn.z"].values[static_cast<size_t>(2 * both["1.attn.z"].shape[2])], 0) << "kept as edited";
  }
}

TEST(ApiRead, NamesOfTransformerLensAreRead) {
  const api::Model model = test::open_golden("llama");
  EXPECT_EQ(model.read(kRead, {.keep = "blocks.1.attn.hook_pattern"})["1.attn.probs"].values,
            model.read(kRead, {.keep = "1.attn.probs"})["1.attn.probs"].values);
}

TEST(ApiRead, LossesAreThoseOfTheNextTokens) {
  const api::Model model = test::open_golden("llama");
  const api::ReadResult result = model.read(kRead, {.losses = true});
  const api::Likelihood likelihood = model.likelihood(kRead);
  ASSERT_EQ(result.losses.size(), likelihood.log_p.size());
  for (size_t i = 0; i < result.losses.size(); ++i) {
    EXPECT_NEAR(result.losses[i], -likelihood.log_p[i], 1e-4) << i;
  }
}

TEST(ApiRead, AFunctionThatThrowsLeavesTheModelUsable) {
  const api::Model model = test::open_golden("llama");
  struct Mine {};
  const std::vector<float> before = model.read(kRead, {.keep = "final"})["final"].values;
  for (const char* tap : {"embed", "1.attn.probs", "logits"}) {
    EXPECT_THROW(
        model.read(kRead,
                   {.see = {{tap, [](const std::string&, api::Shape, std::span<const float>) { throw Mine{}; }}}}),
        Mine);
  }
  EXPECT_THROW(
      model.read(kRead,
                 {.edit = {{"0.mlp.out", [](const std::string&, api::Shape, std::span<float>) { throw Mine{}; }}}}),
      Mine);
  EXPECT_EQ(model.read(kRead, {.keep = "final"})["final"].values, before);
  EXPECT_EQ(model.generate(kRead, {.max_new = 3}).tokens.size(), 3U);
}

TEST(ApiRead, AFunctionIsAskedBetweenLayersAndMayEndIt) {
  const api::Model model = test::open_golden("llama");
  struct Enough {};
  int asked = 0;
  const std::vector<float> before = model.read(kText, {.keep = "final"})["final"].values;
  {
    const api::Interruptible asks([&] { ++asked; });
    EXPECT_EQ(model.read(kText, {.keep = "final"})["final"].values, before);
    EXPECT_EQ(asked, model.info().layers);
    {
      const api::Interruptible ends([] { throw Enough{}; });
      EXPECT_THROW(model.read(kText), Enough);
      EXPECT_THROW(model.likelihood(kText), Enough);
      EXPECT_THROW(model.look(kText), Enough);
    }
    model.read(kText);
    EXPECT_EQ(asked, 2 * model.info().layers) << "the one before it is asked again";
  }
  EXPECT_EQ(model.read(kText, {.keep = "final"})["final"].values, before);
  EXPECT_EQ(asked, 2 * model.info().layers) << "and none when it is gone";
}

TEST(ApiRead, TapsSayWhichCanBeChanged) {
  const api::Model model = test::open_golden("llama");
  const auto nothing = [](const std::string&, api::Shape, std::span<float>) {};
  for (const api::TapInfo& tap : model.taps()) {
    const api::ReadOptions edited{.edit = {{tap.name, nothing}}};
    if (tap.editable) {
      model.read(kText, edited);
    } else {
      EXPECT_THROW(model.read(kText, edited), Error) << tap.name;
    }
  }
}

TEST(ApiRead, SaysWhatIsWrong) {
  const api::Model model = test::open_golden("llama");
  const auto nothing = [](const std::string&, api::Shape, std::span<float>) {};
  expect_error([&] { model.read(kRead, {.keep = "1.attn.qq"}); }, {"attn.qq"});
  expect_error([&] { model.read(kRead, {.edit = {{"attn.probs", nothing}}}); }, {"attn.probs", "not changed"});
  expect_error([&] { model.read(kRead, {.see = {{"embed", {}}}}); }, {"no function"});
  expect_error([&] { model.read(Ids{}); }, {"no tokens"});
  expect_error([&] { model.read("text"); }, {"no tokenizer"});
  expect_error([&] { model.read(kRead)["final"]; }, {"no array final"});
  expect_error([&] { model.read(kRead, {.cut = api::Cut{}}); }, {"neither heads nor experts"});
  expect_error([&] { model.read(kRead, {.cut = api::Cut{.heads = "L9H0"}}); }, {"L9H0"});
  const auto nan = [](const std::string&, api::Shape, std::span<float> values) { values[0] = NAN; };
  expect_error([&] { model.read(kRead, {.edit = {{"0.resid.post", nan}}}); }, {"nan"});
  EXPECT_THROW(model.read(kRead, {.see = {{"embed", [&](const std::string&, api::Shape,
                                                        std::span<const float>) { model.read(kRead); }}}}),
               BusyError)
      << "asked from within its own pass";
  EXPECT_EQ(model.read(kRead, {.keep = "final"}).arrays.size(), 1U) << "and is still usable";
}

}  // namespace
}  // namespace qkv
