#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <thread>
#include <vector>

#include "base/philox.h"
#include "base/temp_folder.h"
#include "text/tokenizer/tokenizer_support.h"
#include "verify/verify_tokenizer.h"

namespace qkv {
namespace {

using test::golden_tokenizer;
using test::golden_tokenizer_json;
using test::tokenizer_of;
using Ids = std::vector<int32_t>;

template <class Property>
void expect_property(const Property& property) {
  EXPECT_TRUE(rc::check(property));
}

TEST(Tokenizer, RandomBytesComeBackByteForByte) {
  for (const char* name : {"gpt2", "llama3"}) {
    const Tokenizer tokenizer = golden_tokenizer(name);
    expect_property([&](const std::vector<uint8_t>& bytes) {
      const std::string text(bytes.begin(), bytes.end());
      const Ids ids = tokenizer.encode(text, {.add_specials = false, .read_specials = false});
      RC_ASSERT(tokenizer.decode(ids) == text);
      RC_ASSERT(tokenizer.encode_full(text, {.add_specials = false, .read_specials = false}).ids == ids);
      std::string joined;
      for (const int32_t id : ids) joined += tokenizer.bytes_of(id);
      RC_ASSERT(joined == text);
    });
  }
}

TEST(Tokenizer, EveryByteIsAToken) {
  const Tokenizer tokenizer = golden_tokenizer("gpt2");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const Ids ids = tokenizer.encode(text);
    ASSERT_EQ(ids.size(), 1U) << byte;
    EXPECT_EQ(tokenizer.bytes_of(ids[0]), text) << byte;
  }
}

TEST(Tokenizer, OffsetsInBytesCutTheText) {
  const Tokenizer tokenizer = golden_tokenizer("llama3");
  const std::string text = "It was 早上 in the library; 花园!";
  const Encoding encoding = tokenizer.encode_full(text, {.add_specials = false, .unit = OffsetUnit::bytes});
  size_t end = 0;
  for (const Offset& offset : encoding.offsets) {
    // If a token ends inside a character, the next one starts with the same character.
    EXPECT_LE(offset.begin, end);
    EXPECT_GT(offset.end, offset.begin);
    end = std::max(end, offset.end);
    EXPECT_TRUE(offset.begin == text.size() || (text[offset.begin] & 0xC0) != 0x80);
    EXPECT_TRUE(offset.end == text.size() || (text[offset.end] & 0xC0) != 0x80);
  }
  EXPECT_EQ(end, text.size());
}

TEST(Tokenizer, ThreadsShareOne) {
  const Tokenizer tokenizer = golden_tokenizer("qwen2");
  const std::string text = "In the morning Dan bought a cup of tea. 早上小本买了红球。";
  const Ids right = tokenizer.encode(text);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) wrong[t] += tokenizer.encode(text) == right ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Tokenizer, PairsFollowTheTemplate) {
  const Tokenizer tokenizer = golden_tokenizer("wordpiece");
  const Ids first = tokenizer.encode("the tea", {.add_specials = false}),
            second = tokenizer.encode("a ball", {.add_specials = false});
  const Encoding pair = tokenizer.encode_full("the tea", {.second = "a ball"});
  Ids right{2};
  right.insert(right.end(), first.begin(), first.end());
  right.push_back(3);
  right.insert(right.end(), second.begin(), second.end());
  right.push_back(3);
  EXPECT_EQ(pair.ids, right);
  EXPECT_EQ(tokenizer.encode("the tea", {.second = "a ball"}), right);
  std::vector<int32_t> types(first.size() + 2, 0);
  types.resize(right.size(), 1);
  EXPECT_EQ(pair.type_ids, types);
  EXPECT_EQ(pair.tokens.front(), "[CLS]");
  EXPECT_EQ(pair.offsets.back(), (Offset{0, 0}));
}

TEST(Tokenizer, BertAndRobertaProcessors) {
  Json json = golden_tokenizer_json("wordpiece");
  json["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}, {"cls", {"[CLS]", 2}}};
  const Tokenizer original = golden_tokenizer("wordpiece"), bert = tokenizer_of(json);
  EXPECT_EQ(bert.encode("the tea"), original.encode("the tea"));
  EXPECT_EQ(bert.encode("the tea", {.second = "a"}), original.encode("the tea", {.second = "a"}));
  json["post_processor"]["type"] = "RobertaProcessing";
  const Ids a = bert.encode("the", {.add_specials = false}), b = bert.encode("tea", {.add_specials = false});
  Ids right{2};
  right.insert(right.end(), a.begin(), a.end());
  right.insert(right.end(), {3, 3});
  right.insert(right.end(), b.begin(), b.end());
  right.push_back(3);
  EXPECT_EQ(tokenizer_of(json).encode("the", {.second = "tea"}), right);
}

TEST(Tokenizer, TruncationAndPaddingOnEitherSide) {
  constexpr const char* kText = "the tea of the library in the morning and in the evening";
  Json json = golden_tokenizer_json("wordpiece");
  const Ids plain = tokenizer_of(json).encode(kText, {.add_specials = false});
  ASSERT_GT(plain.size(), 6U);
  json["truncation"] = {{"max_length", 6}, {"strategy", "LongestFirst"}, {"direction", "Right"}, {"stride", 0}};
  EXPECT_EQ(tokenizer_of(json).encode(kText), (Ids{2, plain[0], plain[1], plain[2], plain[3], 3}));
  json["truncation"]["direction"] = "Left";
  const size_t n = plain.size();
  EXPECT_EQ(tokenizer_of(json).encode(kText), (Ids{2, plain[n - 4], plain[n - 3], plain[n - 2], plain[n - 1], 3}));
  json["truncation"] = nullptr;
  json["padding"] = {{"strategy", "BatchLongest"}, {"direction", "Left"}, {"pad_to_multiple_of", 8}, {"pad_id", 0},
                     {"pad_type_id", 0},           {"pad_token", "[PAD]"}};
  const Encoding padded = tokenizer_of(json).encode_full("the", {.add_specials = false});
  ASSERT_EQ(padded.ids.size(), 8U);
  EXPECT_EQ(padded.ids[0], 0);
  EXPECT_EQ(padded.attention.front(), 0);
  EXPECT_EQ(padded.attention.back(), 1);
  EXPECT_EQ(padded.tokens[0], "[PAD]");
}

TEST(Tokenizer, PairsAreTruncatedFromTheLongerOne) {
  Json json = test::word_level_json({"a", "b"});
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  json["truncation"] = {{"max_length", 5}, {"strategy", "LongestFirst"}, {"direction", "Right"}, {"stride", 0}};
  const Tokenizer tokenizer = tokenizer_of(json);
  EXPECT_EQ(tokenizer.encode("a a a a a a", {.second = "b b"}), (Ids{1, 1, 1, 2, 2}));
  EXPECT_EQ(tokenizer.encode("a a", {.second = "b b b b b"}), (Ids{1, 1, 2, 2, 2}));
  EXPECT_EQ(tokenizer.encode("a a a a", {.second = "b b b b b"}), (Ids{1, 1, 2, 2, 2}));
}

// The flags as Hugging Face documents them.
TEST(Tokenizer, AddedTokensObeyTheirFlags) {
  Json json = test::word_level_json({"a", "b"});
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  const auto tokens_of = [&](Json flags, const char* text) {
    Json token{{"id", 3}, {"content", "[X]"}, {"normalized", false}};
    token.update(flags);
    json["added_tokens"] = {token};
    return tokenizer_of(json).encode_full(text).tokens;
  };
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(tokens_of(Json::object(), "a [X] b"), (Tokens{"a", "[X]", "b"}));
  EXPECT_EQ(tokens_of(Json::object(), "a[X]b"), (Tokens{"a", "[X]", "b"}));
  EXPECT_EQ(tokens_of({{"lstrip", true}}, "a  [X] b"), (Tokens{"a", "  [X]", "b"}));
  EXPECT_EQ(tokens_of({{"rstrip", true}}, "a [X]  b"), (Tokens{"a", "[X]  ", "b"}));
  EXPECT_EQ(tokens_of({{"single_word", true}}, "a[X] b"), (Tokens{"<unk>", "b"}));
  EXPECT_EQ(tokens_of({{"single_word", true}}, "a [X]. b"), (Tokens{"a", "[X]", "<unk>", "b"}));
  EXPECT_EQ(tokens_of({{"special", true}}, "[X]"), (Tokens{"[X]"}));
  EXPECT_EQ(tokenizer_of(json).encode("[X]", {.read_specials = false}), Ids{0});
}

TEST(Tokenizer, NormalizedAddedTokensAreFoundInNormalizedText) {
  Json json = test::word_level_json({"a"});
  json["normalizer"] = {{"type", "Lowercase"}};
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  json["added_tokens"] = {{{"id", 2}, {"content", "Yes"}, {"normalized", true}},
                          {{"id", 3}, {"content", "No"}, {"normalized", false}}};
  const Tokenizer tokenizer = tokenizer_of(json);
  EXPECT_EQ(tokenizer.encode("a YES yes No NO"), (Ids{1, 2, 2, 3, 0}));
}

TEST(Tokenizer, TheLongestAddedTokenIsFound) {
  Json json = test::word_level_json({"a"});
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  json["added_tokens"] = {{{"id", 2}, {"content", "<x"}, {"normalized", false}},
                          {{"id", 3}, {"content", "<x>y"}, {"normalized", false}}};
  EXPECT_EQ(tokenizer_of(json).encode("<x>y a <x> <x>"), (Ids{3, 1, 2, 0, 2, 0}));
}

TEST(Tokenizer, SpecialTokensInTextAreThemselvesOrText) {
  const Tokenizer tokenizer = golden_tokenizer("gpt2");
  EXPECT_EQ(tokenizer.encode("<|endoftext|>"), Ids{0});
  EXPECT_GT(tokenizer.encode("<|endoftext|>", {.read_specials = false}).size(), 1U);
  EXPECT_TRUE(tokenizer.is_special(0));
  EXPECT_EQ(tokenizer.decode(Ids{0}, {.skip_specials = true}), "");
  EXPECT_EQ(tokenizer.id_of("<|endoftext|>"), 0);
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
}

TEST(Tokenizer, BytesOfATokenAreWhatItAdds) {
  const Tokenizer llama = golden_tokenizer("llama2");
  EXPECT_EQ(llama.bytes_of(*llama.id_of("<0xE4>")), "\xe4");
  EXPECT_EQ(llama.bytes_of(*llama.id_of("▁t")), " t");
  const Tokenizer bert = golden_tokenizer("wordpiece");
  EXPECT_EQ(bert.bytes_of(*bert.id_of("library")), " library");
  EXPECT_EQ(bert.bytes_of(*bert.id_of("##ning")), "ning");
}

TEST(Tokenizer, RolesComeFromTheFilesBesideIt) {
  const TempFolder folder;
  folder.write("tokenizer.json", test::golden_tokenizer_text("wordpiece"));
  folder.write("tokenizer_config.json",
               R"({"cls_token": "[CLS]", "pad_token": {"content": "[PAD]"}, "bos_token": null})");
  folder.write("special_tokens_map.json", R"({"sep_token": "[SEP]", "cls_token": "[UNK]"})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.named().cls, 2);
  EXPECT_EQ(tokenizer.named().pad, 0);
  EXPECT_EQ(tokenizer.named().sep, 3);
  EXPECT_EQ(tokenizer.named().bos, std::nullopt);
}

// The older file formats of a tokenizer must give the same ids as its tokenizer.json.
TEST(Tokenizer, OlderPairOfVocabularyAndMerges) {
  const Json json = golden_tokenizer_json("gpt2");
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : json["model"]["merges"]) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  const TempFolder folder;
  folder.write("merges.txt", merges);
  const auto file = folder.write("vocab.json", json["model"]["vocab"].dump());
  const std::string name = test::golden("tokenizers/gpt2/vectors.json").string();
  const std::string vectors = read_file(name, 1 << 28);
  for (const auto& path : {folder.path(), file}) {
    const TokenizerVerdict verdict = verify_tokenizer(Tokenizer::load(path), vectors, name);
    EXPECT_EQ(verdict.equal, 180U);
  }
}

TEST(Tokenizer, OlderVocabularyOfWords) {
  const Json json = golden_tokenizer_json("wordpiece");
  std::vector<std::string> words(json["model"]["vocab"].size());
  for (const auto& [word, id] : json["model"]["vocab"].items()) words[id.get<size_t>()] = word;
  std::string text;
  for (const std::string& word : words) text += word + "\n";
  const TempFolder folder;
  folder.write("vocab.txt", text);
  const std::string name = test::golden("tokenizers/wordpiece/vectors.json").string();
  const std::string vectors = read_file(name, 1 << 28);
  const TokenizerVerdict verdict = verify_tokenizer(Tokenizer::load(folder.path()), vectors, name);
  EXPECT_EQ(verdict.equal, 180U);
  folder.write("tokenizer_config.json", R"({"do_lower_case": false})");
  const Tokenizer cased = Tokenizer::load(folder.path());
  EXPECT_NE(cased.encode("The"), cased.encode("the"));
}

// Input of a model is never silently truncated.
TEST(Tokenizer, WholeTextsAreNeitherCutNorPadded) {
  Json json = golden_tokenizer_json("gpt2");
  json["truncation"] = {{"direction", "Right"}, {"max_length", 3}, {"strategy", "LongestFirst"}, {"stride", 0}};
  json["padding"] = {
      {"strategy", {{"Fixed", 8}}}, {"direction", "Right"},        {"pad_to_multiple_of", nullptr}, {"pad_id", 0},
      {"pad_type_id", 0},           {"pad_token", "<|endoftext|>"}};
  const Tokenizer cuts = Tokenizer::from_json(json.dump(), "test");
  const std::string text = "one two three four five six seven eight nine ten";
  const Ids right = golden_tokenizer("gpt2").encode(text);
  ASSERT_GT(right.size(), 8U);
  EXPECT_EQ(cuts.encode(text).size(), 8U);
  EXPECT_EQ(cuts.without_truncation().encode(text), right);
  EXPECT_EQ(cuts.without_truncation().encode_full(text).ids, right);
  EXPECT_EQ(cuts.without_truncation().encode("a"), golden_tokenizer("gpt2").encode("a"));
}

// The spaces between two tokens belong to one of them.
TEST(Tokenizer, SpacesThatATokenTookAreNotTakenAgain) {
  Json json = test::word_level_json({"a", "b"});
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  json["added_tokens"] = {{{"id", 3}, {"content", "[X]"}, {"normalized", false}, {"rstrip", true}},
                          {{"id", 4}, {"content", "[Y]"}, {"normalized", false}, {"lstrip", true}}};
  const Encoding found = tokenizer_of(json).encode_full("a [X]  [Y] b");
  EXPECT_EQ(found.tokens, (std::vector<std::string>{"a", "[X]  ", "[Y]", "b"}));
  EXPECT_EQ(found.offsets[1].end, found.offsets[2].begin);
  EXPECT_EQ(tokenizer_of(json).encode_full("a  [Y]  b").tokens, (std::vector<std::string>{"a", "  [Y]", "b"}));
}

// What is put before a text is padding in every respect.
TEST(Tokenizer, PaddingOnTheLeftHasItsTypeOnTheLeft) {
  Json json = test::word_level_json({"a", "b"});
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  for (const char* side : {"Left", "Right"}) {
    json["padding"] = {
        {"strategy", {{"Fixed", 5}}}, {"direction", side},   {"pad_to_multiple_of", nullptr}, {"pad_id", 0},
        {"pad_type_id", 7},           {"pad_token", "<unk>"}};
    const Encoding padded = tokenizer_of(json).encode_full("a", {.second = "b b"});
    const bool left = side[0] == 'L';
    EXPECT_EQ(padded.type_ids, left ? (Ids{7, 7, 0, 1, 1}) : (Ids{0, 1, 1, 7, 7})) << side;
    EXPECT_EQ(padded.ids, left ? (Ids{0, 0, 1, 2, 2}) : (Ids{1, 2, 2, 0, 0})) << side;
    EXPECT_EQ(padded.attention, left ? (std::vector<uint8_t>{0, 0, 1, 1, 1}) : (std::vector<uint8_t>{1, 1, 1, 0, 0}));
  }
}

}  // namespace
}  // namespace qkv
