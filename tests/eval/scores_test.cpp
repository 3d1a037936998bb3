// BLEU and chrF against sacreBLEU's results (../shared/bleu) and against values computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "eval/bleu.h"
#include "eval/chrf.h"
#include "support/pass.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;

double corpus_bleu(const Lines& hypotheses, const std::vector<Lines>& references, BleuTokenizer tokenizer) {
  BleuCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<std::string_view> wanted;
    for (const Lines& lines : references) wanted.push_back(lines[i]);
    counts += bleu_counts(hypotheses[i], wanted, tokenizer);
  }
  return bleu(counts).score;
}

double corpus_chrf(const Lines& hypotheses, const std::vector<Lines>& references, ChrfWords words,
                   ChrfSmoothing smoothing = ChrfSmoothing::effective) {
  ChrfCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<std::string_view> wanted;
    for (const Lines& lines : references) wanted.push_back(lines[i]);
    counts += chrf_counts(hypotheses[i], wanted, words, smoothing);
  }
  return chrf(counts, words, smoothing);
}

std::string joined(std::string_view line, BleuTokenizer tokenizer) {
  std::string out;
  for (const std::string& token : bleu_tokens(line, tokenizer)) out += (out.empty() ? "" : " ") + token;
  return out;
}

// The recorded numbers went through float32: half a unit in the last place of 100 is 4e-6. chrF was recorded with eps
// smoothing, and three of its numbers are not sacreBLEU's: a no-break space was counted as a character, and hypothesis
// n-grams of an order that the reference line does not have as wrong. sacreBLEU's, from its published definition in
// another program, stand here, with both kinds of smoothing.
struct SacreChrf {
  std::string_view name;
  std::optional<std::pair<double, double>> eps;  // chrF2, chrF2++; absent: as recorded
  std::pair<double, double> effective;
};
constexpr SacreChrf kSacreChrf[] = {
    {"de-13a-1", {}, {100, 100}},
    {"de-13a-20", {}, {92.88684486263193, 92.90396738553132}},
    {"de-13a-200", {{89.93159082667523, 89.826002500534}}, {89.93159314439384, 89.82601958187406}},
    {"en-13a-1", {}, {100, 100}},
    {"en-13a-20", {}, {89.36375539046306, 89.61642102294739}},
    {"en-13a-200", {}, {87.56881008543115, 87.77927910839215}},
    {"zh-1", {}, {55.16921650440426, 45.97434708700355}},
    {"zh-20", {{76.08911987646282, 63.94757385230124}}, {76.09279393766457, 63.950523821002115}},
    {"zh-200", {{75.81460810862647, 65.45441809681786}}, {75.81505250808323, 65.46394990172402}}};

TEST(Scores, EqualTheRecordedOnes) {
  QKV_NEED_SHARED(file, "bleu/bleu.json");
  constexpr double kFloat32 = 8e-6;
  const Json cases = parse_json(read_file(file, 10'000'000), "bleu.json");
  ASSERT_GE(cases.size(), 9U);
  for (const Json& one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const Lines hypotheses = one["hypotheses"];
    const std::vector<Lines> references{one["references"].get<Lines>()};
    const auto tokenizer = one["tokenize"] == "zh" ? BleuTokenizer::chinese : BleuTokenizer::mteval_13a;
    EXPECT_NEAR(corpus_bleu(hypotheses, references, tokenizer), one["bleu"].get<double>(), kFloat32);
    const auto named = [&](const SacreChrf& right) { return one["name"] == right.name; };
    const auto right = std::find_if(std::begin(kSacreChrf), std::end(kSacreChrf), named);
    ASSERT_NE(right, std::end(kSacreChrf));
    const auto [eps, eps_words] =
        right->eps.value_or(std::pair(one["chrf2"].get<double>(), one["chrf2pp"].get<double>()));
    EXPECT_NEAR(corpus_chrf(hypotheses, references, ChrfWords::none, ChrfSmoothing::eps), eps, kFloat32);
    EXPECT_NEAR(corpus_chrf(hypotheses, references, ChrfWords::up_to_two, ChrfSmoothing::eps), eps_words, kFloat32);
    EXPECT_NEAR(corpus_chrf(hypotheses, references, ChrfWords::none), right->effective.first, 1e-9);
    EXPECT_NEAR(corpus_chrf(hypotheses, references, ChrfWords::up_to_two), right->effective.second, 1e-9);
  }
}

TEST(BleuTokens, FollowMteval13a) {
  const auto tokens = [](std::string_view line) { return joined(line, BleuTokenizer::mteval_13a); };
  EXPECT_EQ(tokens("Hello, world!"), "Hello , world !");
  EXPECT_EQ(tokens("It costs $1,000.50 (or so)."), "It costs $ 1,000.50 ( or so ) .");
  EXPECT_EQ(tokens("don't well-known 1990-2000"), "don't well-known 1990 - 2000");
  EXPECT_EQ(tokens("&quot;a&amp;b&quot; &lt;c&gt;<skipped>"), "\" a & b \" < c >");
  EXPECT_EQ(tokens("a.b,c 3.d e.4"), "a . b , c 3 . d e . 4");
  EXPECT_EQ(tokens("wait... ,"), "wait . . . ,");
  EXPECT_EQ(tokens("ä.\xC2\xA0ö"), "ä . ö");  // a no-break space is a space
  EXPECT_EQ(tokens(" \t "), "");
}

TEST(BleuTokens, ChineseCharactersStandAlone) {
  const auto tokens = [](std::string_view line) { return joined(line, BleuTokenizer::chinese); };
  EXPECT_EQ(tokens("我有3.5个GPU，好！"), "我 有 3.5 个 GPU ， 好 ！");
  EXPECT_EQ(tokens("“是”——"), "“ 是 ” — —");
  EXPECT_EQ(tokens("𠀀𠀁"), "𠀀𠀁");  // sacreBLEU does not separate the rare ideographs
  EXPECT_EQ(tokens("\xFF好"), "\xFF 好");
}

// 2 of 3 unigrams, 1 of 2 bigrams, no trigram (exponential smoothing: 1/2 of 1), no 4-gram possible: 0.
TEST(Bleu, ShortAndEmptyLines) {
  EXPECT_EQ(corpus_bleu({"a b c"}, {{"a b d"}}, BleuTokenizer::mteval_13a), 0.0);
  EXPECT_EQ(corpus_bleu({""}, {{"a b c d"}}, BleuTokenizer::mteval_13a), 0.0);
  EXPECT_EQ(corpus_bleu({"x y z w"}, {{"a b c d"}}, BleuTokenizer::mteval_13a), 0.0);
  EXPECT_NEAR(corpus_bleu({"", "a b c d"}, {{"", "a b c d"}}, BleuTokenizer::mteval_13a), 100.0, 1e-9);
}

// p = 4/5, 2/4, smoothed 1/2 of 3, smoothed 1/4 of 2.
TEST(Bleu, SmoothsOrdersWithoutAMatch) {
  const double logs = std::log(80.0) + std::log(50.0) + std::log(100.0 / (2 * 3)) + std::log(100.0 / (4 * 2));
  EXPECT_NEAR(corpus_bleu({"a b x c d"}, {{"a b y c d"}}, BleuTokenizer::mteval_13a), std::exp(logs / 4), 1e-9);
}

// Clipping uses the maximum over references, the length the closest one: 5 against 4 and 8 is 4, no penalty.
TEST(Bleu, SeveralReferences) {
  const std::string_view references[] = {"a a b c", "a b c d e f g h"};
  const BleuCounts counts = bleu_counts("a a a b c", references, BleuTokenizer::mteval_13a);
  EXPECT_EQ(counts.correct, (std::array<int64_t, 4>{4, 3, 2, 1}));
  EXPECT_EQ(counts.total, (std::array<int64_t, 4>{5, 4, 3, 2}));
  EXPECT_EQ(counts.reference_length, 4);
  const std::string_view tied[] = {"a b c", "a b c d e"};
  EXPECT_EQ(bleu_counts("a b c d", tied, BleuTokenizer::mteval_13a).reference_length, 3);
}

TEST(Bleu, ShortHypothesesPayThePenalty) {
  EXPECT_NEAR(corpus_bleu({"a b c d"}, {{"a b c d e"}}, BleuTokenizer::mteval_13a), 100 * std::exp(1 - 5.0 / 4), 1e-9);
}

TEST(Chrf, TakesTheBestReferenceOfEachLine) {
  const std::vector<Lines> both{{"你好", "世界"}, {"再见", "地球"}};
  EXPECT_NEAR(corpus_chrf({"再见", "世界"}, both, ChrfWords::none), 100.0, 1e-9);  // orders 3 to 6 are empty
  EXPECT_NEAR(corpus_chrf({"再见", "世界"}, both, ChrfWords::none, ChrfSmoothing::eps), 100.0 * 2 / 6, 1e-9);
  EXPECT_EQ(corpus_chrf({""}, {{"a"}}, ChrfWords::up_to_two), 0.0);
}

// "c" has no bigrams, so the one of "cd" is not counted: bigrams 1 of 1, characters 3 of 4 and 3 of 3.
TEST(Chrf, OrdersTheReferenceLacksAreNotCounted) {
  const std::string_view reference[] = {"c"};
  const ChrfCounts counts = chrf_counts("cd", reference, ChrfWords::up_to_two);
  EXPECT_EQ(counts.hypothesis[0], 2);
  EXPECT_EQ(counts.hypothesis[1], 0);
  const double characters = 5 * 0.75 * 1 / (4 * 0.75 + 1);
  EXPECT_NEAR(corpus_chrf({"ab", "cd"}, {{"ab", "c"}}, ChrfWords::none, ChrfSmoothing::eps), 100 * (characters + 1) / 6,
              1e-9);
  EXPECT_NEAR(corpus_chrf({"ab", "cd"}, {{"ab", "c"}}, ChrfWords::none), 100 * 5 * 0.875 / (4 * 0.875 + 1), 1e-9);
  EXPECT_NEAR(corpus_chrf({"ab c", "我"}, {{"ab", "我"}}, ChrfWords::up_to_two, ChrfSmoothing::eps),
              100 * (characters + 5 * 0.5 / (4 * 0.5 + 1) + 5 * (2.0 / 3) / (4 * 2.0 / 3 + 1)) / 8, 1e-9);
}

// Every space Python knows, not only U+0020.
TEST(Chrf, SpacesAreIgnored) {
  EXPECT_NEAR(corpus_chrf({"床前\u3000明月\t光\u00A0。"}, {{"床前明月光。"}}, ChrfWords::none), 100.0, 1e-9);
}

// P = 1, R = 1/2 on words; the full stop is a word of its own.
TEST(Chrf, CountsWords) {
  const std::string_view reference[] = {"go."};
  const ChrfCounts counts = chrf_counts("go", reference, ChrfWords::up_to_two);
  EXPECT_EQ(counts.reference[6], 2);
  EXPECT_EQ(counts.matching[6], 1);
  EXPECT_EQ(counts.reference[7], 1);
  EXPECT_EQ(counts.hypothesis[7], 0);
}

}  // namespace
}  // namespace qkv
