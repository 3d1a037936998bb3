#include "text/tokenizer/training/tokenizer_training.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/temp_folder.h"
#include "support/pass.h"
#include "text/tokenizer/tokenizer.h"

namespace qkv {
namespace {

std::string some_text() {
  std::string text;
  for (uint64_t i = 0; i < 30'000; ++i) {
    static const char* const kWords[] = {"the", " cat", " sat", "\n",      ", ",  "12",
                                         "猫",  "坐在", "。",   "\u00e9t", "\xFF"};
    text += kWords[random_u32({6, 1}, 0, i) % std::size(kWords)];
  }
  return text;
}

TrainedTokenizer train_with(int threads, const TokenizerTraining& training) {
  ThreadPool pool(threads);
  return train_tokenizer(training, pool);
}

Json json_of(const TrainedTokenizer& trained) {
  return parse_json(trained.json, "tokenizer.json");
}

// Everything that does not depend on the training text.
Json frame(Json file) {
  file["model"].erase("vocab");
  file["model"].erase("merges");
  return file;
}

TEST(TokenizerTraining, BpeFilesAreShapedAsHuggingFaceShapesThem) {
  QKV_NEED_SHARED(folder, "tokenizers/small");
  const auto theirs = [&](const char* name) {
    return parse_json(read_file(folder / name / "tokenizer.json", 10'000'000), name);
  };
  TokenizerTraining training{.vocab = 400, .specials = {"<|endoftext|>"}, .files = {folder / "training_text.txt"}};
  const Json gpt2 = json_of(train_with(2, training));
  EXPECT_EQ(frame(gpt2), frame(theirs("gpt2")));
  EXPECT_EQ(gpt2["model"]["vocab"].size(), 400U);
  EXPECT_EQ(gpt2["model"]["merges"].size(), 400U - 257);
  const Json their_gpt2 = theirs("gpt2");
  for (const auto& [token, id] : their_gpt2["model"]["vocab"].items()) {
    if (id >= 257) continue;  // the special token and the bytes
    EXPECT_EQ(gpt2["model"]["vocab"].value(token, -1), id) << token;
  }

  training.pattern = Pattern::llama3;
  EXPECT_EQ(json_of(train_with(2, training))["pre_tokenizer"], theirs("llama3")["pre_tokenizer"]);
  training.pattern = Pattern::deepseek_v3;
  EXPECT_EQ(json_of(train_with(2, training))["pre_tokenizer"]["pretokenizers"].size(), 4U);
}

TEST(TokenizerTraining, UnigramFilesAreShapedAsHuggingFaceShapesThem) {
  QKV_NEED_SHARED(folder, "tokenizers/small");
  Json theirs = parse_json(read_file(folder / "unigram/tokenizer.json", 10'000'000), "theirs");
  const Json ours = json_of(train_with(2, {.kind = TokenizerKind::unigram,
                                           .vocab = 124,
                                           .specials = {"<pad>", "</s>", "<unk>"},
                                           .files = {folder / "training_text.txt"}}));
  for (const char* key : {"pre_tokenizer", "decoder"}) theirs[key]["prepend_scheme"] = "first";  // they say "always"
  for (const char* key : {"pre_tokenizer", "decoder", "added_tokens"}) EXPECT_EQ(ours[key], theirs[key]) << key;
  EXPECT_EQ(frame(ours)["model"], frame(theirs)["model"]);
  EXPECT_EQ(ours["model"]["vocab"][2], theirs["model"]["vocab"][2]);
  EXPECT_EQ(ours["model"]["vocab"].size(), 124U);
}

TEST(TokenizerTraining, SameBytesForAnyNumberOfThreads) {
  const TempFolder folder;
  const auto file = folder.write("文.txt", some_text());
  for (const TokenizerKind kind : {TokenizerKind::bpe, TokenizerKind::unigram}) {
    const TokenizerTraining training{.kind = kind, .vocab = 300, .specials = {"<s>"}, .files = {file, file}};
    const std::string one = train_with(1, training).json;
    EXPECT_EQ(train_with(2, training).json, one);
    EXPECT_EQ(train_with(3, training).json, one);
  }
}

TEST(TokenizerTraining, ATrainedByteLevelTokenizerKeepsEveryByte) {
  const TempFolder folder;
  const std::string text = some_text();
  const auto file = folder.write("text.txt", text);
  for (const std::string_view name : pattern_names()) {
    const TrainedTokenizer trained =
        train_with(2, {.vocab = 400, .pattern = pattern_by_name(name), .specials = {"<|endoftext|>"}, .files = {file}});
    const Tokenizer tokenizer = Tokenizer::from_json(trained.json, "trained");
    EXPECT_EQ(tokenizer.vocab_size(), static_cast<int32_t>(trained.vocab));
    const std::string more = text.substr(0, 3000) + "never seen: \xC3\x28 \xF0\x9F\x91\x8D 'S<|endoftext|>\r\n\n";
    const std::vector<int32_t> ids = tokenizer.encode(more);
    EXPECT_EQ(tokenizer.decode(ids), more) << name;
    EXPECT_LT(ids.size(), more.size() / 2) << name;
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 1) << name;
  }
}

// Each word of the corpus must be encoded as at the end of training: the merges are complete and in order.
TEST(TokenizerTraining, FrequentWordsAreOneToken) {
  const TempFolder folder;
  const auto file = folder.write("text.txt", some_text());
  const TrainedTokenizer trained = train_with(2, {.vocab = 400, .files = {file}});
  const Tokenizer tokenizer = Tokenizer::from_json(trained.json, "trained");
  for (const char* word : {"the", " cat", " sat", "坐在", "。"}) EXPECT_EQ(tokenizer.encode(word).size(), 1U) << word;
}

TEST(TokenizerTraining, ALongestTokenHoldsForBothKinds) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 50; ++i) text += "他在自己的花园里种了一棵树，她在自己的花园里种了一棵树。 the gardeners\n";
  const auto file = folder.write("text.txt", text);
  const auto tokens = [&](TokenizerKind kind, size_t longest) {
    const size_t vocab = kind == TokenizerKind::bpe ? 320 : 60;
    const TrainedTokenizer trained =
        train_with(2, {.kind = kind, .vocab = vocab, .max_token_length = longest, .files = {file}});
    return Tokenizer::from_json(trained.json, "trained").encode("他在自己的花园里种了一棵树").size();
  };
  EXPECT_LT(tokens(TokenizerKind::bpe, 0), 6U);
  EXPECT_GE(tokens(TokenizerKind::bpe, 6), 6U);  // thirteen characters, two in a token
  EXPECT_LT(tokens(TokenizerKind::unigram, 0), 6U);
  EXPECT_GE(tokens(TokenizerKind::unigram, 2), 6U);
}

TEST(TokenizerTraining, NumbersAreSplitIntoDigitsByThePatternOfStarcoder) {
  const TempFolder folder;
  const auto file = folder.write("text.txt", some_text());
  const TrainedTokenizer trained = train_with(2, {.vocab = 400, .pattern = Pattern::starcoder, .files = {file}});
  const Tokenizer tokenizer = Tokenizer::from_json(trained.json, "trained");
  EXPECT_EQ(tokenizer.encode("1212").size(), 4U);
  EXPECT_EQ(tokenizer.encode(" cat").size(), 1U);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(" cat 1212。")), " cat 1212。");
}

TEST(TokenizerTraining, ATrainedUnigramTokenizerKeepsTextWithKnownCharacters) {
  QKV_NEED_SHARED(shakespeare, "text/en/tinyshakespeare.txt");
  const std::string text = read_file(shakespeare, 10'000'000).substr(0, 100'000) + "寻寻觅觅 冷冷清清\n";
  const TempFolder folder;
  const auto file = folder.write("text.txt", text);
  const TrainedTokenizer trained =
      train_with(2, {.kind = TokenizerKind::unigram, .vocab = 800, .specials = {"<s>"}, .files = {file}});
  const Tokenizer tokenizer = Tokenizer::from_json(trained.json, "trained");
  EXPECT_EQ(tokenizer.vocab_size(), 800);
  for (const std::string& known : {text.substr(0, 5000), std::string("the  the   king\n\n  觅 king <s>寻")}) {
    const std::vector<int32_t> ids = tokenizer.encode(known);
    EXPECT_EQ(tokenizer.decode(ids), known);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 0);  // <unk>
  }
  EXPECT_LT(tokenizer.encode(text).size(), text.size() / 2);
}

TEST(TokenizerTraining, AUnigramTokenizerKnowsTheBeginningOfTextsWithoutSpaces) {
  const TempFolder folder;
  const auto file = folder.write("text.txt", "猫船星茶。\n星茶门盐。\n门盐铃路猫船。\n");
  const TrainedTokenizer trained = train_with(1, {.kind = TokenizerKind::unigram, .vocab = 20, .files = {file}});
  const Tokenizer tokenizer = Tokenizer::from_json(trained.json, "trained");
  const std::vector<int32_t> ids = tokenizer.encode("星茶门。");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 0);  // <unk>
  EXPECT_EQ(tokenizer.decode(ids), "星茶门。");
}

TEST(TokenizerTraining, SaysWhatWasTrainedOn) {
  const TempFolder folder;
  const auto file = folder.write("a.txt", "aa\xFF <s>aa");
  const TrainedTokenizer trained =
      train_with(1, {.kind = TokenizerKind::unigram, .vocab = 100, .specials = {"<s>"}, .files = {file}});
  EXPECT_EQ(trained.bytes, 9U);
  EXPECT_EQ(trained.distinct_words, 3U);
  EXPECT_EQ(trained.stray_bytes, 1U);
  EXPECT_EQ(trained.vocab, json_of(trained)["model"]["vocab"].size());
  EXPECT_EQ(json_of(trained)["model"]["vocab"][0][0], "<unk>");
}

TEST(TokenizerTraining, WhatCannotBeTrainedIsSaid) {
  expect_error([] { train_with(1, {.kind = TokenizerKind::characters, .max_token_length = 3, .files = {"x"}}); },
               {"max_token_length is 3", "characters"});
  const TempFolder folder;
  const auto text = folder.write("text.txt", "some text"), empty = folder.write("empty.txt", "");
  const auto fails = [](TokenizerTraining training, std::initializer_list<std::string_view> parts) {
    expect_error([&] { train_with(1, training); }, parts);
  };
  fails({.vocab = 300}, {"no files"});
  fails({.vocab = 300, .files = {empty}}, {"no text", "0 bytes"});
  fails({.vocab = 200, .files = {text}}, {"200", "256 bytes"});
  fails({.vocab = 300, .specials = {"<s>", "<s>"}, .files = {text}}, {"'<s>'", "twice"});
  fails({.vocab = 300, .specials = {"a"}, .files = {text}}, {"'a'", "twice"});
  fails({.vocab = 300, .specials = {"\xFF"}, .files = {text}}, {"not text"});
  fails({.vocab = 300, .files = {folder.path() / "none.txt"}}, {"none.txt"});
  fails({.kind = TokenizerKind::unigram, .vocab = 300, .pattern = Pattern::llama3, .files = {text}}, {"no pattern"});
  fails({.kind = TokenizerKind::unigram, .vocab = 1, .files = {text}}, {"1 tokens"});
  fails({.kind = TokenizerKind::unigram, .vocab = 4, .files = {text}}, {"3 pieces", "7 characters"});
}

}  // namespace
}  // namespace qkv
