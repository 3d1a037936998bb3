// Alignment against gold pairs: the error rate, what needs no model, and the choice of a head.
#include "inspect/look/alignment_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/expect_error.h"
#include "inspect/heads/head_labels.h"
#include "inspect/look/alignment_both_ways.h"
#include "inspect/taps/recorder.h"
#include "kernels/tables.h"
#include "model/checkpoint/checkpoint.h"
#include "support/pass.h"

namespace qkv {
namespace {

// Words w0, w1, ... separated by spaces.
LabelledText words_in(const std::vector<int>& ids) {
  LabelledText text;
  for (const int id : ids) {
    const size_t begin = text.text.size();
    text.text += "w" + std::to_string(id);
    text.words.push_back({.begin = begin, .end = text.text.size()});
    text.text += ' ';
  }
  return text;
}

Tokenizer word_tokenizer() {
  Json vocab;
  for (int t = 0; t < 60; ++t) vocab["w" + std::to_string(t)] = t;
  const Json file{{"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "w0"}}},
                  {"pre_tokenizer", {{"type", "Whitespace"}}}};
  return Tokenizer::from_json(file.dump(), "words");
}

TEST(AlignmentError, is_what_its_formula_says) {
  EXPECT_EQ(alignment_error({{0, 0}, {1, 1}}, {.links = {{0, 0}, {1, 1}}}), 0);
  EXPECT_EQ(alignment_error({{0, 1}}, {.links = {{0, 0}}}), 1);
  const WordPairs found{{0, 0}, {2, 1}, {1, 2}};
  EXPECT_NEAR(alignment_error(found, {.links = {{0, 0}, {1, 2}}}), 1 - 4.0 / 5, 1e-12);
  // A possible link is not wrong, and not missed.
  EXPECT_EQ(alignment_error(found, {.links = {{0, 0}, {1, 2}}, .possible = {{2, 1}, {2, 2}}}), 0);
  EXPECT_NEAR(alignment_error(found, {.links = {{0, 0}, {1, 2}}, .possible = {{0, 1}}}), 1 - 4.0 / 5, 1e-12);
}

TEST(AlignmentError, knows_alignments_without_attention) {
  // A source of two words and a target of four: each source word twice.
  EXPECT_EQ(diagonal_links({.source = words_in({1, 2}), .target = words_in({3, 4, 5, 6})}),
            (WordPairs{{0, 0}, {0, 1}, {1, 2}, {1, 3}}));
  // The middle of a target word decides: two words over three take the first and the last.
  EXPECT_EQ(diagonal_links({.source = words_in({1, 2, 3}), .target = words_in({4, 5})}), (WordPairs{{0, 0}, {2, 1}}));
  // Word i is translated by i + 20, in reversed order; 40 stands in every target and comes of nothing.
  std::vector<GoldPair> pairs;
  for (int i = 0; i < 8; ++i) {
    const int a = 1 + i, b = 1 + (3 * i + 1) % 8;
    pairs.push_back({.source = words_in({a, b}), .target = words_in({b + 20, 40, a + 20}), .links = {{0, 2}, {1, 0}}});
  }
  const std::vector<WordPairs> links = model1_links(pairs);
  for (size_t p = 0; p < pairs.size(); ++p) {
    WordPairs found = links[p];
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, pairs[p].links) << p;
  }
}

TEST(AlignmentError, reads_gold_lines_or_says_which_is_wrong) {
  const std::string good =
      R"({"source": "a cat", "target": "猫", "source_words": [[0, 1], [2, 5]], "target_words": [[0, 3]], "pairs": [[1, 0]]})";
  const std::vector<GoldPair> pairs = read_gold_pairs(good + "\n\n" + good + "\n", "gold");
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[1].links, (WordPairs{{1, 0}}));
  EXPECT_EQ(pairs[1].source.words[1].end, 5U);
  const std::string crossed =
      R"({"source": "a b", "target": "b a", "source_words": [[0, 1], [2, 3]], "target_words": [[0, 1], [2, 3]], "pairs": [[1, 0], [0, 1]]})";
  EXPECT_EQ(read_gold_pairs(crossed, "gold").front().links, (WordPairs{{0, 1}, {1, 0}}));  // sorted
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    return good + "\n" + line.replace(line.find(from), from.size(), to);
  };
  expect_error([&] { read_gold_pairs(with("[2, 5]", "[2, 6]"), "gold"); }, {"gold:2", "[2, 6)", "5 bytes"});
  expect_error([&] { read_gold_pairs(with("[[1, 0]]", "[[2, 0]]"), "gold"); }, {"gold:2", "[2, 0]", "2 source"});
  expect_error([&] { read_gold_pairs(with("\"pairs\"", "\"links\""), "gold"); }, {"gold:2", "pairs"});
}

// The error of alignments over all the pairs a head is judged on.
double pooled_error(std::span<const WordPairs> found, std::span<const GoldPair> pairs) {
  double wrong = 0, all = 0;
  for (size_t p = 0; p < pairs.size(); ++p) {
    if (!judges(p)) continue;
    const auto links = static_cast<double>(found[p].size() + pairs[p].links.size());
    wrong += links * alignment_error(found[p], pairs[p]);
    all += links;
  }
  return wrong / all;
}

class ChosenHead : public testing::Test {
 protected:
  // Gold pairs that are what X1H2 looks at when it predicts a word, where it gives one word at least
  // this share of its weight.
  void fill(double least) {
    for (int p = 0; p < 48; ++p) {
      std::vector<int> source, target;
      for (int i = 0; i < 4 + p % 3; ++i) source.push_back(3 + (7 * p + 5 * i) % 50);
      for (int i = 0; i < 3 + p % 4; ++i) target.push_back(3 + (11 * p + 3 * i) % 50);
      GoldPair& pair = pairs_.emplace_back();
      pair.source = words_in(source);
      pair.target = words_in(target);
      TokenText text{.ids = {0}, .source = {source.begin(), source.end()}};
      text.ids.insert(text.ids.end(), target.begin(), target.end());
      Recorder recorder({{{Stack::cross, 1}, Site::attn_probs}});
      reader_.look({&text, 1}, recorder);
      const RecordedTap& seen = recorder.all().front();
      constexpr size_t kHead = 2;
      const auto keys = static_cast<size_t>(seen.shape[2]);
      for (size_t t = 0; t < target.size(); ++t) {  // row t predicts it, as the start token is before
        const auto row = seen.row(static_cast<int64_t>(t)).subspan(kHead * keys, source.size());
        const auto most = std::max_element(row.begin(), row.end());
        if (static_cast<double>(*most) >= least) pair.links.emplace_back(most - row.begin(), t);
      }
      std::sort(pair.links.begin(), pair.links.end());
    }
  }
  AlignmentScore score() { return score_alignment(reader_, {tokenizer_, tokenizer_, {0}}, pairs_); }

  const Engine engine_{kernels::best_table(), {.threads = 2}};
  const std::unique_ptr<Model> model_ = Checkpoint::open(test::golden("marian")).model();
  const Tokenizer tokenizer_ = word_tokenizer();
  Reader reader_{*model_, engine_, {.rows = 24}};  // several sentences a pass
  std::vector<GoldPair> pairs_;
};

// That head is chosen, and makes no error on the other half either.
TEST_F(ChosenHead, is_the_one_that_aligns) {
  fill(0);
  const AlignmentScore found = score();
  EXPECT_EQ(name_of(model_->spec(), found.choice.head), "X1H2");
  EXPECT_FALSE(found.choice.reading);
  EXPECT_EQ(found.choice.least, 0);
  EXPECT_EQ(found.chosen.mean, 0);
  EXPECT_EQ(found.judged.mean, 0);
  EXPECT_EQ(found.sentences, 48);
  int64_t links = 0;
  for (const GoldPair& pair : pairs_) links += std::ssize(pair.links);
  EXPECT_EQ(found.links, links);
}

// What needs no attention is judged on the same sentences.
TEST_F(ChosenHead, is_held_to_the_diagonal_and_to_model_1) {
  fill(0);
  std::vector<WordPairs> diagonal;
  for (const GoldPair& pair : pairs_) diagonal.push_back(diagonal_links(pair));
  const std::vector<WordPairs> model1 = model1_links(pairs_);
  ASSERT_GT(std::abs(pooled_error(diagonal, pairs_) - pooled_error(model1, pairs_)), 0.01);
  const AlignmentScore found = score();
  EXPECT_NEAR(found.diagonal.mean, pooled_error(diagonal, pairs_), 1e-9);
  EXPECT_NEAR(found.model1.mean, pooled_error(model1, pairs_), 1e-9);
}

// A word may have no counterpart: then the largest weight is small, and it is not linked.
TEST_F(ChosenHead, links_only_what_has_enough_weight) {
  fill(0.3);
  const AlignmentScore found = score();
  EXPECT_EQ(name_of(model_->spec(), found.choice.head), "X1H2");
  EXPECT_GT(found.choice.least, 0);
  EXPECT_LT(found.chosen.mean, 0.1);
}

// Gold that nobody knows: chosen as well as can be on one half, and no better than before on the other.
TEST_F(ChosenHead, is_not_judged_where_it_was_chosen) {
  fill(0);
  for (size_t p = 0; p < pairs_.size(); ++p) {
    for (auto& [s, t] : pairs_[p].links) s = (s + 1 + p + t) % pairs_[p].source.words.size();
    std::sort(pairs_[p].links.begin(), pairs_[p].links.end());
  }
  const AlignmentScore none = score();
  EXPECT_GT(none.judged.mean, none.chosen.mean);
  double best = 1;
  for (const Estimate& head : none.best) best = std::min(best, head.mean);
  EXPECT_EQ(best, none.chosen.mean);
  pairs_.resize(9);
  expect_error([&] { score(); }, {"9 gold sentence pairs", "40"});
}

// Two words are linked if they look at one another more than at others, and enough.
TEST(MutualLinks, are_words_that_look_at_one_another) {
  const std::vector<std::vector<double>> there{{0.9, 0.1}, {0.6, 0.4}, {}};  // [target, source]
  const std::vector<std::vector<double>> back{{0.4, 0.3, 0.3}, {0, 0.8, 0.2}};
  // roots of products: (0,0) 0.6, (0,1) 0.42, (1,0) 0, (1,1) 0.57; the third target has no weight
  EXPECT_EQ(mutual_links(there, back, 0.05), (WordPairs{{0, 0}, {1, 1}}));
  EXPECT_EQ(mutual_links(there, back, 0.58), (WordPairs{{0, 0}}));
  EXPECT_TRUE(mutual_links(there, back, 0.7).empty());
  // A name of two words and one that is both: each is the highest of its row.
  EXPECT_EQ(mutual_links({{0.5, 0.4}}, {{1.0}, {0.9}}, 0.3), (WordPairs{{0, 0}, {1, 0}}));
}

// Both ways is what the weights of the two heads, read one sentence at a time, give.
TEST_F(ChosenHead, both_ways_is_made_of_the_weights_of_both) {
  fill(0);
  const PairTokenizers tokenizers{tokenizer_, tokenizer_, {0}};
  const BothWaysScore both = score_both_ways(reader_, tokenizers, pairs_);
  const AlignmentScore alone = score();
  EXPECT_EQ(both.there.judged.mean, alone.judged.mean);
  EXPECT_EQ(name_of(model_->spec(), both.there.choice.head), "X1H2");
  const auto weights = [&](const std::vector<int32_t>& source, const std::vector<int32_t>& target,
                           const AlignmentChoice& choice) {
    TokenText text{.ids = {0}, .source = source};
    text.ids.insert(text.ids.end(), target.begin(), target.end());
    Recorder recorder({{{Stack::cross, choice.head.layer}, Site::attn_probs}});
    reader_.look({&text, 1}, recorder);
    const RecordedTap& seen = recorder.all().front();
    const auto keys = static_cast<size_t>(seen.shape[2]);
    std::vector<std::vector<double>> rows;
    for (size_t t = 0; t < target.size(); ++t) {
      const auto row = seen.row(static_cast<int64_t>(t) + (choice.reading ? 1 : 0))
                           .subspan(static_cast<size_t>(choice.head.head) * keys, source.size());
      rows.emplace_back(row.begin(), row.end());
    }
    return rows;
  };
  std::vector<WordPairs> found;
  for (const GoldPair& pair : pairs_) {
    const std::vector<int32_t> source = tokenizer_.encode(pair.source.text),
                               target = tokenizer_.encode(pair.target.text);
    found.push_back(mutual_links(weights(source, target, both.there.choice), weights(target, source, both.back.choice),
                                 both.least));
  }
  EXPECT_NEAR(both.judged.mean, pooled_error(found, pairs_), 1e-9);
}

TEST_F(ChosenHead, needs_cross_attention) {
  fill(0);
  const auto model = Checkpoint::open(test::golden("llama")).model();
  Reader reader(*model, engine_, {});
  expect_error(
      [&] {
        score_alignment(reader, {tokenizer_, tokenizer_, {0}}, pairs_);
      },
      {"llama has no cross-attention"});
}

}  // namespace
}  // namespace qkv
