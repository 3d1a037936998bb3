// Tokenizer files whose steps grow a text without end stop at a limit, and the step is named.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "text/tokenizer/charsmap_bytes.h"
#include "text/tokenizer/stream_decoder.h"
#include "text/tokenizer/tokenizer_support.h"

namespace qkv {
namespace {

using test::tokenizer_of;

Json replace_step(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Json sequence_of(const char* list, const Json& step, size_t times) {
  return {{"type", "Sequence"}, {list, std::vector<Json>(times, step)}};
}

void expect_limited(const Tokenizer& tokenizer, const std::string& text, std::string_view step) {
  expect_error([&] { tokenizer.encode(text); }, {"test.json", step, "makes more than", "bytes of a text of"});
  expect_error([&] { tokenizer.encode_full(text); }, {step});
}

TEST(TokenizerGrowth, OfNormalizersIsLimited) {
  Json json = test::word_level_json({"a"});
  json["normalizer"] = sequence_of("normalizers", replace_step("a", std::string(1000, 'a')), 5);
  expect_limited(tokenizer_of(json), "a", "the normalizer Replace");
  json["normalizer"] = sequence_of("normalizers", {{"type", "Prepend"}, {"prepend", std::string(100'000, 'a')}}, 60);
  expect_limited(tokenizer_of(json), "a", "the normalizer Prepend");
  json["normalizer"] = replace_step("a", std::string(2 << 20, 'b'));
  expect_limited(tokenizer_of(json), "a", "the normalizer Replace");
}

TEST(TokenizerGrowth, OfPreTokenizersIsLimited) {
  Json json = test::word_level_json({"a"});
  const Json byte_level{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}};
  json["pre_tokenizer"] = sequence_of("pretokenizers", byte_level, 60);
  expect_limited(tokenizer_of(json), "é", "the pre-tokenizer ByteLevel");
}

TEST(TokenizerGrowth, OfDecodersIsLimited) {
  Json json = test::word_level_json({"a"});
  json["decoder"] = sequence_of("decoders", replace_step("a", std::string(1000, 'a')), 5);
  const Tokenizer tokenizer = tokenizer_of(json);
  const std::vector<int32_t> ids{1};
  expect_error([&] { tokenizer.decode(ids); }, {"test.json", "the decoder Replace"});
  StreamDecoder stream(tokenizer);
  expect_error([&] { stream.add(1); }, {"the decoder Replace"});
}

TEST(TokenizerGrowth, OfAddedTokensIsLimited) {
  Json json = test::word_level_json({"a"});
  json["normalizer"] = sequence_of("normalizers", replace_step("a", std::string(1000, 'a')), 5);
  json["added_tokens"].push_back({{"id", 2},
                                  {"content", "aa"},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", true},
                                  {"special", false}});
  expect_error([&] { tokenizer_of(json); }, {"test.json", "the normalizer Replace"});
}

TEST(TokenizerGrowth, OfCharacterMapsIsLimited) {
  GrowthLimit limit("map");
  limit.add_input(1);
  const Precompiled map = Precompiled::parse(test::Charsmap({{"a", std::string(2 << 20, 'b')}}).bytes(), "map");
  expect_error([&] { map.normalize("a", nullptr, &limit); }, {"map: the normalizer Precompiled"});
}

TEST(TokenizerGrowth, OfPostProcessorsIsLimited) {
  Json json = test::word_level_json({"a"});
  const Json special{{"SpecialToken", {{"id", "a"}, {"type_id", 0}}}};
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", std::vector<Json>(2000, special)},
      {"pair",
       Json::array({{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}})},
      {"special_tokens",
       {{"a", {{"id", "a"}, {"ids", std::vector<int>(2000, 1)}, {"tokens", std::vector<std::string>(2000, "a")}}}}}};
  json["post_processor"]["single"].push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  expect_error([&] { tokenizer_of(json).encode("a"); }, {"test.json: the post-processor"});
}

TEST(TokenizerGrowth, StepsAreCountedThroughNestedSequences) {
  const auto nested = [](const char* list, const Json& step) {
    Json inner = sequence_of(list, step, 9);
    return Json{{"type", "Sequence"}, {list, std::vector<Json>(9, inner)}};
  };
  Json json = test::word_level_json({"a"});
  json["pre_tokenizer"] = nested("pretokenizers", {{"type", "Whitespace"}});
  expect_error([&] { tokenizer_of(json); }, {"pre-tokenizer of 81 steps", "64"});
  json.erase("pre_tokenizer");
  json["normalizer"] = nested("normalizers", {{"type", "NFC"}});
  expect_error([&] { tokenizer_of(json); }, {"normalizer of 81 steps", "64"});
  json.erase("normalizer");
  json["decoder"] = nested("decoders", {{"type", "Fuse"}});
  expect_error([&] { tokenizer_of(json); }, {"decoder of 81 steps", "64"});
}

// Real growth stays below the limit: the longest decomposition, Chinese characters set apart, letters of bytes.
TEST(TokenizerGrowth, OfRealStepsIsAllowed) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "\xef\xb7\xba";  // U+FDFA: eighteen characters in NFKD
  Json json = test::word_level_json({"a"});
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKD"}}, {{"type", "Lowercase"}}}}};
  json["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", true}};
  EXPECT_FALSE(tokenizer_of(json).encode(text).empty());
}

// Each match looks back only to the one before: not quadratic.
TEST(TokenizerGrowth, SpacesBeforeTokensAreReadOnce) {
  Json json = test::word_level_json({"a"});
  json["added_tokens"].push_back({{"id", 2},
                                  {"content", " "},
                                  {"single_word", false},
                                  {"lstrip", true},
                                  {"rstrip", false},
                                  {"normalized", false},
                                  {"special", true}});
  EXPECT_EQ(tokenizer_of(json).encode(std::string(1'000'000, ' ')).size(), 1'000'000U);
}

}  // namespace
}  // namespace qkv
