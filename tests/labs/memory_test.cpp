// The tasks of facts and records: what they ask is what they say, and a model without the mechanism fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "labs/facts/memorising.h"
#include "labs/holds.h"
#include "labs/steps/records_task.h"
#include "labs/words/vectors.h"

namespace qkv {
namespace {

using test::holds;
using test::lab_context;

TEST(FactTableTask, has_so_many_facts_and_asks_no_other) {
  const FactTable table(300, 5);
  const TrainBatch all = table.all(), some = table.texts(5, 0, 2000);
  std::map<std::pair<int32_t, int32_t>, int32_t> facts;
  for (size_t row = 0; row < all.ids.size(); row += 2) {
    EXPECT_EQ(all.targets[row], TrainBatch::kIgnored);
    facts[{all.ids[row], all.ids[row + 1]}] = all.targets[row + 1];
  }
  EXPECT_EQ(facts.size(), 300U);
  EXPECT_EQ(all.counted, 300);
  for (size_t row = 0; row < some.ids.size(); row += 2) {
    const auto found = facts.find({some.ids[row], some.ids[row + 1]});
    ASSERT_NE(found, facts.end());
    EXPECT_EQ(found->second, some.targets[row + 1]);
  }
  std::set<int32_t> values;
  for (const auto& [pair, value] : facts) values.insert(value);
  EXPECT_GT(values.size(), 50U) << "of 64: drawn at random";
}

// Planted: experts that are one expert. As many of them, the same router, the same steps.
TEST(LabMechanisms, tied_experts_flip_experts) {
  using Form = FactMemory::Form;
  const auto known = [](Form form) { return facts_known(lab_context(), {form, 2500, 180}, 1); };
  const double dense = known(Form::dense), experts = known(Form::experts), tied = known(Form::tied);
  const char* gain = "4096 facts: experts less dense twin";
  EXPECT_TRUE(holds(labs::experts(), gain, experts - dense)) << experts << " against " << dense;
  EXPECT_FALSE(holds(labs::experts(), gain, tied - dense)) << tied << " against " << dense;
  EXPECT_LT(feed_forward_products(Form::experts), feed_forward_products(Form::dense));
  EXPECT_GT(feed_forward_products(Form::experts), 0.95 * feed_forward_products(Form::dense)) << "a twin of its size";
}

TEST(RecordsTaskTexts, have_one_record_that_belongs) {
  using Order = RecordsTask::Order;
  for (const Order order : {Order::question_first, Order::question_last}) {
    const RecordsTask task{.order = order, .seed = 4};
    TrainBatch batch;
    task.add_lists(batch, 0, 50);
    for (size_t first = 0; first < batch.ids.size(); first += 8) {
      const size_t question_at = order == Order::question_first ? first : first + 6;
      const int32_t question = batch.ids[question_at] - RecordsTask::kFirstQuestion;
      ASSERT_GE(question, 0);
      EXPECT_EQ(batch.ids[first + 7], RecordsTask::kMark);
      int belong = 0;
      for (size_t row = first; row < first + 7; ++row) {
        EXPECT_EQ(batch.targets[row], TrainBatch::kIgnored);
        if (row == question_at || !task.belongs(question, batch.ids[row] / RecordsTask::kColours)) continue;
        ++belong;
        EXPECT_EQ(batch.targets[first + 7], batch.ids[row] % RecordsTask::kColours);
      }
      EXPECT_EQ(belong, 1);
    }
    const TrainBatch apart = marks_apart(batch);
    EXPECT_EQ(apart.source_ids.size(), 50U * 7);
    EXPECT_EQ(apart.ids, std::vector<int32_t>(50, RecordsTask::kMark));
    EXPECT_EQ(apart.counted, 50);
  }
}

// Both orders ask the same.
TEST(RecordsTaskTexts, are_the_same_in_both_orders) {
  using Order = RecordsTask::Order;
  TrainBatch first, last;
  RecordsTask{.order = Order::question_first, .seed = 4}.add_lists(first, 3, 20);
  RecordsTask{.order = Order::question_last, .seed = 4}.add_lists(last, 3, 20);
  EXPECT_EQ(first.targets, last.targets);
  EXPECT_NE(first.ids, last.ids);
  for (size_t text = 0; text < first.ids.size(); text += 8) {
    const auto begin = static_cast<std::ptrdiff_t>(text);
    EXPECT_TRUE(
        std::is_permutation(first.ids.begin() + begin, first.ids.begin() + begin + 8, last.ids.begin() + begin));
  }
}

// The mechanism itself: what stands before the question cannot depend on it, in an untrained model as in any other.
TEST(RecordsTaskTexts, a_decoder_reads_records_with_the_question_in_mind_only_if_it_comes_first) {
  using Order = RecordsTask::Order;
  for (const Order order : {Order::question_first, Order::question_last}) {
    TrainBatch batch;
    RecordsTask{.order = order, .seed = 4}.add_pairs(batch, 0, 1);
    const size_t question = order == Order::question_first ? 0 : 1, record = 1 - question;
    const std::vector<int32_t> ids = batch.ids;
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    batch.ids[ids.size() + question] =
        RecordsTask::kFirstQuestion + (ids[question] - RecordsTask::kFirstQuestion + 1) % RecordsTask::kQuestions;
    batch.lengths.push_back(batch.lengths.front());
    const auto model = fresh_model(
        lab_context(), config_of({.vocabulary = RecordsTask::kVocabulary, .width = 32, .layers = 2, .init = 0.1}), 1);
    const std::vector<size_t> rows{record, ids.size() + record};
    const Vectors last = stream_vectors(lab_context().engine, *model, batch, rows).back();
    EXPECT_EQ(last[0] == last[1], order == Order::question_last);
  }
}

}  // namespace
}  // namespace qkv
