#include "text/tokenizer/training/word_counts.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/temp_folder.h"
#include "support/pass.h"

namespace qkv {
namespace {

using Counts = std::unordered_map<std::string, uint64_t>;

Counts counts_of(const WordCounts& counts) {
  Counts map;
  for (const Word& word : counts.words()) EXPECT_TRUE(map.emplace(word.text, word.count).second) << word.text;
  EXPECT_EQ(map.size(), counts.size());
  return map;
}

// Reference implementation: split at the specials, then by the pattern.
Counts slow_counts(Pattern pattern, const std::vector<std::string>& specials, std::string_view text) {
  Counts map;
  size_t begin = 0, at = 0;
  const auto count_until = [&](size_t end) {
    const std::string_view part = text.substr(begin, end - begin);
    split_pattern(pattern, part, [&](size_t a, size_t b) { ++map[std::string(part.substr(a, b - a))]; });
  };
  while (at < text.size()) {
    size_t longest = 0;
    for (const std::string& special : specials) {
      if (text.substr(at).starts_with(special)) longest = std::max(longest, special.size());
    }
    if (longest != 0) {
      count_until(at);
      begin = at + longest;
    }
    at += std::max<size_t>(longest, 1);
  }
  count_until(text.size());
  return map;
}

std::string real_text() {
  const auto folder = test::shared("text");
  if (!folder) return {};
  const std::string shakespeare = read_file(*folder / "en/tinyshakespeare.txt", 100'000'000);
  return shakespeare + read_file(*folder / "zh/红楼梦.txt", 100'000'000) + shakespeare;
}

TEST(WordCounts, EqualTheDefinitionOnRealText) {
  const std::string text = real_text();
  if (text.empty()) GTEST_SKIP() << "../shared/text is not on this machine";
  // Long enough for two batches; specials in both languages, one a prefix of another, one with a space.
  const std::vector<std::string> specials = {"宝玉", "宝玉道", "the king", "ROMEO:"};
  for (const Pattern pattern : {Pattern::gpt2, Pattern::llama3}) {
    ThreadPool pool(2);
    WordCounter counter({.pattern = pattern, .specials = specials}, pool);
    counter.add_text(text);
    EXPECT_EQ(counts_of(counter.take()), slow_counts(pattern, specials, text));
  }
}

TEST(WordCounts, AreTheSameHoweverTheTextArrives) {
  std::string text;
  for (uint64_t i = 0; i < 200'000; ++i) text += "ab \n<|x|>\xE4\xB8\xAD"[random_u32({1, 1}, 0, i) % 12];
  const std::vector<std::string> specials = {"<|x|>", "b ", "<"};
  const Counts right = slow_counts(Pattern::gpt2, specials, text);
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    WordCounter counter({.pattern = Pattern::gpt2, .specials = specials}, pool);
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = 1 + random_u32({2, 1}, 0, at) % 5000;
      counter.add_text(std::string_view(text).substr(at, bytes));
      at += bytes;
    }
    EXPECT_EQ(counts_of(counter.take()), right) << threads;
  }
}

// With one of these prefix lengths, the batch ends where only the shorter special is complete so far.
TEST(WordCounts, ASpecialIsWholeWhereverTheTextIsCut) {
  ThreadPool pool(2);
  std::string specials;
  while (specials.size() < 4'500'000) specials += "<|x|>y";
  for (size_t shift = 1; shift <= 6; ++shift) {
    WordCounter counter({.specials = {"<|x|>", "<|x|>y"}}, pool);
    const std::string prefix(shift, 'p');
    counter.add_text(prefix + specials);
    EXPECT_EQ(counts_of(counter.take()), (Counts{{prefix, 1}}));
  }
}

TEST(WordCounts, OrderDoesNotDependOnThreads) {
  std::string text;
  for (uint64_t i = 0; i < 1'500'000; ++i) text += "abcde \n"[random_u32({3, 1}, 0, i) % 7];
  std::vector<std::pair<std::string, uint64_t>> first;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    WordCounter counter({}, pool);
    counter.add_text(text);
    const WordCounts counts = counter.take();
    std::vector<std::pair<std::string, uint64_t>> words;
    for (const Word& word : counts.words()) words.emplace_back(word.text, word.count);
    if (threads == 1) first = words;
    EXPECT_EQ(words, first) << threads;
  }
}

TEST(WordCounts, ALineWithoutSpacesIsCutBetweenCharacters) {
  ThreadPool pool(2);
  WordCounter counter({}, pool);
  std::string piece;
  while (piece.size() < 1'000'000) piece += "中";
  for (int i = 0; i < 50; ++i) counter.add_text(piece);
  const Counts counts = counts_of(counter.take());
  uint64_t bytes = 0;
  for (const auto& [word, count] : counts) {
    EXPECT_LE(word.size(), WordCounts::kLongestWord);
    EXPECT_EQ(word.size() % 3, 0U);
    bytes += word.size() * count;
  }
  EXPECT_EQ(bytes, 50 * piece.size());
  EXPECT_LT(counts.size(), 10U);
}

TEST(WordCounts, FilesAreDocumentsOfTheirOwn) {
  const TempFolder folder;
  const auto a = folder.write("a.txt", "one tw"), b = folder.write("空.txt", ""), c = folder.write("c.txt", "o\xFF");
  ThreadPool pool(1);
  WordCounter counter({}, pool);
  size_t read = 0;
  for (const auto& file : {a, b, c}) counter.add_file(file, [&](size_t bytes) { read += bytes; });
  EXPECT_EQ(counts_of(counter.take()), (Counts{{"one", 1}, {" tw", 1}, {"o", 1}, {"\xFF", 1}}));
  EXPECT_EQ(read, 8U);
  EXPECT_EQ(counter.take().size(), 0U);
}

TEST(WordCounts, WhatCannotBeReadIsNamed) {
  const TempFolder folder;
  ThreadPool pool(1);
  WordCounter counter({}, pool);
  expect_error([&] { counter.add_file(folder.path() / "none.txt", {}); }, {"none.txt"});
  expect_error([&] { counter.add_file(folder.path(), {}); }, {folder.path().filename().string()});
  expect_error([&] { WordCounter({.specials = {""}}, pool); }, {"empty"});
  WordCounts counts;
  expect_error([&] { counts.add(""); }, {"0 bytes"});
}

}  // namespace
}  // namespace qkv
