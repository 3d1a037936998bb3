// Schemas with texts that are accepted and texts that are not.
#include "infer/grammar/json_schema.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "infer/grammar_texts.h"

namespace qkv {
namespace {

using grammar::GrammarPtr;
using grammar::schema_grammar;

struct SchemaCase {
  const char* name;
  const char* schema;
  std::vector<std::string> good, bad;
};

const std::vector<SchemaCase>& schema_cases() {
  static const std::vector<SchemaCase> cases{
      {"anything",
       "{}",
       {"null", "true", "-1.5e-3", "\"\"", "[]", "{}", "[1, [2], {\"a\": []}]", " {}"},
       {"", "  {}", "\n{}", "{} ", "nul", "nan", "[1,]", "{\"a\"}", "01", "1.", ".5", "+1", "1e", "1e999", "'a'",
        "[1 2]"}},
      {"whitespace",
       R"({"type":"array","items":{"type":"null"}})",
       {"[]", "[ ]", "[\n]", "[null,null]", "[ null, null ]", "[\n  null,\n  null\n]"},
       {"[  null]", "[\n\nnull]", "[null ,null]", "[\tnull]", " [null] "}},
      {"strings",
       R"({"type":"string"})",
       {R"("a b")", R"("\"\\\n\t")", "\"\xe4\xb8\xad\xe6\x96\x87\"", "\"\xf0\x9f\x98\x80\"", R"("/")"},
       {R"("a)", "\"\n\"", R"("\x")", R"("\ud800")", R"("\u0041")", "\"\xff\"", "\"\xe4\xb8\"", "\"\xed\xa0\x80\"",
        "\"\xc0\x80\"", "\"\xf4\x90\x80\x80\""}},
      {"lengths count code points",
       R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("abc")", "\"\xe4\xb8\xad\xf0\x9f\x98\x80\"", R"("\n\n\n")"},
       {R"("a")", R"("abcd")", R"("\n")", "\"\xe4\xb8\xad\"", "\"\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\""}},
      {"integers",
       R"({"type":"integer"})",
       {"0", "-7", "999999999999999"},
       {"-0", "1.0", "1e3", "1000000000000000", "007"}},
      {"integer bounds",
       R"({"type":"integer","minimum":-12,"maximum":107})",
       {"-12", "-1", "0", "9", "99", "100", "107"},
       {"-13", "-20", "108", "110", "200", "1000"}},
      {"exclusive bounds",
       R"({"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":6.5})",
       {"4", "5", "6"},
       {"3", "7", "0", "40"}},
      {"an exclusive bound beside the same inclusive one",
       R"({"type":"integer","minimum":3,"exclusiveMinimum":3,"maximum":6,"exclusiveMaximum":6})",
       {"4", "5"},
       {"3", "6", "2", "7"}},
      {"an exclusive bound in allOf",
       R"({"allOf":[{"type":"integer","minimum":3,"maximum":6},{"exclusiveMinimum":3,"exclusiveMaximum":6}]})",
       {"4", "5"},
       {"3", "6"}},
      {"an exclusive bound first in allOf",
       R"({"allOf":[{"type":"number","exclusiveMinimum":-1.5,"exclusiveMaximum":2},{"minimum":-1.5,"maximum":2}]})",
       {"-1.4", "0", "1.9"},
       {"-1.5", "2", "2.0"}},
      {"negative bounds",
       R"({"type":"integer","minimum":-250,"exclusiveMaximum":-37})",
       {"-250", "-38", "-99"},
       {"-37", "-251", "0", "38", "-300"}},
      {"number bounds",
       R"({"type":"number","minimum":-0.5,"exclusiveMaximum":2.25})",
       {"-0.5", "-0.05", "0", "2", "2.2", "2.249", "2.20000", "0.0"},
       {"-0.51", "2.25", "2.3", "2.250", "3", "-1", "1e0"}},
      {"multiples",
       R"({"type":"integer","multipleOf":7,"minimum":1,"maximum":100})",
       {"7", "14", "98"},
       {"0", "1", "70000", "99", "105"}},
      {"a number that is a multiple is whole",
       R"({"type":"number","multipleOf":5})",
       {"5", "-10"},
       {"5.0", "2.5", "7"}},
      {"type lists", R"({"type":["string","null"]})", {"null", "\"\""}, {"1", "[]", "true"}},
      {"keywords tell the type", R"({"minLength":1})", {"\"a\""}, {"1", "\"\"", "{}"}},
      {"enum",
       R"({"enum":["a","ab",1,null,true,[1,{"b":"\n"}]]})",
       {"\"a\"", "\"ab\"", "1", "null", "true", R"([1,{"b":"\n"}])"},
       {"\"b\"", "2", "false", "\"abc\"", "[1]"}},
      {"enum of a type", R"({"type":"string","enum":["a",1,null]})", {"\"a\""}, {"1", "null"}},
      {"const", R"({"const":{"a":[1.5]}})", {R"({"a":[1.5]})"}, {"{}", R"({"a":[2]})"}},
      {"objects",
       R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"null"}},
           "required":["b"]})",
       {R"({"b":""})", R"({"a":1,"b":""})", R"({"a": 1, "b": "", "c": null})", "{\n  \"b\": \"\"\n}", R"({ "b": "" })"},
       {"{}", R"({"a":1})", R"({"b":"","a":1})", R"({"b":"","b":""})", R"({"b":"","x":1})", R"({"b":1})",
        R"({"b":"",})", R"({,"b":""})"}},
      {"all optional",
       R"({"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({"b":1,"a":2})", R"({"c":1})", R"({"a":1,"a":1})"}},
      {"other properties",
       R"({"type":"object","properties":{"ab":{"type":"integer"}},"additionalProperties":{"type":"null"}})",
       {"{}", R"({"ab":1})", R"({"x":null})", R"({"ab":1,"a":null,"abc":null,"":null})", R"({"a":null,"b":null})",
        R"({"\"":null,"\\":null})"},
       {R"({"ab":null})", R"({"x":1})", R"({"x":null,"x":null})", R"({"x":null,"ab":1})", R"({"x":null,"ab":null})",
        R"({"a":null,"b":null,"a":null})", R"({"":null,"":null})"}},
      {"a key twice in any object",
       R"({"type":"object"})",
       {R"({"a":{"a":1},"b":1})", R"({"a":[{"b":1},{"b":1}]})"},
       {R"({"a":1,"a":1})", R"({"a":{"c":1,"c":2}})", "[]"}},
      {"a required property without a schema",
       R"({"type":"object","required":["r"],"additionalProperties":{"type":"boolean"}})",
       {R"({"r":true})", R"({"r":true,"s":false})"},
       {"{}", R"({"r":1})", R"({"s":true})"}},
      {"a forbidden property",
       R"({"type":"object","properties":{"a":false,"b":true},"additionalProperties":true})",
       {"{}", R"({"b":1})", R"({"c":1})"},
       {R"({"a":1})", R"({"b":1,"a":2})"}},
      {"counts of properties",
       R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"additionalProperties":{"const":3},
           "minProperties":2,"maxProperties":3})",
       {R"({"a":1,"b":2})", R"({"a":1,"x":3})", R"({"x":3,"y":3,"z":3})", R"({"a":1,"b":2,"x":3})"},
       {"{}", R"({"a":1})", R"({"x":3})", R"({"a":1,"b":2,"x":3,"y":3})"}},
      {"arrays",
       R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[1]", "[1,2,3]"},
       {"[]", "[1,2,3,4]", "[\"a\"]", "[1,]"}},
      {"positions",
       R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"}})",
       {"[]", "[1]", "[1,\"\"]", "[1,\"\",null,null]"},
       {"[\"\"]", "[1,null]", "[1,\"\",1]"}},
      {"positions only", R"({"prefixItems":[{"const":1},{"const":2}],"minItems":2})", {"[1,2]"}, {"[1]", "[1,2,3]"}},
      {"no items", R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
      {"different items",
       R"({"type":"array","items":{"enum":["a","ab","b"]},"uniqueItems":true,"minItems":2})",
       {R"(["a","ab"])", R"(["b","a"])", R"(["ab","b","a"])"},
       {R"(["a"])", R"(["a","a"])", R"(["a","b","a"])", R"(["a","b","ab","a"])"}},
      {"pattern is searched for",
       R"({"type":"string","pattern":"b+c"})",
       {R"("abbcd")", R"("bc")"},
       {R"("ac")", R"("b")"}},
      {"anchors",
       R"({"type":"string","pattern":"^(a|bc){2,3}$"})",
       {R"("aa")", R"("abca")", R"("bcbc")"},
       {R"("a")", R"("aaaa")", R"("xaa")", R"("aax")"}},
      {"an anchor in one branch",
       R"({"type":"string","pattern":"^a|b$"})",
       {R"("ax")", R"("xb")"},
       {R"("xa")", R"("bx")"}},
      {"classes",
       R"({"type":"string","pattern":"^[^\\d\\s]\\d\\w[\\-x-z]\\u4e2d.$"})",
       {"\"a1_-\xe4\xb8\xad!\"",
        "\"\xe4\xb8\xad"
        "1ax\xe4\xb8\xad\xe4\xb8\xad\""},
       {"\"11_-\xe4\xb8\xad!\"", "\"a1_w\xe4\xb8\xad!\"", "\"a1_-\xe4\xb8\xad\\n\""}},
      {"pattern and lengths",
       R"({"type":"string","pattern":"^a*$","minLength":2,"maxLength":3})",
       {R"("aa")", R"("aaa")"},
       {R"("a")", R"("aaaa")"}},
      {"escapes inside a pattern", R"({"type":"string","pattern":"^\"\\n\\\\$"})", {R"("\"\n\\")"}, {R"("")"}},
      {"dates",
       R"({"type":"string","format":"date"})",
       {R"("2024-02-29")", R"("2000-02-29")", R"("1999-12-31")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2024-13-01")", R"("2024-04-31")", R"("0000-01-01")", R"("24-1-1")"}},
      {"date-times",
       R"({"type":"string","format":"date-time"})",
       {R"("2024-02-29T23:59:59Z")", R"("2024-01-01T00:00:00.123+02:00")"},
       {R"("2024-02-29")", R"("2024-02-29T24:00:00Z")", R"("2024-02-29T23:59:59")"}},
      {"addresses",
       R"({"type":"string","format":"ipv4"})",
       {R"("255.0.10.1")"},
       {R"("256.0.0.1")", R"("1.2.3")", R"("01.2.3.4")"}},
      {"uuids",
       R"({"type":"string","format":"uuid"})",
       {R"("123e4567-e89b-12d3-a456-426614174000")"},
       {R"("123e4567e89b12d3a456426614174000")"}},
      {"anyOf",
       R"({"anyOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k"]},
                    {"type":"object","properties":{"k":{"const":2},"v":{}},"required":["k","v"]},{"type":"null"}]})",
       {R"({"k":1})", R"({"k":2,"v":0})", "null"},
       {R"({"k":2})", R"({"k":1,"v":0})", "1"}},
      {"anyOf beside other keywords",
       R"({"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":1})"},
       {"{}"}},
      {"oneOf where one branch requires what the other only limits",
       R"({"oneOf":[{"type":"object","properties":{"k":{"const":"x"}},"required":["k"]},
                    {"type":"object","properties":{"k":{"const":"y"},"n":{"type":"integer"}}}]})",
       {R"({"k":"x"})", R"({"k":"y"})", "{}", R"({"n":1})"},
       {R"({"k":"z"})", R"({"k":"x","n":1})"}},
      {"oneOf",
       R"({"oneOf":[{"type":"object","properties":{"k":{"const":"x"},"n":{"type":"integer"}},"required":["k","n"]},
                    {"type":"object","properties":{"k":{"const":"y"}},"required":["k"]},{"type":"string"}]})",
       {R"({"k":"x","n":1})", R"({"k":"y"})", "\"\""},
       {R"({"k":"x"})", R"({"k":"y","n":1})"}},
      {"allOf",
       R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]},
                    {"properties":{"a":{"maximum":5},"b":{"type":"null"}}}]})",
       {R"({"a":3})", R"({"a":5,"b":null})"},
       {R"({"a":2})", R"({"a":6})", R"({"b":null})"}},
      {"allOf with a closed object",
       R"({"allOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}}}]})",
       {"{}", R"({"a":1})"},
       {R"({"b":1})", R"({"a":1,"b":1})"}},
      {"references",
       R"({"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/tree"}},
           "required":["v"],"additionalProperties":false}},"$ref":"#/$defs/tree"})",
       {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"},
       {R"({"next":{"v":1}})", R"({"v":1,"next":{}})", R"({"v":1,"next":null})"}},
      {"the whole schema again",
       R"({"type":"array","items":{"$ref":"#"},"title":"t","description":"d","default":[],"examples":[1]})",
       {"[]", "[[],[[]]]"},
       {"[1]", "[[],[1]]"}},
      {"a branch that cannot be",
       R"({"anyOf":[false,{"type":"null"},{"type":"string","enum":[1]}]})",
       {"null"},
       {"1", "\"\""}},
  };
  return cases;
}

TEST(JsonSchema, AcceptsAndRejects) {
  for (const SchemaCase& one : schema_cases()) {
    const GrammarPtr grammar = schema_grammar(one.schema, one.name);
    for (const std::string& text : one.good) EXPECT_TRUE(test::accepts(*grammar, text)) << one.name << ": " << text;
    for (const std::string& text : one.bad) EXPECT_FALSE(test::accepts(*grammar, text)) << one.name << ": " << text;
  }
}

TEST(JsonSchema, NestingEndsInTime) {
  const GrammarPtr list = schema_grammar(R"({"type":"array","items":{"$ref":"#"}})", "list");
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_TRUE(test::accepts(*list, nested(64)));
  EXPECT_FALSE(test::accepts(*list, nested(65)));
  // A key whose value would go too deep is not even begun.
  const GrammarPtr pair = schema_grammar(
      R"({"type":"object","properties":{"d":{"type":"array","items":{"type":"array","items":{"$ref":"#"},"minItems":1},
          "minItems":1},"e":{"type":"null"}}})",
      "pair");
  std::string text;
  for (int i = 0; i < 21; ++i) text += "{\"d\":[[";
  EXPECT_TRUE(test::accepts(
      *pair, text + "{}" + [] {
        std::string close;
        for (int i = 0; i < 21; ++i) close += "]]}";
        return close;
      }()));
  grammar::ParseStore store;
  grammar::Ways ways, next;
  const grammar::Parser parser(*pair);
  parser.start(store, ways);
  for (const char c : text + "{") {
    next.clear();
    parser.step(store, ways.frames, static_cast<uint8_t>(c), next);
    std::swap(ways, next);
  }
  ASSERT_FALSE(ways.frames.empty());
  for (const char c : std::string_view("\"d")) {
    next.clear();
    parser.step(store, ways.frames, static_cast<uint8_t>(c), next);
    std::swap(ways, next);
  }
  EXPECT_TRUE(ways.frames.empty());
}

TEST(ResponseFormat, IsReadAsOpenAisApiHasIt) {
  const auto format = [](const char* text) {
    Budget budget(grammar::kMaxSchemaSteps);
    return grammar::response_grammar(parse_ordered_json(text, "format"), budget);
  };
  EXPECT_EQ(format(R"({"type":"text"})"), nullptr);
  const GrammarPtr object = format(R"({"type":"json_object"})");
  EXPECT_TRUE(test::accepts(*object, R"({"a": [1]})"));
  EXPECT_FALSE(test::accepts(*object, "[1]"));
  const GrammarPtr schema = format(
      R"({"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object",
          "properties":{"z":{"type":"integer"},"a":{"type":"integer"}},"required":["a","z"]}}})");
  EXPECT_TRUE(test::accepts(*schema, R"({"z":1,"a":2})")) << "in the schema's order";
  EXPECT_FALSE(test::accepts(*schema, R"({"a":2,"z":1})"));
  expect_error([&] { format(R"({"type":"xml"})"); }, {"response_format", "xml"});
  expect_error([&] { format(R"({"type":"json_schema"})"); }, {"response_format", "json_schema"});
  expect_error([&] { format(R"({"type":"json_object","schema":{}})"); }, {"schema"});
  expect_error([&] { format("3"); }, {"response_format"});
}

}  // namespace
}  // namespace qkv
