#include "text/tokenizer/models/bpe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/philox.h"
#include "text/tokenizer/models/word_models.h"
#include "text/tokenizer/pipeline/decoder.h"

namespace qkv {
namespace {

using Ids = std::vector<int32_t>;

Vocab vocab_of(const std::vector<std::string>& tokens) {
  Vocab vocab;
  for (size_t i = 0; i < tokens.size(); ++i) {
    vocab.add(tokens[i], static_cast<int64_t>(i), {.what = "test", .tokens = tokens.size()});
  }
  return vocab;
}

PieceTokens encoded(const TokenModel& model, std::string_view piece) {
  PieceTokens out;
  model.encode(piece, out);
  return out;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Bpe bpe_of(const std::vector<std::string>& tokens, const Pairs& merges, BpeOptions options) {
  const auto give = [&](Bpe::TakeMerge take) {
    for (size_t i = 0; i < merges.size(); ++i) take(merges[i].first, merges[i].second, static_cast<uint32_t>(i));
  };
  return Bpe(vocab_of(tokens), {merges.size(), give}, std::move(options));
}

// Reference implementation: merge the leftmost pair of the lowest rank until no pair has a merge.
std::vector<std::string> by_definition(const Pairs& merges, std::string_view word) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  while (true) {
    size_t best = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (merges[rank].first == symbols[i] && merges[rank].second == symbols[i + 1]) best = rank, at = i;
      }
    }
    if (best == merges.size()) return symbols;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Bpe, EqualsItsDefinitionOnShortAndLongWords) {
  std::vector<std::string> tokens{"a", "b", "c"};
  // Merges of random tokens, so that ranks and lengths are independent.
  Pairs merges;
  for (uint64_t i = 0; merges.size() < 60; ++i) {
    const std::string left = tokens[random_u32({5, 1}, i, 0) % tokens.size()];
    const std::string right = tokens[random_u32({5, 1}, i, 1) % tokens.size()];
    if (left.size() + right.size() > 12) continue;
    if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
    merges.emplace_back(left, right);
    tokens.push_back(left + right);
  }
  std::reverse(merges.begin() + 10, merges.begin() + 40);
  const Bpe bpe = bpe_of(tokens, merges, {.what = "test"});
  for (uint64_t row = 0; row < 300; ++row) {
    std::string word;
    const uint64_t length = row < 200 ? 1 + row % 30 : 80 + row % 40;  // below and above BpeSymbols::kFew
    for (uint64_t i = 0; i < length; ++i) word += static_cast<char>('a' + random_u32({6, 2}, row, i) % 3);
    std::vector<std::string> got;
    for (const int32_t id : encoded(bpe, word).ids) got.push_back(tokens[static_cast<size_t>(id)]);
    ASSERT_EQ(got, by_definition(merges, word)) << word;
  }
}

TEST(Bpe, UnknownCharactersAreFusedOrNot) {
  const std::vector<std::string> tokens{"<unk>", "a", "b"};
  const Bpe apart = bpe_of(tokens, {}, {.what = "test", .unk_token = "<unk>"});
  EXPECT_EQ(encoded(apart, "a中文b").ids, (Ids{1, 0, 0, 2}));
  EXPECT_EQ(encoded(apart, "a中文b").ends, (std::vector<uint32_t>{1, 4, 7, 8}));
  const Bpe fused = bpe_of(tokens, {}, {.what = "test", .fuse_unk = true, .unk_token = "<unk>"});
  EXPECT_EQ(encoded(fused, "a中文b").ids, (Ids{1, 0, 2}));
  EXPECT_EQ(encoded(fused, "a中文b").ends, (std::vector<uint32_t>{1, 7, 8}));
  const Bpe silent = bpe_of(tokens, {}, {.what = "test"});
  EXPECT_EQ(encoded(silent, "a中b").ids, (Ids{1, 2}));
}

TEST(Bpe, FallsBackToBytesWhereAllOfThemExist) {
  const Bpe bpe = bpe_of({"<unk>", "a", "<0xE4>", "<0xB8>", "<0xAD>"}, {},
                         {.what = "test", .byte_fallback = true, .unk_token = "<unk>"});
  EXPECT_EQ(encoded(bpe, "a中").ids, (Ids{1, 2, 3, 4}));
  EXPECT_EQ(encoded(bpe, "a文").ids, (Ids{1, 0}));
}

TEST(Bpe, MarksPartsOfWords) {
  const Bpe bpe = bpe_of({"a", "##b", "##c</w>", "ab", "abc</w>", "c</w>"}, {{"a", "##b"}, {"ab", "##c</w>"}},
                         {.what = "test", .continuing_subword_prefix = "##", .end_of_word_suffix = "</w>"});
  EXPECT_EQ(encoded(bpe, "abc").ids, (Ids{4}));
  EXPECT_EQ(encoded(bpe, "c").ids, (Ids{5}));
  EXPECT_EQ(encoded(bpe, "ab").ids, (Ids{0}));  // the token for a final b is missing
}

TEST(Bpe, AWholePieceCanGoPastTheMerges) {
  const std::vector<std::string> tokens{"a", "b", "c", "bc", "abc"};
  EXPECT_EQ(encoded(bpe_of(tokens, {{"b", "c"}}, {.what = "test"}), "abc").ids, (Ids{0, 3}));
  EXPECT_EQ(encoded(bpe_of(tokens, {{"b", "c"}}, {.what = "test", .ignore_merges = true}), "abc").ids, (Ids{4}));
}

TEST(WordPiece, TakesTheLongestBeginning) {
  const WordPiece model(vocab_of({"[UNK]", "un", "##aff", "##able", "##a", "中", "##文"}), {.what = "test"});
  EXPECT_EQ(encoded(model, "unaffable").ids, (Ids{1, 2, 3}));
  EXPECT_EQ(encoded(model, "unaffable").ends, (std::vector<uint32_t>{2, 5, 9}));
  EXPECT_EQ(encoded(model, "中文").ids, (Ids{5, 6}));
  EXPECT_EQ(encoded(model, "unaffablex").ids, (Ids{0}));
  const WordPiece narrow(vocab_of({"[UNK]", "a", "##a"}), {.what = "test", .max_input_chars_per_word = 3});
  EXPECT_EQ(encoded(narrow, "aaa").ids, (Ids{1, 2, 2}));
  EXPECT_EQ(encoded(narrow, "aaaa").ids, (Ids{0}));
}

std::string decoded(const DecoderPtr& decoder, const std::vector<std::string>& tokens) {
  std::string text;
  const auto out = [&](const Decoder::Part& part) { text += part.text; };
  const auto run = decoder->start(nullptr);
  for (size_t i = 0; i < tokens.size(); ++i) run->take({.text = tokens[i], .source = i}, out);
  run->finish(out);
  return text;
}

TEST(Decoders, GiveTheTextBack) {
  EXPECT_EQ(decoded(word_piece_decoder({}), {"un", "##aff", "##able", ",", "do", "n", "'", "t", "!"}),
            "unaffable, do n ' t!");
  EXPECT_EQ(decoded(word_piece_decoder({.cleanup = false}), {"a", ","}), "a ,");
  EXPECT_EQ(decoded(metaspace_decoder({}), {"▁Hey", "▁you"}), "Hey you");
  EXPECT_EQ(decoded(metaspace_decoder({.drop_first = false}), {"▁Hey", "▁you"}), " Hey you");
  EXPECT_EQ(decoded(bpe_decoder("</w>"), {"he", "llo</w>", "you</w>"}), "hello you");
  EXPECT_EQ(decoded(byte_level_decoder(), {"Ġa", "ä¸Ń", "<｜x｜>"}), " a中<｜x｜>");
  EXPECT_EQ(decoded(byte_fallback_decoder(), {"a", "<0xE4>", "<0xB8>", "<0xAD>", "b"}), "a中b");
  EXPECT_EQ(decoded(byte_fallback_decoder(), {"<0xE4>", "<0xB8>", "b"}), "\ufffd\ufffdb");
  EXPECT_EQ(decoded(strip_decoder({.content = " ", .start = 1, .stop = 1}), {"  a  "}), " a ");
  EXPECT_EQ(decoded(replace_decoder(Matcher::string("▁"), " "), {"▁a▁"}), " a ");
  EXPECT_EQ(decoded(ctc_decoder({}), {"<pad>", "h", "h", "e", "l", "<pad>", "l", "l", "o", "|", "|", "w"}), "hello w");
}

}  // namespace
}  // namespace qkv
