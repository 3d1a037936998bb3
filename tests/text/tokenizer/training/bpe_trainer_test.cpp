#include "text/tokenizer/training/bpe_trainer.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/philox.h"
#include "support/pass.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/unicode/utf8.h"

namespace qkv {
namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

Merges merges_of(const BpeModel& model) {
  Merges merges;
  for (const auto& [left, right] : model.merges) merges.emplace_back(model.tokens[left], model.tokens[right]);
  return merges;
}

// Reference implementation: count all pairs of all words, merge the best, repeat.
Merges slow_bpe(const std::map<std::string, uint64_t>& words, size_t merges) {
  std::vector<std::pair<std::vector<std::string>, uint64_t>> split;
  for (const auto& [word, count] : words) {
    auto& symbols = split.emplace_back(std::vector<std::string>{}, count).first;
    for (const char byte : word) symbols.emplace_back(1, byte);
  }
  Merges made;
  while (made.size() < merges) {
    std::map<std::pair<std::string, std::string>, uint64_t> counts;
    for (const auto& [symbols, count] : split) {
      for (size_t i = 0; i + 1 < symbols.size(); ++i) counts[{symbols[i], symbols[i + 1]}] += count;
    }
    if (counts.empty()) break;
    // The map is ordered, so the last of the most frequent is the greatest pair.
    auto pair = counts.begin();
    for (auto at = counts.begin(); at != counts.end(); ++at) {
      if (at->second >= pair->second) pair = at;
    }
    made.push_back(pair->first);
    for (auto& [symbols, count] : split) {
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (symbols[i] != made.back().first || symbols[i + 1] != made.back().second) continue;
        symbols[i] += symbols[i + 1];
        symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
    }
  }
  return made;
}

TEST(BpeTrainer, EqualsTheReference) {
  QKV_NEED_SHARED(folder, "tokenizers/bpe-training");
  ThreadPool pool(2);
  WordCounter counter({.pattern = Pattern::gpt2, .specials = {"<|endoftext|>"}}, pool);
  counter.add_file(folder / "corpus.en", {});
  const BpeModel model = train_bpe(counter.take(), {.vocab = 500, .specials = {"<|endoftext|>"}});

  std::string merges;
  for (const auto& [left, right] : merges_of(model))
    merges += bytes_to_letters(left) + ' ' + bytes_to_letters(right) + '\n';
  EXPECT_EQ(merges, read_file(folder / "train-bpe-reference-merges.txt", 1'000'000));

  const Json vocab = parse_json(read_file(folder / "train-bpe-reference-vocab.json", 1'000'000), "reference");
  ASSERT_EQ(vocab.size(), model.tokens.size());
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string name = id < model.specials ? model.tokens[id] : bytes_to_letters(model.tokens[id]);
    EXPECT_EQ(vocab.value(name, -1), static_cast<int>(id)) << name;
  }
}

TEST(BpeTrainer, EqualsTheDefinitionOnRandomWords) {
  for (uint64_t row = 0; row < 60; ++row) {
    WordCounts counts;
    std::map<std::string, uint64_t> words;
    // Few letters: overlaps such as aaaa, and many ties.
    const uint32_t letters = 1 + static_cast<uint32_t>(row % 4);
    for (uint64_t i = 0; i < 30; ++i) {
      std::string word;
      const uint32_t bytes = 1 + random_u32({1, 0}, row, i) % 12;
      for (uint64_t k = 0; k < bytes; ++k) {
        word += static_cast<char>(0xFE + random_u32({2, 0}, row, i * 16 + k) % letters);
      }
      const uint64_t count = 1 + random_u32({3, 0}, row, i) % 3;
      counts.add(word, count);
      words[word] += count;
    }
    const BpeModel model = train_bpe(std::move(counts), {.vocab = 256 + 40});
    ASSERT_EQ(merges_of(model), slow_bpe(words, 40)) << "row " << row;
  }
}

// As in Hugging Face's trainer: a pair that would make too long a token is passed over, shorter ones still merge.
TEST(BpeTrainer, NoTokenIsLongerThanAsked) {
  const auto train = [](size_t longest) {
    WordCounts counts;
    counts.add("在自己的花园里", 50);
    counts.add(" garden", 20);
    counts.add("xy", 1);
    return merges_of(train_bpe(std::move(counts), {.vocab = 1000, .max_token_length = longest}));
  };
  const auto longest = [](const Merges& merges) {
    size_t most = 0;
    for (const auto& [left, right] : merges) most = std::max(most, left.size() + right.size());
    return most;
  };
  EXPECT_EQ(longest(train(0)), 21U);
  for (const size_t bytes : {2U, 6U, 7U, 12U}) {
    const Merges merges = train(bytes);
    EXPECT_LE(longest(merges), bytes);
    EXPECT_EQ(merges.back(), (std::pair<std::string, std::string>{"x", "y"}));  // the rarest pair is still found
  }
  EXPECT_TRUE(train(1).empty());
}

// 的 is followed by many characters with the same first byte; without a limit that byte joins it.
TEST(BpeTrainer, WithALimitATokenIsWholeCharactersOrAPartOfOne) {
  const auto torn = [](size_t longest) {
    WordCounts counts;
    for (const char* word : {"的一", "的丁", "的七", "的万", "的丈", "的三", "的上", "的下"}) counts.add(word, 10);
    size_t found = 0;
    for (const auto& [left, right] :
         merges_of(train_bpe(std::move(counts), {.vocab = 1000, .max_token_length = longest}))) {
      const std::string token = left + right;
      const auto starts = std::count_if(token.begin(), token.end(), [](char c) { return !is_utf8_continuation(c); });
      found += starts + (is_utf8_continuation(token[0]) ? 1 : 0) > 1 && !is_utf8(token) ? 1 : 0;
    }
    return found;
  };
  EXPECT_GT(torn(0), 0U);
  EXPECT_EQ(torn(6), 0U);
}

TEST(BpeTrainer, CountsBeyond32Bits) {
  WordCounts counts;
  counts.add("ab", (uint64_t{1} << 32) + 1);  // 1 if truncated to 32 bits
  counts.add("cd", uint64_t{1} << 31);
  counts.add("cd", 5);
  const BpeModel model = train_bpe(std::move(counts), {.vocab = 258});
  EXPECT_EQ(merges_of(model), (Merges{{"a", "b"}, {"c", "d"}}));

  WordCounts full;
  full.add("x", UINT64_MAX);
  expect_error([&] { full.add("x"); }, {"'x'", "64 bits"});
  full.add("ab", UINT64_MAX / 2);
  full.add("abc", UINT64_MAX / 2);
  expect_error([&] { train_bpe(std::move(full), {.vocab = 258}); }, {"bytes in all words", "64 bits"});
}

TEST(BpeTrainer, AVocabularyMustHoldTheBytes) {
  expect_error([] { train_bpe({}, {.vocab = 256, .specials = {"<s>"}}); }, {"256 tokens", "1 special"});
}

TEST(BpeTrainer, AnEmptyCorpusGivesTheBytes) {
  const BpeModel model = train_bpe({}, {.vocab = 1000, .specials = {"<s>"}});
  EXPECT_EQ(model.tokens.size(), 257U);
  EXPECT_TRUE(model.merges.empty());
}

TEST(BpeTrainer, EndsWhereNoPairIsLeft) {
  WordCounts counts;
  counts.add("aaaa");
  const BpeModel model = train_bpe(std::move(counts), {.vocab = 1000});
  EXPECT_EQ(merges_of(model), (Merges{{"a", "a"}, {"aa", "aa"}}));
}

}  // namespace
}  // namespace qkv
