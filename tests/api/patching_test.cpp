// Patching through the library: what the rooms below find, and what a user finds who edits a pass by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "api/small_model.h"
#include "base/expect_error.h"
#include "inspect/patch/patch.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;
const Ids kClean{5, 9, 2, 7, 11, 5, 9, 3}, kCorrupt{5, 9, 2, 8, 11, 5, 9, 3};

double by_hand(const api::Model& model, const std::string& tap, size_t row, const api::Patched& found) {
  const std::vector<float> clean = model.read(kClean, {.keep = tap})[tap].values;
  const auto put = [&](const std::string&, api::Shape shape, std::span<float> values) {
    const size_t wide = values.size() / static_cast<size_t>(shape[0]);
    std::copy_n(clean.begin() + static_cast<std::ptrdiff_t>(row * wide), wide,
                values.begin() + static_cast<std::ptrdiff_t>(row * wide));
  };
  const api::Array logits = model.read(kCorrupt, {.keep = "logits", .edit = {{tap, put}}})["logits"];
  const float* last = logits.values.data() + (logits.shape[0] - 1) * logits.shape[1];
  return static_cast<double>(last[found.answer]) - static_cast<double>(last[found.wrong]);
}

TEST(ApiPatch, RestoresWhatTheSameEditByHandRestores) {
  const api::Model model = test::open_golden("llama");
  const api::Patched found = model.patch(kClean, kCorrupt, {.answer = 4, .wrong = 6, .heads = "L1H2"});
  EXPECT_EQ(found.token, 7);
  EXPECT_EQ(found.clean_ids, kClean);
  EXPECT_EQ(found.corrupt_ids, kCorrupt);
  int checked = 0;
  for (const api::PatchMap& map : found.maps) {
    if (map.site == "attn.z") continue;
    EXPECT_EQ(map.across, "tokens");
    ASSERT_EQ(map.columns, std::ssize(kClean));
    ASSERT_EQ(map.restored.size(), map.rows.size() * kClean.size());
    for (size_t row = 0; row < map.rows.size(); ++row) {
      for (const size_t column : {size_t{3}, size_t{7}}) {
        const double m = by_hand(model, std::to_string(row) + "." + map.site, column, found);
        EXPECT_EQ(map.restored[row * kClean.size() + column], (m - found.corrupt) / (found.clean - found.corrupt))
            << map.site << " " << map.rows[row] << " at " << column;
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 12);
  EXPECT_EQ(found.maps.front().site, "resid.pre");
  EXPECT_EQ(found.maps.front().restored[3], 1.0) << "all that is different enters at token 3";
}

TEST(ApiPatch, MapsAndReportAreThoseOfTheInspector) {
  for (const char* name : {"gpt2", "llama", "t5"}) {
    const api::Model model = test::open_golden(name);
    const OpenModel& open = inside(model);
    const bool pairs = open.spec().has_source();
    const auto text = [&](const Ids& ids) { return pairs ? api::Text::pair(ids, Ids{4, 8}) : api::Text(ids); };
    const api::Patched found = model.patch(text(kClean), text(kCorrupt), {.answer = 4, .wrong = 6});
    Reader reader(open.model(), open.engine(), {.precision = open.precision()});
    const auto tokens = [&](const Ids& ids) {
      TokenText made{.ids = ids};
      if (!pairs) return made;
      made = {.ids = open.target_start(), .source = ids};
      made.ids.insert(made.ids.end(), {4, 8});
      return made;
    };
    Patcher patcher(reader, tokens(kClean), tokens(kCorrupt));
    PatchPlan plan = patch_plan(open.spec(), patcher.clean());
    const PatchOutcome outcome = patcher.outcome(plan.patches, 4, 6);
    const std::vector<PatchMap> wanted = filled(std::move(plan), outcome);
    EXPECT_EQ(found.clean, outcome.clean);
    EXPECT_EQ(found.corrupt, outcome.corrupt);
    ASSERT_EQ(found.maps.size(), wanted.size()) << name;
    const Json report = parse_json(found.json, name);
    ASSERT_EQ(report["patch"]["maps"].size(), wanted.size());
    bool has_source = false;
    for (size_t m = 0; m < wanted.size(); ++m) {
      EXPECT_EQ(found.maps[m].rows, wanted[m].rows);
      has_source = has_source || found.maps[m].across == "source";
      ASSERT_EQ(found.maps[m].restored.size(), wanted[m].restored.size());
      const Json& reported = report["patch"]["maps"][m];
      EXPECT_EQ(reported["stack"], found.maps[m].stack);
      for (size_t i = 0; i < wanted[m].restored.size(); ++i) {
        const double made = found.maps[m].restored[i];
        ASSERT_TRUE(made == wanted[m].restored[i] || (std::isnan(made) && std::isnan(wanted[m].restored[i])));
        const auto wide = static_cast<size_t>(wanted[m].columns);
        const Json& cell = reported["restored"][i / wide][i % wide];
        ASSERT_TRUE(std::isnan(made) ? cell.is_null() : cell.get<double>() == made);
      }
    }
    EXPECT_EQ(has_source, pairs);
    EXPECT_NE(found.html().find("\"report\":\"patch\""), std::string::npos);
  }
}

TEST(ApiPatch, GuessesAndTextsOfAModelWithATokenizer) {
  const test::SmallModel small;
  const api::Model model = small.open();
  const api::Patched found = model.patch("the cat sat", "the cot sat", {.answer = 100, .wrong = 101});
  const Json report = parse_json(found.json, "patch");
  EXPECT_NE(report["made_with"].get<std::string>().find("the cot sat"), std::string::npos);
  EXPECT_EQ(report["model"], "model");
  const auto top = [&](const char* text) {
    const api::Array logits = model.read(text, {.keep = "logits"})["logits"];
    const auto last = logits.values.end() - logits.shape[1];
    return static_cast<int32_t>(std::max_element(last, logits.values.end()) - last);
  };
  const int32_t clean = top("the cat sat"), corrupt = top("the cot sat");
  const api::Patched guessed = model.patch(
      "the cat sat", "the cot sat", {.wrong = clean == corrupt ? std::optional((clean + 1) % 600) : std::nullopt});
  EXPECT_EQ(guessed.answer, clean);
  EXPECT_EQ(guessed.wrong, clean != corrupt ? corrupt : (clean + 1) % 600);
}

TEST(ApiPatch, SaysWhatIsWrongAndLeavesTheModelUsable) {
  api::Model model = test::open_golden("gpt2");
  const api::PatchOptions two{.answer = 4, .wrong = 6};
  expect_error([&] { model.patch(kClean, Ids{5, 9}, two); }, {"8 tokens", "2 tokens"});
  expect_error([&] { model.patch(kClean, kClean, two); }, {"the same 8 tokens"});
  expect_error([&] { model.patch(Ids{}, Ids{}, two); }, {"no tokens"});
  expect_error([&] { model.patch(kClean, kCorrupt, {.token = 8, .answer = 4, .wrong = 6}); }, {"no token 8", "0 to 7"});
  expect_error([&] { model.patch(kClean, kCorrupt, {.answer = 4, .wrong = 4}); }, {"both texts are answered by"});
  expect_error([&] { model.patch(kClean, kCorrupt, {.answer = 99999}); }, {"answer", "99999"});
  expect_error([&] { model.patch(kClean, kCorrupt, {.wrong = -2}); }, {"wrong", "-2"});
  expect_error([&] { model.patch(kClean, kCorrupt, {.answer = 4, .wrong = 6, .heads = "L9H9"}); }, {"L9"});
  expect_error([&] { model.patch(Ids{5, 99999}, Ids{5, 6}, two); }, {"99999"});
  expect_error([&] { model.patch("a text", "b text", two); }, {"no tokenizer"});
  expect_error([&] { model.patch(kClean, kCorrupt, {.token = 2, .answer = 4, .wrong = 6}); }, {"nothing is lost"});
  EXPECT_FALSE(model.patch(kClean, kCorrupt, two).maps.empty());
  model.close();
  EXPECT_THROW(model.patch(kClean, kCorrupt, two), ClosedError);
}

}  // namespace
}  // namespace qkv
