#include "base/json_members.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/expect_error.h"

namespace qkv {
namespace {

std::string seen_in(const std::string& text, JsonMemberLimits limits = {}) {
  std::string out;
  parse_json_members(
      text, "m", [&](const std::string& key, const Json& value) { out += key + "=" + value.dump() + ";"; }, limits);
  return out;
}

TEST(JsonMembers, ComeOneByOneInTheirOrder) {
  EXPECT_EQ(seen_in(R"({"b":[1,{"x":2}],"a":"t","c":{},"d":null,"e":-1.5,"f":true})"),
            R"(b=[1,{"x":2}];a="t";c={};d=null;e=-1.5;f=true;)");
  EXPECT_EQ(seen_in("{}"), "");
  EXPECT_EQ(seen_in(" \t{ \"a\" : [ 1 ,\n2 ] , \"b\" : 3 } \r\n"), "a=[1,2];b=3;");
}

TEST(JsonMembers, MayHoldWhatLooksLikeTheirEnd) {
  EXPECT_EQ(seen_in(R"({"a}\"":"},\"]\\","b":["}"],"":{"k]":"{"}})"), R"(a}"="},\"]\\";b=["}"];={"k]":"{"};)");
  EXPECT_EQ(seen_in(R"({"\u0061":1})"), "a=1;");
}

// Whatever parse_json refuses as a whole is refused member by member too.
TEST(JsonMembers, AreAsStrictAsTheWhole) {
  const std::vector<std::string> wrong{"",
                                       "{",
                                       "}",

                                       "{}{}",
                                       "{} x",
                                       "{,}",
                                       "{\"a\"}",
                                       "{\"a\":}",
                                       "{\"a\":1,}",
                                       "{\"a\" 1}",
                                       "{a:1}",
                                       "{\"a\":1 2}",
                                       "{\"a\":[1}",
                                       "{\"a\":{]}",
                                       "{\"a\":1]",
                                       "{\"a\":[}}",
                                       "{\"a\":\"}",
                                       "{\"a\":\"\\\"}",
                                       "{\"a\":nul}",
                                       "{\"a\":01}",
                                       "{\"a\":1e999}",
                                       "{'a':1}",
                                       "{\"a",
                                       "{\"a\\",
                                       "{\"\xFF\":1}",
                                       "{\"a\":\"\xFF\"}",
                                       "{\"\\ud800\":1}",
                                       "{\"a\":1,\"a\":2}",
                                       "{\"a\":1,\"\\u0061\":2}",
                                       "{\"a\":{\"b\":1,\"b\":2}}",
                                       "{/**/}",
                                       "{\"a\":\xEF\xBB\xBF 1}",
                                       std::string("{}\0", 3),
                                       std::string("{\"a\":1\0}", 8),
                                       std::string("{\"a\0\":1}", 8)};
  for (const std::string& text : wrong) {
    EXPECT_TRUE(error_of([&] { (void)parse_json(text, "m"); })) << text;
    const auto error = error_of([&] { (void)seen_in(text); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->kind(), Error::Kind::input) << text;
    EXPECT_TRUE(error->message().starts_with("m: ")) << error->message();
    EXPECT_FALSE(error->hint().empty());
  }
}

TEST(JsonMembers, StandInAnObject) {
  for (const char* text : {"[]", "7", "null"}) {
    expect_error([&] { (void)seen_in(text); },
                 {"m: not valid JSON, line 1, column 1 (byte 0): expected '{' but found"});
  }
}

TEST(JsonMembers, KeepToTheirLimits) {
  expect_error([] { (void)seen_in(R"({"a":[1,2,3],"b":[1,2,3,4]})", {.bytes = 8}); },
               {"m: 'b'", "9 bytes", "limit is 8"});
  expect_error([] { (void)seen_in(R"({"a":1,"b":2,"c":3})", {.members = 2}); }, {"more than 2 members"});
  expect_error([] { (void)seen_in(R"({"a":[[1]]})", {.depth = 1}); }, {"m: 'a'", "nested more than 1"});
  EXPECT_EQ(seen_in(R"({"a":[1,2,3],"b":2})", {.bytes = 7, .members = 2}), "a=[1,2,3];b=2;");
}

}  // namespace
}  // namespace qkv
