// Word labels (built-in world, CoNLL-U and GAP files) and the heads that find them, with hand-set heads.
#include "inspect/heads/head_labels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "inspect/heads/heads_by_hand.h"
#include "inspect/report/heads_report.h"
#include "kernels/tables.h"
#include "support/pass.h"
#include "world/world.h"

namespace qkv {
namespace {

using test::HeadsByHand;

TEST(Labels, of_the_world_stand_at_their_words) {
  const World world(5);
  for (const Language language : {Language::english, Language::chinese}) {
    for (uint64_t i = 0; i < 20; ++i) {
      const Story story = world.story(i);
      const AnnotatedText& annotated = story.in(language);
      const LabelledText text = labelled(annotated);
      size_t w = 0;
      for (const StorySentence& sentence : annotated.sentences) {
        const size_t first = w;
        for (const StoryWord& word : sentence.words) {
          EXPECT_EQ(text.text.substr(text.words[w].begin, text.words[w].end - text.words[w].begin), word.form);
          EXPECT_EQ(text.words[w].head, word.head == 0 ? -1 : static_cast<int>(first) + word.head - 1);
          ++w;
        }
      }
      EXPECT_EQ(w, text.words.size());
      ASSERT_EQ(text.mentions.size(), annotated.mentions.size());
      for (size_t m = 0; m < annotated.mentions.size(); ++m) {
        for (const size_t a : annotated.mentions[m].antecedents) {
          const auto& same = text.mentions[m].same;
          EXPECT_NE(std::find(same.begin(), same.end(), a), same.end());
        }
      }
    }
  }
}

TEST(Labels, belong_to_all_tokens_of_a_word) {
  const LabelledText text{.text = "no 猫 yes", .words = {{0, 2}, {3, 6}, {7, 10}}};
  Encoding encoding;
  encoding.offsets = {{0, 0}, {0, 1}, {1, 2},  {2, 4},
                      {4, 5}, {5, 6}, {6, 10}, {0, 0}};  // 猫 is three bytes, a space leads
  const std::vector<std::vector<int32_t>> right{{1, 2}, {3, 4, 5}, {6}};
  EXPECT_EQ(tokens_of_words(text, encoding), right);
}

// Hand-set heads: the previous-token head finds every arc to the word before, but no more than a fixed offset does; the
// induction head finds what followed a word's earlier copy at any distance.
TEST(Labels, are_found_where_a_head_looks) {
  Json vocab;
  for (int32_t t = 0; t < HeadsByHand::kTokens; ++t) vocab["w" + std::to_string(t)] = t;
  const Json file{{"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "w0"}}},
                  {"pre_tokenizer", {{"type", "Whitespace"}}}};
  const Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "words");
  std::vector<LabelledText> texts;
  for (uint32_t t = 0; t < 12; ++t) {
    const size_t count = 8 + t % 6;
    std::vector<int32_t> ids{0};  // a unique word, then a few words twice
    for (size_t i = 0; i < 2 * count; ++i) ids.push_back(static_cast<int32_t>(1 + (i % count * 5 + t) % 23));
    LabelledText& text = texts.emplace_back();
    for (size_t i = 0; i < ids.size(); ++i) {
      const size_t begin = text.text.size();
      text.text += "w" + std::to_string(ids[i]);
      const bool late = i > count;
      text.words.push_back({.begin = begin,
                            .end = text.text.size(),
                            .head = static_cast<int>(late ? i - count + 1 : i) - (late ? 0 : 1),
                            .relation = late ? "after copy" : "before"});
      text.text += ' ';
    }
    text.words.front().head = -1;
  }
  const Engine engine(kernels::best_table(), {.threads = 1});
  const HeadsByHand hand;
  Reader reader(*hand.model, engine, {});
  const LabelScores scores = label_scores(reader, tokenizer, texts, {});
  EXPECT_TRUE(scores.earlier_only);
  ASSERT_EQ(scores.labels.size(), 2U);
  for (const LabelScore& label : scores.labels) {
    SCOPED_TRACE(label.name);
    EXPECT_EQ(label.direction, "dependent to head");
    const bool copy = label.name == "after copy";
    const size_t head = copy ? 2 : 0;
    EXPECT_EQ(label.head, head);
    EXPECT_EQ(label.accuracy[head].mean, 1);
    EXPECT_EQ(label.accuracy[head].n, copy ? 126 : 114);  // of 8 to 13 words; the second word is too early
    EXPECT_EQ(label.chosen.n, copy ? 60 : 54);            // of 8, 10 and 12 words, twice
    EXPECT_EQ(label.judged.n, copy ? 66 : 60);
    EXPECT_EQ(label.judged.mean, 1);
    EXPECT_EQ(label.best_baseline().score.n, label.judged.n);
    EXPECT_EQ(label.found(), copy);
    EXPECT_EQ(label.best_baseline().score.mean == 1, !copy);
    // Coverage: the arcs among all words.
    const double words = 2 * (2 * 63 + 6);
    EXPECT_NEAR(label.coverage[head].mean, static_cast<double>(label.accuracy[head].n) / words, 0.01);
  }

  // The label that was found is a role of its head alone, with the guess it had to beat.
  const nlohmann::ordered_json roles = label_roles_json(scores, 2);
  ASSERT_EQ(roles.size(), 1U);
  EXPECT_EQ(roles[0].at("name"), "after copy: dependent to head");
  EXPECT_EQ(roles[0].at("score"), 1);
  EXPECT_EQ(roles[0].at("n"), 66);
  EXPECT_LT(roles[0].at("chance").get<double>(), 0.9);
  EXPECT_TRUE(label_roles_json(scores, 0).empty());

  // Texts that are longer than a pass are cut: a head is judged on whole patterns.
  Reader small(*hand.model, engine, {.rows = 18});
  const LabelScores cut = label_scores(small, tokenizer, texts, {});
  ASSERT_EQ(cut.labels.size(), 2U);
  for (const LabelScore& label : cut.labels) {
    EXPECT_EQ(label.accuracy[label.name == "after copy" ? 2 : 0].mean, 1) << label.name;
    EXPECT_GT(label.accuracy[0].n, 60) << label.name;
  }
}

// Fair coins: the best of 200 on all texts has ten points more than the best of none, and so it would be "found". Judged
// on texts it was not chosen on, it is a coin.
TEST(Labels, are_not_found_by_the_luckiest_of_many_heads) {
  constexpr size_t kHeads = 200, kTexts = 20;
  const test::Numbers drawn = test::normals(7, static_cast<int64_t>(kHeads * kTexts * 4));
  std::vector<TextSum> right(kHeads * kTexts);
  for (size_t i = 0; i < drawn.size(); ++i) right[i / 4].add(drawn[i] > 0 ? 1 : 0);
  LabelScore score{.name = "coin", .baselines = {{"always", {.mean = 0.5, .n = 40, .texts = 10}}}};
  score.accuracy = estimates(right, kTexts);
  size_t luckiest = 0;
  for (size_t h = 0; h < kHeads; ++h) {
    if (score.accuracy[h].mean > score.accuracy[luckiest].mean) luckiest = h;
  }
  EXPECT_GE(score.accuracy[luckiest].mean, 0.5 + LabelScore::kMargin);
  EXPECT_GT(score.accuracy[luckiest].low, 0.5);

  score.head = choose_head(right, kTexts);
  const std::span<const TextSum> own = std::span(right).subspan(score.head * kTexts, kTexts);
  score.chosen = estimate(of_half(own, false));
  score.judged = estimate(of_half(own, true));
  EXPECT_GE(score.chosen.mean, 0.5 + LabelScore::kMargin);
  EXPECT_FALSE(score.found()) << score.judged.mean;
  EXPECT_EQ(score.chosen.n + score.judged.n, 80);
}

TEST(Labels, of_conllu_and_gap_files_are_read_or_refused) {
  const std::string good =
      "# text = I can't 走。\n1\tI\t_\tPRON\t_\t_\t4\tnsubj\t_\t_\n2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_\n"
      "2\tca\t_\tAUX\t_\t_\t4\taux\t_\t_\n3\tn't\t_\tPART\t_\t_\t4\tadvmod:neg\t_\t_\n"
      "4\t走\t_\tVERB\t_\t_\t0\troot\t_\t_\n4.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n5\t。\t_\tPUNCT\t_\t_\t4\tpunct\t_\t_\n";
  const std::vector<LabelledText> read = read_conllu(good, "f");
  ASSERT_EQ(read.size(), 1U);
  ASSERT_EQ(read[0].words.size(), 5U);
  EXPECT_EQ(read[0].words[2].begin, 4U);  // n't
  EXPECT_EQ(read[0].words[2].relation, "advmod");
  EXPECT_EQ(read[0].words[3].begin, 8U);
  EXPECT_EQ(read[0].words[3].end, 11U);
  EXPECT_EQ(read[0].words[3].head, -1);
  EXPECT_EQ(read[0].words[0].head, 3);
  expect_error(
      [] { read_conllu("# text = a b\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2\tc\t_\t_\t_\t_\t1\tx\t_\t_\n", "f"); },
      {"f:3", "byte 2"});
  expect_error([] { read_conllu("# text = a\n1\ta\t_\t_\t_\t_\t7\troot\t_\t_\n", "f"); }, {"f:2", "7"});
  expect_error([] { read_conllu("1 a b\n", "f"); }, {"f:1", "10"});
  expect_error([] { read_conllu("", "f"); }, {"no sentence"});
  const std::string gap = "x\tÉva met Ann and she left\tshe\t16\tÉva\t0\tFALSE\tAnn\t8\tTRUE\tu\n";
  const std::vector<LabelledText> choice = read_gap(gap, "g");
  ASSERT_EQ(choice.size(), 1U);
  EXPECT_TRUE(choice[0].choices[0].feminine);
  EXPECT_EQ(choice[0].choices[0].right, 2U);
  EXPECT_EQ(choice[0].words[2].begin, 9U);  // É is two bytes
  expect_error([] { read_gap("x\tA met B and she left\tshe\t11\tA\t0\tTRUE\tB\t6\tFALSE\tu\n", "g"); },
               {"g:1", "she", "11"});
}

}  // namespace
}  // namespace qkv
