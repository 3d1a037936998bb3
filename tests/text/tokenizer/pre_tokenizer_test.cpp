#include "text/tokenizer/pipeline/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/expect_error.h"
#include "text/tokenizer/files/tokenizer_json.h"
#include "text/tokenizer/pipeline/regex.h"
#include "text/unicode/characters.h"

namespace qkv {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(const PreTokenizerPtr& pre_tokenizer, std::string_view text) {
  Pieces plain, recorded;
  pre_tokenizer->split(TextPiece{.text = text}, [&](const TextPiece& piece) { plain.emplace_back(piece.text); });
  const NormalizedText aligned = NormalizedText::from_original(text, 0);
  pre_tokenizer->split(aligned.piece(), [&](const TextPiece& piece) { recorded.emplace_back(piece.text); });
  EXPECT_EQ(plain, recorded);
  return plain;
}

PreTokenizerPtr from_json(const char* text) {
  const Json json = parse_json(text, "test");
  return read_pre_tokenizer(JsonNode(json, "test"), {});
}

// The example in Hugging Face's documentation.
TEST(Split, HasFiveBehaviors) {
  const auto by_hyphen = [](SplitBehavior behavior, bool invert = false) {
    return split(split_pre_tokenizer(Matcher::string("-"), {.behavior = behavior, .invert = invert}),
                 "the-final--countdown");
  };
  EXPECT_EQ(by_hyphen(SplitBehavior::removed), (Pieces{"the", "final", "countdown"}));
  EXPECT_EQ(by_hyphen(SplitBehavior::isolated), (Pieces{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(by_hyphen(SplitBehavior::merged_with_previous), (Pieces{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(by_hyphen(SplitBehavior::merged_with_next), (Pieces{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(by_hyphen(SplitBehavior::contiguous), (Pieces{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(by_hyphen(SplitBehavior::removed, true), (Pieces{"-", "-", "-"}));
}

TEST(Split, ByRegexAtPlacesWithoutLength) {
  const auto pre = split_pre_tokenizer(Matcher::regex("(?=[0-9])", "test"), {.behavior = SplitBehavior::isolated});
  EXPECT_EQ(split(pre, "a1b22"), (Pieces{"a", "1b", "2", "2"}));
}

TEST(PreTokenizers, ReadTheirOptions) {
  EXPECT_EQ(split(from_json(R"({"type": "Whitespace"})"), "Hello, y'all! 你好。_x1"),
            (Pieces{"Hello", ",", "y", "'", "all", "!", "你好", "。", "_x1"}));
  EXPECT_EQ(split(from_json(R"({"type": "WhitespaceSplit"})"), " Hello,  y'all!\u3000x"),
            (Pieces{"Hello,", "y'all!", "x"}));
  EXPECT_EQ(split(from_json(R"({"type": "BertPreTokenizer"})"), "Hey friend!  How…"),
            (Pieces{"Hey", "friend", "!", "How", "…"}));
  EXPECT_EQ(split(from_json(R"({"type": "Digits"})"), "Call 123 now"), (Pieces{"Call ", "123", " now"}));
  EXPECT_EQ(split(from_json(R"({"type": "Digits", "individual_digits": true})"), "Call 12½"),
            (Pieces{"Call ", "1", "2", "½"}));
  EXPECT_EQ(split(from_json(R"({"type": "Punctuation"})"), "Hi!? $5"), (Pieces{"Hi", "!", "?", " ", "$", "5"}));
  EXPECT_EQ(split(from_json(R"({"type": "Punctuation", "behavior": "Removed"})"), "a-b"), (Pieces{"a", "b"}));
  EXPECT_EQ(split(from_json(R"({"type": "CharDelimiterSplit", "delimiter": "。"})"), "一。二"), (Pieces{"一", "二"}));
  EXPECT_EQ(
      split(from_json(R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits"}]})"),
            "a1 2b"),
      (Pieces{"a", "1", "2", "b"}));
}

TEST(PreTokenizers, MetaspaceMarksWordBeginnings) {
  EXPECT_EQ(split(metaspace_pre_tokenizer({}), "Hey my friend"), (Pieces{"▁Hey", "▁my", "▁friend"}));
  EXPECT_EQ(split(metaspace_pre_tokenizer({}), " Hey  you"), (Pieces{"▁Hey", "▁", "▁you"}));
  EXPECT_EQ(split(metaspace_pre_tokenizer({.prepend = PrependScheme::never}), "Hey you"), (Pieces{"Hey", "▁you"}));
  EXPECT_EQ(split(metaspace_pre_tokenizer({.split = false}), "Hey you"), (Pieces{"▁Hey▁you"}));
  EXPECT_EQ(split(from_json(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})"), "a b"),
            (Pieces{"a", "_b"}));
  const auto first = metaspace_pre_tokenizer({.prepend = PrependScheme::first});
  Pieces later;
  first->split(TextPiece{.text = "a b", .start = 5}, [&](const TextPiece& piece) { later.emplace_back(piece.text); });
  EXPECT_EQ(later, (Pieces{"a", "▁b"}));
  EXPECT_EQ(split(first, "a b"), (Pieces{"▁a", "▁b"}));
}

TEST(PreTokenizers, ByteLevelSpellsBytes) {
  EXPECT_EQ(split(byte_level_pre_tokenizer({}), "Hello 中"), (Pieces{"ĠHello", "Ġä¸Ń"}));
  EXPECT_EQ(split(byte_level_pre_tokenizer({.add_prefix_space = false, .use_regex = false}), "a b"), (Pieces{"aĠb"}));
  EXPECT_EQ(split(byte_level_pre_tokenizer({.add_prefix_space = true, .to_letters = false}), "a b"),
            (Pieces{" a", " b"}));
}

TEST(Regex, IsTranslatedWhereOnigurumaReadsItDifferently) {
  EXPECT_EQ(to_pcre2(R"(\p{N}{1,3}+)"), R"((?:\p{N}{1,3})+)");
  EXPECT_EQ(to_pcre2(R"([a\]]{2}+x)"), R"((?:[a\]]{2})+x)");
  EXPECT_EQ(to_pcre2(R"((?:ab){2}+)"), R"((?:(?:ab){2})+)");
  EXPECT_EQ(to_pcre2(R"([^\s\p{L}]?+x++)"), R"([^\x{09}-\x{0d}\x{85}\p{Z}\p{L}]?+x++)");
  EXPECT_EQ(to_pcre2(R"(\S+\w\h)"), R"([^\x{09}-\x{0d}\x{85}\p{Z}]+[\p{L}\p{M}\p{Nd}\p{Pc}][0-9a-fA-F])");
  EXPECT_EQ(to_pcre2("[]a]"), R"([\]a])");
}

TEST(Regex, GivesUpInsteadOfHanging) {
  const Regex slow("(a+)+$", "tokenizer.json: pre_tokenizer.pattern.Regex");
  expect_error([&] { slow.find_all(std::string(200, 'a') + "b", [](size_t, size_t) {}); },
               {"pre_tokenizer.pattern.Regex", "gave up"});
}

// If PCRE2 checked the rest of the text before each match, this would take minutes.
TEST(Regex, ManyMatchesInALongTextAreQuick) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "ab ";
  size_t found = 0;
  Regex("[a-z]+", "test").find_all(text, [&](size_t, size_t) { ++found; });
  EXPECT_EQ(found, 300'000U);
}

TEST(Regex, StrayBytesMatchNothing) {
  Pieces found;
  const std::string text =
      "ab\xff"
      "cd";
  Regex("[a-z]+", "test").find_all(text, [&](size_t begin, size_t end) {
    found.push_back(text.substr(begin, end - begin));
  });
  EXPECT_EQ(found, (Pieces{"ab", "cd"}));
}

}  // namespace
}  // namespace qkv
