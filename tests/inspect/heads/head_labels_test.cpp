// Word labels (built-in world, CoNLL-U and GAP files) and the heads that find them, with hand-set heads.
#include "inspect/heads/head_labels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "inspect/heads/heads_by_hand.h"
#include "inspect/heads/label_cause.h"
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

// Words w0 ... w23, a token each.
Tokenizer tokenizer_of_words() {
  Json vocab;
  for (int32_t t = 0; t < HeadsByHand::kTokens; ++t) vocab["w" + std::to_string(t)] = t;
  const Json file{{"model", {{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "w0"}}},
                  {"pre_tokenizer", {{"type", "Whitespace"}}}};
  return Tokenizer::from_json(file.dump(), "words");
}

// A unique word, then a few words twice. In the second half each word depends on what followed its earlier copy, in the
// first half on the word before.
std::vector<LabelledText> texts_with_copies() {
  std::vector<LabelledText> texts;
  for (uint32_t t = 0; t < 48; ++t) {
    const size_t count = 8 + t % 6;
    std::vector<int32_t> ids{0};
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
  return texts;
}

const LabelScore& label_named(const LabelScores& scores, std::string_view name) {
  return *std::find_if(scores.labels.begin(), scores.labels.end(), [&](const auto& one) { return one.name == name; });
}

// Hand-set heads: the previous-token head finds every arc to the word before, but no more than a fixed offset does; the
// induction head finds what followed a word's earlier copy at any distance.
TEST(Labels, are_found_where_a_head_looks) {
  const Tokenizer tokenizer = tokenizer_of_words();
  const std::vector<LabelledText> texts = texts_with_copies();
  const Engine engine(kernels::best_table(), {.threads = 1});
  const HeadsByHand hand;
  Reader reader(*hand.model, engine, {});
  const LabelScores scores = label_scores(reader, tokenizer, texts, {});
  EXPECT_TRUE(scores.earlier_only);
  ASSERT_EQ(scores.labels.size(), 2U);
  EXPECT_EQ(scores.comparisons, 2U);
  for (const LabelScore& label : scores.labels) {
    SCOPED_TRACE(label.name);
    EXPECT_EQ(label.direction, "dependent to head");
    const bool copy = label.name == "after copy";
    const size_t head = copy ? 2 : 0;
    EXPECT_EQ(label.head, head);
    EXPECT_EQ(label.accuracy[head].mean, 1);
    EXPECT_EQ(label.accuracy[head].n, copy ? 504 : 456);  // of 8 to 13 words; the second word is too early
    EXPECT_EQ(label.chosen.n, copy ? 240 : 216);          // of 8, 10 and 12 words, eight times
    EXPECT_EQ(label.judged.n, copy ? 264 : 240);
    EXPECT_EQ(label.judged.mean, 1);
    EXPECT_EQ(label.judged.texts, 24);
    EXPECT_EQ(label.best_baseline().score.n, label.judged.n);
    EXPECT_EQ(label.found(), copy);
    EXPECT_EQ(label.best_baseline().score.mean == 1, !copy);
    EXPECT_NEAR(label.above.mean, label.judged.mean - label.best_baseline().score.mean, 1e-9);
    // Coverage: the arcs among all words.
    const double words = 8 * (2 * 63 + 6);
    EXPECT_NEAR(label.coverage[head].mean, static_cast<double>(label.accuracy[head].n) / words, 0.01);
    EXPECT_GT(label.judged_mass.low, 0.99);
    EXPECT_LT(label.judged_own.mean, 0.01);
  }
  // Another word in that place changes what the model copies; only this head brings it back.
  const LabelScore& copied = label_named(scores, "after copy");
  ASSERT_TRUE(copied.cause.has_value()) << copied.no_cause;
  EXPECT_EQ(copied.cause->change, "another word in its place");
  EXPECT_NEAR(copied.cause->restored.mean, 1, 1e-3);
  EXPECT_NEAR(copied.cause->others.mean, 0, 1e-3);
  EXPECT_TRUE(copied.cause->holds());
  EXPECT_EQ(copied.cause->restored.n, copied.cause->usable);
  EXPECT_FALSE(label_named(scores, "before").cause.has_value());
  EXPECT_EQ(label_named(scores, "before").no_cause, "no head looks there");

  // The label that was found is a role of its head alone, with the guess it had to beat.
  const nlohmann::ordered_json roles = label_roles_json(scores, 2);
  ASSERT_EQ(roles.size(), 1U);
  EXPECT_EQ(roles[0].at("name"), "after copy: dependent to head");
  EXPECT_EQ(roles[0].at("score"), 1);
  EXPECT_EQ(roles[0].at("n"), 264);
  EXPECT_EQ(roles[0].at("texts"), 24);
  EXPECT_GT(roles[0].at("mass").at("mean").get<double>(), 0.99);
  EXPECT_NEAR(roles[0].at("cause").at("restored").at("mean").get<double>(), 1, 1e-3);
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
  // Some labels alone.
  EXPECT_EQ(label_scores(reader, tokenizer, texts, {.names = {"before"}}).labels.size(), 1U);
}

// The query's own word is no candidate. A head that keeps nearly all of its attention there is always right about the
// rest, and yet it is not the head of that relation.
TEST(Labels, are_not_found_by_a_head_that_looks_at_itself) {
  const Tokenizer tokenizer = tokenizer_of_words();
  const std::vector<LabelledText> texts = texts_with_copies();
  const Engine engine(kernels::best_table(), {.threads = 1});
  const HeadsByHand hand(HeadsByHand::Kind::glances);
  Reader reader(*hand.model, engine, {});
  const LabelScores scores = label_scores(reader, tokenizer, texts, {.names = {"after copy"}});
  const LabelScore& label = scores.labels.front();
  EXPECT_EQ(label.head, 2U);
  EXPECT_GT(label.judged.mean, 0.95);
  EXPECT_TRUE(label.right());
  EXPECT_LT(label.judged_mass.mean, LabelScore::kLeastMass);
  EXPECT_GT(label.judged_mass.mean, 0.05);
  EXPECT_GT(label.judged_own.mean, 0.75);
  EXPECT_FALSE(label.attends());
  EXPECT_FALSE(label.found());
  EXPECT_TRUE(label_roles_json(scores, 2).empty());
}

// Two heads look alike, one of them writes: that one is chosen. The other brings nothing back.
TEST(Labels, are_not_found_by_a_head_that_brings_nothing) {
  const Tokenizer tokenizer = tokenizer_of_words();
  const std::vector<LabelledText> texts = texts_with_copies();
  const Engine engine(kernels::best_table(), {.threads = 1});
  const HeadsByHand hand(HeadsByHand::Kind::idle);
  Reader reader(*hand.model, engine, {});
  const LabelScores scores = label_scores(reader, tokenizer, texts, {.names = {"after copy"}});
  const LabelScore& label = scores.labels.front();
  EXPECT_EQ(label.accuracy[2].mean, 1);
  EXPECT_GT(label.mass[2].mean, 0.99);
  EXPECT_EQ(label.head, 3U);
  EXPECT_TRUE(label.found());

  const LabelOptions options;
  const Decisions decided(reader.model().spec(), tokenizer, texts, options);
  const LabelPairs pairs(tokenizer, texts, decided);
  const size_t copies = decided.labels[0].name == "after copy" ? 0 : 1;
  const std::vector<LabelPair> made = pairs.of(copies, true, LabelPairs::Change::word, 2);
  const std::vector<size_t> both{2, 3};
  const PatchedPairs patched = patch_pairs(reader, made, both, {.most = 30});
  EXPECT_EQ(patched.usable, 30);
  LabelScore claimed = label;
  claimed.head = 2;
  claimed.cause->restored = estimate(patched.restored[2]);
  claimed.cause->above = paired_difference(mean_of_others(patched, 2), patched.restored[2]);
  EXPECT_NEAR(claimed.cause->restored.mean, 0, 1e-6);
  EXPECT_TRUE(claimed.right() && claimed.attends());
  EXPECT_FALSE(claimed.found());
}

// A token that two words share is the query's own: looking at oneself is not looking at the other word.
TEST(Labels, of_words_that_share_a_token_count_what_is_apart) {
  const Tokenizer tokenizer = tokenizer_of_words();
  std::vector<LabelledText> texts;
  for (int32_t t = 0; t < 48; ++t) {
    LabelledText& text = texts.emplace_back();
    for (int32_t w = 0; w < 6; ++w) {
      const size_t begin = text.text.size();
      text.text += "w" + std::to_string(1 + (w + t) % 20);
      text.words.push_back({.begin = begin, .end = text.text.size()});
      text.text += ' ';
    }
    text.words.push_back(text.words[4]);  // both are the fifth token
    text.words[5].head = 3;
    text.words[5].relation = "apart";
    text.words[4].head = 6;
    text.words[4].relation = "same token";
  }
  const HeadsByHand hand;
  const Decisions decided(hand.model->spec(), tokenizer, texts, {});
  ASSERT_EQ(decided.labels.size(), 1U);
  EXPECT_EQ(decided.labels[0].name, "apart");
  EXPECT_EQ(decided.lost, 48);
}

TEST(Labels, give_pairs_that_differ_where_the_label_points) {
  const Tokenizer tokenizer = tokenizer_of_words();
  // "w1 w2 w3. w4 w5 w6 w7": names w4 and w6, the verb w7 has w4 as its subject; w3 is a name of another sentence.
  const auto text_of = [](int32_t shift) {
    LabelledText text{.text = {}, .words = {}, .mentions = {}, .choices = {}, .sentences = {0, 3}};
    for (int32_t w = 0; w < 7; ++w) {
      const size_t begin = text.text.size();
      text.text += "w" + std::to_string(1 + (w + shift) % 20);
      text.words.push_back({.begin = begin, .end = text.text.size()});
      text.text += ' ';
    }
    text.words[3].head = 6;
    text.words[3].relation = "nsubj";
    for (const size_t name : {size_t{2}, size_t{3}, size_t{5}}) text.mentions.push_back({.word = name, .kind = "name"});
    return text;
  };
  std::vector<LabelledText> texts;
  for (int32_t t = 0; t < 48; ++t) texts.push_back(text_of(t));
  const HeadsByHand hand;
  const Decisions decided(hand.model->spec(), tokenizer, texts, {});
  ASSERT_EQ(decided.labels.size(), 1U);
  EXPECT_EQ(decided.labels[0].direction, "head to dependent");
  const LabelPairs pairs(tokenizer, texts, decided);
  const std::vector<LabelPair> swapped = pairs.of(0, true, LabelPairs::Change::names, 2);
  ASSERT_EQ(swapped.size(), 24U);
  EXPECT_EQ(swapped[0].text, 1U);
  EXPECT_EQ(swapped[0].clean.ids, (std::vector<int32_t>{5, 6, 7, 8}));  // the sentence of text 1, to its verb
  EXPECT_EQ(swapped[0].corrupt.ids, (std::vector<int32_t>{7, 6, 5, 8}));
  EXPECT_EQ(swapped[0].query, (std::vector<int32_t>{3}));
  for (const LabelPair& pair : pairs.of(0, false, LabelPairs::Change::word, 1)) {
    EXPECT_EQ(pair.text % 2, 0U);
    EXPECT_NE(pair.clean.ids[0], pair.corrupt.ids[0]);
    EXPECT_TRUE(std::equal(pair.clean.ids.begin() + 1, pair.clean.ids.end(), pair.corrupt.ids.begin() + 1));
  }
  // A name that goes on in the next word is not exchanged: its rest would stay behind.
  for (LabelledText& text : texts) {
    text.words[4].head = 3;
    text.words[4].relation = "flat";
  }
  const Decisions longer(hand.model->spec(), tokenizer, texts, {});
  const size_t subject = longer.labels[0].name == "nsubj" ? 0 : 1;
  EXPECT_TRUE(LabelPairs(tokenizer, texts, longer).of(subject, true, LabelPairs::Change::names, 2).empty());
}

// Fair coins: the best of 200 on all texts has ten points more than the best of none, and so it would be "found". Judged
// on texts it was not chosen on, it is a coin.
TEST(Labels, are_not_found_by_the_luckiest_of_many_heads) {
  constexpr size_t kHeads = 200, kTexts = 40;
  const test::Numbers drawn = test::normals(7, static_cast<int64_t>(kHeads * kTexts * 2));
  std::vector<TextSum> right(kHeads * kTexts);
  for (size_t i = 0; i < drawn.size(); ++i) right[i / 2].add(drawn[i] > 0 ? 1 : 0);
  LabelScore score{.name = "coin", .baselines = {{"always", {.mean = 0.5, .n = 40, .texts = 20}}}};
  score.accuracy = estimates(right, kTexts);
  size_t luckiest = 0;
  for (size_t h = 0; h < kHeads; ++h) {
    if (score.accuracy[h].mean > score.accuracy[luckiest].mean) luckiest = h;
  }
  EXPECT_GE(score.accuracy[luckiest].mean, 0.5 + LabelScore::kMargin);
  EXPECT_GT(score.accuracy[luckiest].low, 0.5);

  const std::vector<TextSum> mass(right.size(), TextSum{1, 1});  // it all goes there
  score.head = choose_head(right, mass, kTexts);
  const std::span<const TextSum> own = std::span(right).subspan(score.head * kTexts, kTexts);
  score.chosen = estimate(of_half(own, false));
  score.judged = estimate(of_half(own, true));
  score.judged_mass = estimate(of_half(std::span(mass).first(kTexts), true));
  std::vector<TextSum> guess(kTexts, TextSum{1, 2});
  score.above = paired_difference(of_half(guess, true), of_half(own, true));
  EXPECT_TRUE(score.attends());
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
