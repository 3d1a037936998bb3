// The world of facts, and cutting feed-forwards by their means.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/tables.h"
#include "labs/facts/cut_branches.h"
#include "labs/facts/fact_world.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace {

constexpr int32_t kRole0 = FactWorld::kCountries, kTown0 = kRole0 + FactWorld::kRoles,
                  kColour0 = kTown0 + FactWorld::kTowns, kWord0 = kColour0 + FactWorld::kColours;

bool within(int32_t id, int32_t first, int32_t end) {
  return id >= first && id < end;
}

// Towns said of each pair of country and role: of a sentence, the last town after both.
std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> said_towns(const FactWorld& world) {
  std::map<std::pair<int32_t, int32_t>, std::set<int32_t>> said;
  for (int64_t step = 0; step < 20; ++step) {
    const TrainBatch batch = world.texts(1, step, 24);
    int32_t country = -1, role = -1;
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      const int32_t id = batch.ids[i];
      if (within(id, 0, kRole0)) country = id;
      if (within(id, kRole0, kTown0)) role = id;
      if (within(id, kTown0, kColour0) && country >= 0 && role >= 0) {
        said[{country, role}].insert(id);
        country = role = -1;
      }
    }
  }
  return said;
}

TEST(FactWorldTask, facts_stay_and_shuffled_ones_do_not) {
  const auto facts = said_towns(FactWorld(3));
  EXPECT_EQ(facts.size(), static_cast<size_t>(FactWorld::kCountries * FactWorld::kRoles)) << "all of them are said";
  for (const auto& [what, towns] : facts) EXPECT_EQ(towns.size(), 1U) << what.first << " " << what.second;
  size_t changing = 0;
  for (const auto& [what, towns] : said_towns(FactWorld(3, true))) changing += towns.size() > 1 ? 1U : 0U;
  EXPECT_GT(changing, 100U);
}

TEST(FactWorldTask, questions_ask_for_what_the_texts_say) {
  const FactWorld world(3);
  auto facts = said_towns(world);
  const auto questions = world.facts(1);
  EXPECT_EQ(questions.size(), 128U);
  for (const FactWorld::Question& q : questions) {
    ASSERT_EQ(std::ssize(q.text.ids), FactWorld::kLastAt + 1);
    const int32_t country = q.text.ids[FactWorld::kCountryAt];
    ASSERT_TRUE(within(country, 0, kRole0));
    EXPECT_EQ(*facts.at({country, kRole0 + q.group}).begin(), q.answer);
    for (size_t i = 0; i < FactWorld::kUnrelated; ++i) EXPECT_GE(q.text.ids[i], kColour0) << "nothing of the question";
  }
  std::set<int32_t> colours;
  for (const FactWorld::Question& q : world.flags(1, 50)) {
    EXPECT_EQ(q.text.ids[1], q.text.ids.back()) << "the flag";
    EXPECT_EQ(q.text.ids[2], q.answer);
    EXPECT_EQ(std::count(q.text.ids.begin(), q.text.ids.end(), q.answer), 1);
    colours.insert(q.answer);
  }
  EXPECT_GT(colours.size(), 15U);
}

// A mean over one text is the text's own; a mean over others is not, and only then may answers change.
TEST(CutFeedForwards, by_their_own_values_changes_nothing) {
  const Engine engine(kernels::best_table(), {.threads = 1});
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Reader reader(*model, engine, {.rows = 20});
  std::vector<TokenText> texts;
  std::vector<int32_t> alone, together;
  for (int32_t i = 0; i < 24; ++i) {
    texts.push_back({.ids = {5, 9, 2 + i, 7, 11 + i, 5}});
    alone.push_back(i);
    together.push_back(0);
  }
  const std::vector<int32_t> whole = top_guesses(reader, {texts, alone});
  EXPECT_EQ(top_guesses_without_feed_forwards(reader, {texts, alone}), whole);
  EXPECT_NE(top_guesses_without_feed_forwards(reader, {texts, together}), whole);
}

}  // namespace
}  // namespace qkv
