#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

#include "base/expect_error.h"
#include "base/json_reader.h"

namespace qkv {
namespace {

std::string repeat(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(Json, EveryKindOfValue) {
  const Json json = parse_json(R"( {"null": null, "yes": true, "no": false, "int": -9223372036854775808,
      "unsigned": 18446744073709551615, "float": -1.5e-3, "text": "a\"\\\/\n\u00e9\ud83d\ude00", "list": [1, [], {}]} )",
                               "test");
  EXPECT_TRUE(json.at("null").is_null());
  EXPECT_EQ(json.at("yes"), true);
  EXPECT_EQ(json.at("no"), false);
  EXPECT_EQ(json.at("int").get<int64_t>(), INT64_MIN);
  EXPECT_EQ(json.at("unsigned").get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(json.at("float").get<double>(), -1.5e-3);
  EXPECT_EQ(json.at("text").get<std::string>(), "a\"\\/\n\xC3\xA9\xF0\x9F\x98\x80");
  ASSERT_EQ(json.at("list").size(), 3U);
  EXPECT_EQ(json.at("list")[0], 1);
  EXPECT_TRUE(json.at("list")[1].is_array());
  EXPECT_TRUE(json.at("list")[2].is_object());
}

// RFC 8259 allows any value at the top.
TEST(Json, ScalarsStandAlone) {
  EXPECT_EQ(parse_json("7", "test"), 7);
  EXPECT_EQ(parse_json("\"x\"", "test"), "x");
  EXPECT_EQ(parse_json(" null\r\n\t", "test"), nullptr);
}

// Containers grow while others inside them are still open.
TEST(Json, ADeepAndWideTreeEqualsItsText) {
  std::string text = "[";
  for (int i = 0; i < 200; ++i) {
    text += (i > 0 ? "," : "") + std::string(R"({"a":[)") + std::to_string(i) + R"(,{"b":{"c":[[]],"d":"x"}}],"e":{}})";
  }
  text += "]";
  EXPECT_EQ(parse_json(text, "test").dump(), text);
}

TEST(Json, ChineseKeysAndValuesRoundTrip) {
  const std::string text = R"({"模型":{"名字":"千问","层数":[28,"层"]}})";
  const Json json = parse_json(text, "test");
  EXPECT_EQ(json.at("模型").at("名字"), "千问");
  const Json again = parse_json(json.dump(), "test");
  EXPECT_EQ(again, json);
  EXPECT_EQ(parse_json("\"\\u5343\\u95ee\"", "test"), "千问");
}

TEST(Json, EmptyTextIsAnError) {
  for (const std::string_view text : {"", " ", "\n\t "}) {
    expect_error([&] { parse_json(text, "config.json"); }, {"config.json", "line", "unexpected end of input"});
  }
}

TEST(Json, BrokenTextIsAnErrorWithItsPlace) {
  const struct {
    std::string_view text, place;
  } kCases[] = {
      {"{\"a\": 1,}", "line 1, column 9 (byte 8)"},
      {"[1,]", "line 1, column 4 (byte 3)"},
      {"[1 2]", "line 1, column 4 (byte 3)"},
      {"{a: 1}", "line 1, column 2 (byte 1)"},
      {"{\"a\" 1}", "line 1, column 6 (byte 5)"},
      {"{\"a\": 1", "line 1, column 8 (byte 7)"},
      {"[1, 2", "line 1, column 6 (byte 5)"},
      {"\"abc", "line 1, column 5 (byte 4)"},
      {"{}\n x", "line 2, column 2 (byte 4)"},
      {"{}{}", "line 1, column 3 (byte 2)"},
      {"[\"千问\",\n \"层\" x]", "line 2, column 6 (byte 18)"},
      {"// c\n{}", "line 1, column 1 (byte 0)"},
      {"/* c */{}", "line 1, column 1 (byte 0)"},
      {"NaN", "line 1, column 1 (byte 0)"},
      {"[Infinity]", "line 1, column 2 (byte 1)"},
      {"[-Infinity]", "line 1, column 3 (byte 2)"},
      {"'a'", "line 1, column 1 (byte 0)"},
      {"[01]", "line 1, column 3 (byte 2)"},
      {"[+1]", "line 1, column 2 (byte 1)"},
      {"[.5]", "line 1, column 2 (byte 1)"},
      {"[1.]", "line 1, column 4 (byte 3)"},
      {"[1e]", "line 1, column 4 (byte 3)"},
      {"[0x10]", "line 1, column 3 (byte 2)"},
      {"True", "line 1, column 1 (byte 0)"},
      {"\"a\nb\"", "line 1, column 3 (byte 2)"},
      {"\"\\x\"", "line 1, column 3 (byte 2)"},
      {"]", "line 1, column 1 (byte 0)"},
      {"[}", "line 1, column 2 (byte 1)"},
  };
  for (const auto& [text, place] : kCases) {
    SCOPED_TRACE(text);
    expect_error([&, t = text] { parse_json(t, "config.json"); }, {"config.json: not valid JSON", place});
  }
}

TEST(Json, WhatFollowsAZeroByteIsNotOverlooked) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"{}\0garbage"sv, "{}\0"sv, "\"a\0b\""sv, "\0"sv}) {
    expect_error([&] { parse_json(text, "config.json"); }, {"config.json", "zero byte", "line 1, column"});
  }
}

TEST(Json, BadUtf8IsAnErrorWithACleanMessage) {
  const std::string_view kBad[] = {
      "\"\xFF\"",
      "\"\x80\"",
      "\"\xC0\xAF\"",  // overlong
      "\"\xED\xA0\x80\"",
      "\"\xF4\x90\x80\x80\"",  // a surrogate, above U+10FFFF
      "\"\xE5\x8D\"",
      "{\"\xC3\": 1}",
      "\"\xE5\x8D",  // cut short
      "\"\\ud800\"",
      "\"\\udc00x\"",
      "\xFF",
  };
  for (const std::string_view text : kBad) {
    SCOPED_TRACE(testing::PrintToString(text));
    expect_error([&] { parse_json(text, "config.json"); }, {"config.json: not valid JSON, line 1, column"});
    const auto error = error_of([&] { parse_json(text, "config.json"); });
    for (const char c : std::string(error->what())) EXPECT_GE(c, '\n');  // no bytes of the text leak through
  }
}

TEST(Json, DuplicateKeysAreAnErrorAtEveryLevel) {
  expect_error([] { parse_json(R"({"a": 1, "b": 2, "a": 3})", "config.json"); },
               {"config.json", "'a' appears twice", "line 1, column 20 (byte 19)"});
  expect_error([] { parse_json("{\"x\": [0, {\"y\":\n{\"层\": 1, \"层\": 2}}]}", "config.json"); },
               {"'层' appears twice", "line 2, column 12"});
  expect_error([] { parse_json(R"({"a": {"a": 1}, "\u0061": 2})", "config.json"); }, {"'a' appears twice"});
  expect_error([] { parse_json("{\"" + repeat("长", 999) + "\":1,\"" + repeat("长", 999) + "\":1}", "x"); },
               {"长长长...[2997 bytes]...长长", "长' appears twice"});
}

TEST(Json, TheSameKeyInDifferentObjectsIsFine) {
  const Json json = parse_json(R"([{"a": {"a": 1}}, {"a": 2}])", "test");
  EXPECT_EQ(json[0]["a"]["a"], 1);
  EXPECT_EQ(json[1]["a"], 2);
}

TEST(Json, DepthIsLimited) {
  EXPECT_NO_THROW(parse_json(repeat("[", 64) + repeat("]", 64), "test"));
  EXPECT_NO_THROW(parse_json(repeat("{\"a\":", 64) + "1" + repeat("}", 64), "test"));
  expect_error([] { parse_json(repeat("[", 65) + repeat("]", 65), "config.json"); },
               {"config.json", "64 levels", "line 1, column 65 (byte 64)"});
  expect_error([] { parse_json(repeat("{\"a\":", 65) + "1" + repeat("}", 65), "config.json"); }, {"64 levels"});
  expect_error([] { parse_json("[[1]]", "test", {.depth = 1}); }, {"1 levels", "byte 1"});
  EXPECT_EQ(parse_json("1", "test", {.depth = 0}), 1);
}

TEST(Json, DepthBombsDoNoHarm) {
  expect_error([] { parse_json(repeat("[", 100'000), "bomb"); }, {"bomb", "64 levels"});
  expect_error([] { parse_json(repeat("{\"a\":", 100'000), "bomb"); }, {"bomb", "64 levels"});
  expect_error([] { parse_json(repeat("[{\"a\":", 100'000), "bomb"); }, {"bomb", "64 levels"});
}

TEST(Json, SizeIsLimited) {
  EXPECT_EQ(parse_json("[10]", "test", {.bytes = 4}), Json::array({10}));
  expect_error([] { parse_json("[100]", "config.json", {.bytes = 4}); }, {"config.json", "5 bytes", "limit is 4"});
}

TEST(Json, NumbersMustFitADouble) {
  EXPECT_EQ(parse_json("1.7976931348623157e308", "test"), 1.7976931348623157e308);
  EXPECT_EQ(parse_json("18446744073709551616", "test"), 18446744073709551616.0);
  for (const std::string& text : {std::string("1e309"), std::string("-1e400"), repeat("9", 400)}) {
    const auto error = error_of([&] { parse_json(text, "config.json"); });
    ASSERT_TRUE(error) << text;
    EXPECT_NE(error->message().find("number overflow"), std::string::npos) << error->message();
    EXPECT_LT(error->message().size(), 300U);
    EXPECT_NE(error->hint().find("1.8e308"), std::string::npos);
  }
}

TEST(Json, WholeNumbersKeepTheirSign) {
  const Json json =
      parse_json("[0, -0, 9223372036854775807, 18446744073709551615, -9223372036854775808, 1e-400]", "test");
  EXPECT_TRUE(json[0].is_number_unsigned());
  EXPECT_EQ(json[1], 0);
  EXPECT_EQ(json[2].get<uint64_t>(), uint64_t{INT64_MAX});
  EXPECT_EQ(json[3].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(json[4].get<int64_t>(), INT64_MIN);
  EXPECT_EQ(json[5], 0.0);
}

// A tree of small values takes up to 40 times its text.
TEST(Json, TreesMayTakeOnlySoMuchMemory) {
  std::string zeros = "[0", objects = "[{}";
  for (int i = 0; i < 1'000'000; ++i) zeros += ",0";
  for (int i = 0; i < 200'000; ++i) objects += ",{}";
  for (const std::string& text : {zeros + "]", objects + "]"}) {
    expect_error([&] { parse_json(text, "config.json"); }, {"config.json: the values", "bytes of memory, line 1"});
    EXPECT_EQ(parse_json(text, "big", {.tree = size_t{1} << 30}).size(), text == zeros + "]" ? 1'000'001U : 200'001U);
  }
  EXPECT_EQ(parse_json(zeros.substr(0, 400'000) + "]", "config.json").size(), 200'000U);
}

TEST(JsonReader, ReadsValueByValue) {
  const std::string text = R"({"vocab": {"a": 1, "\u0062": -2}, "list": [true, null, "x\ty", 2.5], "rest": [[1], {}]})";
  JsonReader in(text, "test");
  std::string seen, spare;
  in.members([&](std::string_view key) {
    seen += key;
    if (key == "vocab") {
      in.members([&](std::string_view token) {
        const int64_t id = in.number().integer;
        seen += "," + std::string(token) + std::to_string(id);
      });
    } else if (key == "list") {
      in.elements([&] {
        using Kind = JsonReader::Kind;
        const Kind kind = in.kind();
        if (kind == Kind::boolean) seen += in.boolean() ? "+" : "-";
        if (kind == Kind::null) in.null();
        if (kind == Kind::string) seen += in.string(spare);
        if (kind == Kind::number) seen += std::to_string(in.number().real);
      });
    } else {
      const JsonText part = in.skip();
      EXPECT_EQ(part.items(), 2U);
      seen += part.text();
      // A part gives places in the whole document.
      expect_error([&] { parse_json(part, "part", {.depth = 1}); }, {"part: nested", "(byte 78)"});
    }
  });
  in.end();
  EXPECT_EQ(seen, "vocab,a1,b-2list+x\ty2.500000rest[[1], {}]");
  JsonReader wrong("[1]", "test");
  expect_error([&] { wrong.number(); }, {"test", "expected a number but found '['"});
}

// Whatever the text, skipping it finds the same faults as building its tree, except keys that appear twice.
TEST(JsonReader, SkippingIsAsStrictAsParsing) {
  const std::string whole = R"({"a": [1, -2.5e3, "x\u00e9\n", true, false, null, {"b": {}}], "c": "ü"})";
  const std::string_view replacements = "\"\\,:[]{}0-.eutnx \x01\xff";
  const auto skipped = [](const std::string& text) {
    JsonReader in(text, "test");
    in.skip();
    in.end();
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char c : replacements) {
      std::string text = whole;
      text[at] = c;
      const bool parses = !error_of([&] { parse_json(text, "test"); });
      EXPECT_EQ(parses, !error_of([&] { skipped(text); })) << text;
    }
    EXPECT_TRUE(error_of([&] { skipped(whole.substr(0, at)); })) << at;
  }
}

TEST(NearestKey, FindsTypingErrors) {
  constexpr std::string_view kKnown[] = {"temperature", "top_k", "top_p", "max_tokens", "n_layers", "隐藏层大小"};
  EXPECT_EQ(nearest_key("temprature", kKnown), "temperature");
  EXPECT_EQ(nearest_key("topp", kKnown), "top_p");
  EXPECT_EQ(nearest_key("max_token", kKnown), "max_tokens");
  EXPECT_EQ(nearest_key("n_lyaers", kKnown), "n_layers");
  EXPECT_EQ(nearest_key("top_k", kKnown), "top_k");
  EXPECT_EQ(nearest_key("隐臧层大小", kKnown), "隐藏层大小");
}

TEST(NearestKey, IsEmptyWhenNothingIsNear) {
  constexpr std::string_view kKnown[] = {"temperature", "top_k", "a"};
  EXPECT_EQ(nearest_key("seed", kKnown), "");
  EXPECT_EQ(nearest_key("b", kKnown), "");
  EXPECT_EQ(nearest_key("", kKnown), "");
  EXPECT_EQ(nearest_key("top_k", {}), "");
  EXPECT_EQ(nearest_key(std::string(50'000'000, 't'), kKnown), "");
}

TEST(NearestKey, TakesTheNearestAndOfEqualsTheFirst) {
  constexpr std::string_view kKnown[] = {"num_layers", "num_heads", "num_head"};
  EXPECT_EQ(nearest_key("num_headz", kKnown), "num_heads");
  EXPECT_EQ(nearest_key("num_hexd", kKnown), "num_head");
  constexpr std::string_view kEqual[] = {"beta2", "beta1"};
  EXPECT_EQ(nearest_key("beta3", kEqual), "beta2");
}

}  // namespace
}  // namespace qkv
