#include "text/tokenizer_training.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/temp_folder.h"
#include "support/pass.h"

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

// All that does not depend on the text.
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
  const Json theirs = parse_json(read_file(folder / "unigram/tokenizer.json", 10'000'000), "theirs");
  const Json ours = json_of(train_with(2, {.kind = TokenizerKind::unigram,
                                           .vocab = 124,
                                           .specials = {"<pad>", "</s>", "<unk>"},
                                           .files = {folder / "training_text.txt"}}));
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
