// Damaged and malicious files and texts: an error with a reason, no crash, no silent wrong result.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_support.h"

namespace qkv {
namespace {

using test::golden_tokenizer;
using test::golden_tokenizer_json;
using test::tokenizer_of;

void expect_refused(const Json& json, std::initializer_list<std::string_view> parts) {
  expect_error([&] { tokenizer_of(json); }, parts);
}

TEST(TokenizerBadInput, UnknownComponentsAreNamedWithTheirPlace) {
  struct Case {
    const char* place;
    Json value;
    const char* where;
    const char* named;
  };
  const Json foo{{"type", "Foo"}};
  const std::vector<Case> cases = {
      {"/normalizer", foo, "test.json: normalizer.type", "unknown normalizer 'Foo'"},
      {"/pre_tokenizer", foo, "test.json: pre_tokenizer.type", "unknown pre-tokenizer 'Foo'"},
      {"/post_processor", foo, "test.json: post_processor.type", "unknown post-processor 'Foo'"},
      {"/decoder", foo, "test.json: decoder.type", "unknown decoder 'Foo'"},
      {"/model/type", "Foo", "test.json: model.type", "unknown model 'Foo'"},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, foo}}},
       "normalizer.normalizers[1].type",
       "'Foo'"},
      {"/pre_tokenizer",
       {{"type", "Sequence"}, {"pretokenizers", {foo}}},
       "pre_tokenizer.pretokenizers[0].type",
       "'Foo'"},
      {"/decoder", {{"type", "Sequence"}, {"decoders", {foo}}}, "decoder.decoders[0].type", "'Foo'"},
      {"/post_processor", {{"type", "Sequence"}, {"processors", {foo}}}, "post_processor.processors[0].type", "'Foo'"},
  };
  for (const Case& c : cases) {
    Json json = golden_tokenizer_json("gpt2");
    json[Json::json_pointer(c.place)] = c.value;
    expect_refused(json, {c.where, c.named});
  }
}

TEST(TokenizerBadInput, WrongOptionsAreRefused) {
  const auto changed = [](const char* place, Json value) {
    Json json = golden_tokenizer_json("gpt2");
    json[Json::json_pointer(place)] = std::move(value);
    return json;
  };
  const Json split{{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}};
  expect_refused(changed("/pre_tokenizer", split), {"pre_tokenizer.pattern.Regex", "bad regular expression"});
  const Json behavior{{"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", "Odd"}};
  expect_refused(changed("/pre_tokenizer", behavior), {"unknown behavior 'Odd'"});
  expect_refused(changed("/pre_tokenizer", {{"type", "ByteLevel"}, {"use_regex", 3}}),
                 {"use_regex is '3'", "true or false"});
  expect_refused(changed("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}), {"one character"});
  expect_refused(changed("/model/dropout", 0.1), {"model.dropout is 0.1"});
  expect_refused(changed("/model/unk_token", "nowhere"), {"'nowhere'", "not in the vocabulary"});
  expect_refused(changed("/truncation", {{"max_length", -1}}), {"truncation.max_length is -1"});
  expect_refused(changed("/padding", {{"strategy", {{"Fixed", 1'000'000'000'000}}}}), {"padding.strategy.Fixed"});
  expect_refused(changed("/normalizer", 7), {"test.json: normalizer", "must be an object"});
  expect_refused(changed("/model", nullptr), {"'model' is missing"});
}

TEST(TokenizerBadInput, VocabularyAndMergesMustFit) {
  Json json = golden_tokenizer_json("gpt2");
  json["model"]["merges"].push_back({"he", "nonexistent"});
  expect_refused(json, {"merge 224", "'nonexistent' is not in the vocabulary"});

  json = golden_tokenizer_json("gpt2");
  json["model"]["merges"].push_back({"z", "q"});
  expect_refused(json, {"'zq' is not in the vocabulary"});

  json = golden_tokenizer_json("gpt2");
  json["model"]["merges"][3] = "a b c";
  expect_refused(json, {"model.merges[3] is not two tokens"});
  json["model"]["merges"][3] = {"a", 1};
  expect_refused(json, {"model.merges[3] is not two tokens"});

  json = golden_tokenizer_json("gpt2");
  json["model"]["vocab"]["new"] = 5;
  expect_refused(json, {"the id 5 belongs to both", "'new'"});

  for (const Json& id : std::vector<Json>{-1, 1'000'000, INT64_MAX, 1.5, "7", nullptr}) {
    json = golden_tokenizer_json("gpt2");
    json["model"]["vocab"]["new"] = id;
    expect_refused(json, {"'new'"});
  }
  std::string text = R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "a": 2}}})";
  expect_error([&] { Tokenizer::from_json(text, "t.json"); }, {"the token 'a' appears twice"});
}

TEST(TokenizerBadInput, AddedTokensMustAgreeWithTheVocabulary) {
  const auto with = [](Json token) {
    Json json = golden_tokenizer_json("gpt2");
    json["added_tokens"].push_back(std::move(token));
    return json;
  };
  expect_refused(with({{"id", 0}, {"content", "<x>"}}), {"added_tokens[1]", "the id 0"});
  expect_refused(with({{"id", 7}, {"content", "<x>"}}), {"added_tokens[1]", "the id 7 which is"});
  expect_refused(with({{"id", 600}, {"content", "he"}}), {"'he' has the id 600 here"});
  expect_refused(with({{"id", -3}, {"content", "<x>"}}), {"added_tokens[1].id is -3"});
  expect_refused(with({{"id", 1'000'000'000}, {"content", "<x>"}}), {"added_tokens[1].id"});
  EXPECT_EQ(tokenizer_of(with({{"id", 481}, {"content", "<x>"}})).vocab_size(), 482);
}

TEST(TokenizerBadInput, BrokenJsonIsRefusedWhereverItBreaks) {
  const std::string text = test::golden_tokenizer_text("wordpiece");
  size_t end = text.size();
  while (std::isspace(static_cast<unsigned char>(text[end - 1]))) --end;
  for (size_t size = 0; size < end; size += 37) {
    EXPECT_TRUE(error_of([&] { Tokenizer::from_json(text.substr(0, size), "cut.json"); })) << size;
  }
}

TEST(TokenizerBadInput, DeepJsonIsRefused) {
  for (const char* open : {"{\"a\":", "{\"model\":{\"vocab\":[", "{\"model\":{\"merges\":["}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += open;
    expect_error([&] { Tokenizer::from_json(text, "deep.json"); }, {"nested more than 64 levels"});
  }
  expect_error([&] { Tokenizer::from_json(std::string(100'000, '['), "deep.json"); }, {"expected '{' but found '['"});
  std::string text = R"({"model": {"vocab": )" + std::string(100'000, '[');
  expect_error([&] { Tokenizer::from_json(text, "deep.json"); }, {"nested more than 64 levels"});
}

TEST(TokenizerBadInput, IdsThatDoNotExistCannotBeDecoded) {
  const Tokenizer tokenizer = golden_tokenizer("gpt2");
  for (const int32_t id : {-1, tokenizer.vocab_size(), INT32_MAX, INT32_MIN}) {
    EXPECT_FALSE(tokenizer.has(id));
    EXPECT_FALSE(tokenizer.is_special(id));
    expect_error([&] { (void)tokenizer.decode(std::vector{id}); }, {"no token has the id", std::to_string(id)});
    expect_error([&] { (void)tokenizer.token(id); }, {"no token has the id"});
    expect_error([&] { (void)tokenizer.bytes_of(id); }, {"no token has the id"});
  }
}

TEST(TokenizerBadInput, TextThatIsNotUtf8IsReplacedAndCounted) {
  for (const char* name : {"wordpiece", "unigram", "llama2"}) {
    const Tokenizer tokenizer = golden_tokenizer(name);
    const std::string broken = "the \xff\xfe tea \xe4\xb8", repaired = "the \ufffd\ufffd tea \ufffd\ufffd";
    const Encoding got = tokenizer.encode_full(broken), right = tokenizer.encode_full(repaired);
    EXPECT_EQ(got.ids, right.ids) << name;
    EXPECT_EQ(tokenizer.encode(broken), right.ids) << name;
    EXPECT_EQ(got.offsets, right.offsets) << name;
    EXPECT_EQ(got.replaced_bytes, 4U) << name;
    EXPECT_EQ(right.replaced_bytes, 0U) << name;
  }
  EXPECT_EQ(golden_tokenizer("gpt2").encode_full("a\xff").replaced_bytes, 0U);
}

TEST(TokenizerBadInput, FilesAndFoldersThatHoldNoTokenizer) {
  const TempFolder folder;
  expect_error([&] { Tokenizer::load(folder.path() / "nothing"); }, {"no such file or folder"});
  expect_error([&] { Tokenizer::load(folder.path()); }, {"the folder has no tokenizer"});
  const auto other = folder.write("weights.bin", "x");
  expect_error([&] { Tokenizer::load(other); }, {"not a tokenizer file"});
  const auto list = folder.write("list.json", "[1, 2]");
  expect_error([&] { Tokenizer::load(list); }, {"list.json"});
}

// A word without a split point must not take quadratic time.
TEST(TokenizerBadInput, OneHugeWordStaysBounded) {
  const Tokenizer tokenizer = golden_tokenizer("gpt2");
  std::string word;
  while (word.size() < 1'000'000) word += "thein";
  const std::vector<int32_t> ids = tokenizer.encode(word);
  EXPECT_EQ(tokenizer.decode(ids), word);
  const std::string same(1'000'000, 'e');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(same)), same);
  EXPECT_EQ(golden_tokenizer("wordpiece").encode(word, {.add_specials = false}).size(), 1U);
  EXPECT_EQ(golden_tokenizer("llama2").decode(golden_tokenizer("llama2").encode(same, {.add_specials = false})), same);
}

TEST(TokenizerBadInput, APieceBeyondTheLimitIsRefused) {
  const std::string word((size_t{1} << 26) + 1, 'e');
  expect_error([&] { golden_tokenizer("gpt2").encode(word); }, {"a piece of 67108865 bytes"});
}

}  // namespace
}  // namespace qkv
