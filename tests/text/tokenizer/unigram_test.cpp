#include "text/tokenizer/models/unigram.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/expect_error.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;
using Ends = std::vector<uint32_t>;

struct Encoded {
  Ids ids;
  Ends ends;
};

Encoded encode(const Unigram& model, std::string_view text) {
  Encoded out;
  model.encode(text, out.ids, out.ends);
  return out;
}

// Reference implementation: the whole Viterbi table at once.
Encoded encode_plainly(const Unigram& model, std::string_view text) {
  struct Node {
    double score = 0;
    size_t start = SIZE_MAX;
    int32_t id = -1;
  };
  double lowest = 0;
  for (int32_t id = 0; id < model.size(); ++id) lowest = std::min(lowest, model.score(id));
  std::vector<Node> nodes(text.size() + 1);
  for (size_t at = 0; at < text.size(); ++at) {
    bool covered = false;
    const auto offer = [&](size_t end, double score, int32_t id) {
      Node& node = nodes[end];
      if (node.start == SIZE_MAX || nodes[at].score + score > node.score) node = {nodes[at].score + score, at, id};
      covered = covered || end == at + 1;
    };
    for (size_t end = at + 1; end <= text.size() && end <= at + 8; ++end) {
      const int32_t id = model.find(text.substr(at, end - at));
      if (id >= 0) offer(end, model.score(id), id);
    }
    if (!covered) offer(at + 1, lowest - 10, model.unk_id());
  }
  Encoded out;
  for (size_t end = text.size(); end > 0; end = nodes[end].start) {
    const bool joins = nodes[end].id == model.unk_id() && !out.ids.empty() && out.ids.back() == model.unk_id();
    if (joins) continue;
    out.ids.push_back(nodes[end].id);
    out.ends.push_back(static_cast<uint32_t>(end));
  }
  std::reverse(out.ids.begin(), out.ids.end());
  std::reverse(out.ends.begin(), out.ends.end());
  return out;
}

const Unigram::Pieces kLetters = {{"<unk>", 0}, {"a", 0},  {"b", 0},   {"c", 0},    {"d", 0},
                                  {"cd", 1},    {"ab", 2}, {"abc", 5}, {"abcd", 10}};

TEST(Unigram, TakesTheHighestSum) {
  const Unigram model(kLetters, {.unk_id = 0});
  EXPECT_EQ(encode(model, "abcdacdxx").ids, (Ids{8, 1, 5, 0}));  // the example of Hugging Face's own documentation
  EXPECT_EQ(encode(model, "abcdacdxx").ends, (Ends{4, 5, 7, 9}));
  EXPECT_EQ(encode(model, "").ids, Ids{});
  EXPECT_EQ(encode(model, "福a").ends, (Ends{3, 4}));
}

TEST(Unigram, TheFirstOfEqualWaysStays) {
  const Unigram model({{"<unk>", 0}, {"a", -1}, {"aa", -2}}, {.unk_id = 0});
  EXPECT_EQ(encode(model, "aa").ids, (Ids{2}));
  EXPECT_EQ(encode(model, "aaa").ids, (Ids{1, 2}));
}

Unigram::Pieces with_bytes(std::string_view without = "") {
  Unigram::Pieces pieces{{"<unk>", 0}, {"a", -1}};
  for (int byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    if (without.find(static_cast<char>(byte)) != without.npos) continue;
    pieces.add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0);
  }
  return pieces;
}

TEST(Unigram, UnknownTextFallsBackToBytes) {
  const Unigram model(with_bytes(), {.unk_id = 0, .byte_fallback = true});
  const Encoded got = encode(model, "a福!a");
  EXPECT_EQ(got.ids, (Ids{1, 2 + 0xe7, 2 + 0xa6, 2 + 0x8f, 2 + '!', 1}));
  EXPECT_EQ(got.ends, (Ends{1, 5, 5, 5, 5, 6}));
  EXPECT_EQ(encode(Unigram(with_bytes("!\xff"), {.unk_id = 0, .byte_fallback = true}), "a!福a").ids, (Ids{1, 0, 1}));
}

TEST(Unigram, PartsOfSentencePiece) {
  using Matching = Unigram::Matching;
  const Unigram model({{"<unk>", 0}, {"<s>", 0}, {"a", -1}, {"b", -1}, {"ab", -0.5}, {"ba", -9}, {"b!", -50}},
                      {.unk_id = 0,
                       .rules = Unigram::Rules::sentencepiece,
                       .matching = {Matching::never, Matching::never, Matching::normal, Matching::normal,
                                    Matching::never, Matching::always, Matching::normal}});
  EXPECT_EQ(encode(model, "ab").ids, (Ids{2, 3}));    // ab is unused
  EXPECT_EQ(encode(model, "aba").ids, (Ids{2, 5}));   // ba costs 0.1 only
  EXPECT_EQ(encode(model, "<s>a").ids, (Ids{0, 2}));  // control pieces do not match text
}

// An unknown character scores 10 below the lowest piece, just too little to win here.
TEST(Unigram, UnknownCharactersHaveTheirPrice) {
  const Unigram::Pieces pieces{{"<unk>", 0}, {"ab", -1}, {"c", -1}, {"a", -12}, {"b!c", -11.5}};
  using Matching = Unigram::Matching;
  const std::vector<Matching> matching{Matching::never, Matching::normal, Matching::normal, Matching::normal,
                                       Matching::normal};
  for (const auto rules : {Unigram::Rules::hugging_face, Unigram::Rules::sentencepiece}) {
    const Unigram model(pieces, {.unk_id = 0, .rules = rules, .matching = matching});
    EXPECT_EQ(encode(model, "ab!c").ids, (Ids{3, 4}));
  }
}

TEST(Unigram, LongTextsGiveWhatTheWholeTableGives) {
  const Unigram model(
      {{"<unk>", 0}, {"a", -2.1}, {"aa", -4.1}, {"aaa", -5.9}, {"ab", -3}, {"ba", -3.01}, {"aaaaaaa", -13.1}},
      {.unk_id = 0});
  for (const std::string unit : {"a", "ab", "aab", "x", "aaaaaaabx"}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    const Encoded got = encode(model, text), want = encode_plainly(model, text);
    EXPECT_EQ(got.ids, want.ids) << unit;
    EXPECT_EQ(got.ends, want.ends) << unit;
  }
}

// The two ways to cut "ababab.." share no boundary, and only the end of the text decides between them: nothing may be
// emitted before, wherever the window of the search ends.
TEST(Unigram, LongTextsWithTwoWaysAreDecidedAtTheEnd) {
  const Unigram::Pieces pieces{{"<unk>", -20}, {"a", -10}, {"b", -10}, {"ab", -2}, {"ba", -1.99}, {"!", -1}};
  for (const auto rules : {Unigram::Rules::hugging_face, Unigram::Rules::sentencepiece}) {
    const Unigram model(pieces, {.unk_id = 0, .rules = rules});
    for (const std::string before : {"", "!"}) {
      for (const std::string after : {"", "a"}) {
        std::string text = before;
        while (text.size() < 70'000) text += "ab";
        text += after;
        const Encoded got = encode(model, text), want = encode_plainly(model, text);
        EXPECT_TRUE(got.ids == want.ids && got.ends == want.ends)
            << "'" << before << "abab..ab" << after << "': " << got.ids.size() << " pieces, not those "
            << want.ids.size() << " of the whole table";
      }
    }
  }
}

TEST(Unigram, RandomModelsGiveWhatTheWholeTableGives) {
  EXPECT_TRUE(rc::check([] {
    const auto word = rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc"))));
    const auto words = *rc::gen::resize(6, rc::gen::container<std::vector<std::string>>(word));
    Unigram::Pieces pieces{{"?", -1}};
    for (const std::string& text : words) pieces.add(text, -double(*rc::gen::inRange(0, 40)) / 4);
    const Unigram model(pieces, {.unk_id = 0});
    const std::string text =
        *rc::gen::resize(60, rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcd"))));
    const Encoded got = encode(model, text), want = encode_plainly(model, text);
    RC_ASSERT(got.ids == want.ids);
    RC_ASSERT(got.ends == want.ends);
  }));
}

TEST(Unigram, SaysWhatIsWrong) {
  expect_error([] { Unigram({{"a", 0}}, {.unk_id = 1}); }, {"unk_id is 1 but there are 1"});
  expect_error([] { Unigram({{"a", 0}}, {.unk_id = -2}); }, {"unk_id is -2"});
  expect_error([] { Unigram({{"a", std::nan("")}}, {}); }, {"score of unigram piece 0 'a' is nan"});
  const Unigram model({{"a", 0}}, {});
  expect_error([&] { encode(model, "ab"); }, {"no piece covers 'b'"});
}

TEST(Unigram, ByteTokens) {
  EXPECT_EQ(byte_of_token("<0x00>"), 0);
  EXPECT_EQ(byte_of_token("<0xFF>"), 255);
  EXPECT_EQ(byte_of_token("<0x3C>"), 0x3c);
  for (const char* text : {"", "<0x0>", "<0x000>", "<0x-1>", "<0xfg>", "<0xff>", "<0x 1>", "(0x00)", "<0x+1>"}) {
    EXPECT_EQ(byte_of_token(text), -1) << text;
  }
}

}  // namespace
}  // namespace qkv
