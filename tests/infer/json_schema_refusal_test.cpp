// Schemas that are refused: the Error names the keyword and its place.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "infer/grammar/json_schema.h"

namespace qkv {
namespace {

using grammar::schema_grammar;

struct RefusedSchema {
  const char* schema;
  std::vector<std::string_view> parts;
};

TEST(JsonSchema, RefusalsNameKeywordAndPlace) {
  const std::vector<RefusedSchema> refused{
      {R"({"properties":{"a":{"not":{}}}})", {"not", "#/properties/a/not"}},
      {R"({"if":{},"then":{}})", {"if", "#/if"}},
      {R"({"type":"object","patternProperties":{}})", {"patternProperties", "#/patternProperties"}},
      {R"({"type":"object","propertyNames":{}})", {"propertyNames"}},
      {R"({"dependentRequired":{}})", {"dependentRequired"}},
      {R"({"unevaluatedProperties":false})", {"unevaluatedProperties"}},
      {R"({"items":{"contains":{}}})", {"contains", "#/items/contains"}},
      {R"({"$defs":{"x/y":{"nope":1}},"$ref":"#/$defs/x~1y"})", {"nope", "#/$defs/x~1y/nope"}},
      {R"({"anyOf":[{},{"minContains":1}]})", {"minContains", "#/anyOf/1/minContains"}},
      {R"({"additionalProperties":{"not":{}}})", {"#/additionalProperties/not"}},
      {R"({"type":"strin"})", {"type", "strin"}},
      {R"({"type":"string","format":"uri"})", {"format", "#/format", "uri"}},
      {R"-({"type":"string","pattern":"(?=a)"})-", {"#/pattern", "looks ahead"}},
      {R"({"type":"string","pattern":"(a)\\1"})", {"#/pattern", "refers back"}},
      {R"({"type":"string","pattern":"a\\b"})", {"#/pattern", "escape"}},
      {R"({"type":"string","pattern":"a{2000}"})", {"#/pattern", "1000"}},
      {R"({"type":"string","pattern":"(a"})", {"#/pattern", "without its )"}},
      {R"({"type":"string","pattern":"a.{1,500}b.{400}c.{300}d"})", {"#/pattern", "states"}},
      {R"({"type":"number","multipleOf":0.01})", {"multipleOf", "0.01"}},
      {R"({"type":"integer","minimum":"1"})", {"minimum", "not a number"}},
      {R"({"type":"integer","exclusiveMinimum":true})", {"exclusiveMinimum"}},
      {R"({"type":"string","maxLength":100000})", {"maxLength", "100000", "4096"}},
      {R"({"type":"string","minLength":-1})", {"minLength"}},
      {R"({"enum":["a"],"maxLength":3})", {"maxLength", "#/maxLength", "enum"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})", {"uniqueItems", "#/uniqueItems"}},
      {R"({"type":"array","items":[{}]})", {"items", "#/items"}},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", {"oneOf", "#/oneOf", "#/oneOf/0", "#/oneOf/1"}},
      {R"({"oneOf":[{"type":"object"},{"type":"object","properties":{"a":{}}}]})", {"oneOf"}},
      {R"({"oneOf":[{"type":"object","properties":{"k":{"const":"x"}}},{"type":"object","properties":{"k":{"const":"y"}}}]})",
       {"oneOf"}},                                                       // {} satisfies both
      {R"({"oneOf":[{"minLength":3},{"type":"integer"}]})", {"oneOf"}},  // a number satisfies minLength too
      {R"({"oneOf":[{"minLength":3},{"const":7}]})", {"oneOf"}},
      {R"({"$ref":"other.json"})", {"$ref", "other.json"}},
      {R"({"$ref":"#/$defs/none"})", {"$ref", "#/$defs/none"}},
      {R"({"$ref":"#"})", {"refers to itself"}},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", {"refers to itself"}},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", {"no value"}},
      {"false", {"no value"}},
      {R"({"type":"string","minLength":3,"maxLength":2})", {"no value"}},
      {R"({"type":"integer","minimum":1.2,"maximum":1.8})", {"no value"}},
      {R"({"type":"object","properties":{"a":false},"required":["a"]})", {"no value"}},
      {R"({"enum":[]})", {"no value"}},
      {R"(["type"])", {"#", "array"}},
      {R"({"properties":{"a":3}})", {"#/properties/a"}},
      {R"({"required":"a"})", {"required", "#/required"}},
      {R"({"allOf":[]})", {"allOf", "#/allOf"}},
  };
  for (const RefusedSchema& one : refused) {
    SCOPED_TRACE(one.schema);
    const std::optional<Error> error = error_of([&] { schema_grammar(one.schema, "schema"); });
    ASSERT_TRUE(error.has_value()) << "it was not refused";
    EXPECT_EQ(error->kind(), Error::Kind::input) << error->what();
    EXPECT_FALSE(error->hint().empty()) << error->what();
    for (const std::string_view part : one.parts) {
      EXPECT_NE(error->message().find(part), std::string::npos) << part << " is not in: " << error->message();
    }
  }
}

TEST(JsonSchema, LimitsAreErrors) {
  const auto grown = [](size_t n, const std::string& front, const std::string& one, const std::string& back) {
    std::string text = front;
    for (size_t i = 0; i < n; ++i)
      text += (i == 0 ? "" : ",") +
              (one.find('#') == one.npos ? one : std::string(one).replace(one.find('#'), 1, std::to_string(i)));
    return text + back;
  };
  expect_error([&] { schema_grammar(grown(501, R"({"properties":{)", R"("p#":{})", "}}"), "s"); },
               {"properties", "500"});
  expect_error([&] { schema_grammar(grown(1001, R"({"enum":[)", "#", "]}"), "s"); }, {"enum", "1000"});
  expect_error([&] { schema_grammar(grown(101, R"({"anyOf":[)", "{}", "]}"), "s"); }, {"anyOf", "100"});
  expect_error([&] { schema_grammar(R"({"type":"array","minItems":1001})", "s"); }, {"minItems", "1001", "1000"});
  expect_error([&] { schema_grammar(std::string(size_t{2} << 20, ' '), "s"); }, {"s"});
  const std::string long_name(200'000, 'x');
  expect_error([&] { schema_grammar("{\"enum\":[\"" + long_name + "\"]}", "s"); }, {"enum", "200"});
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{"d1000":{})";
  for (int i = 0; i < 1000; ++i) {
    chain +=
        ",\"d" + std::to_string(i) + R"(":{"type":"array","items":{"$ref":"#/$defs/d)" + std::to_string(i + 1) + "\"}}";
  }
  expect_error([&] { schema_grammar(chain + "}}", "s"); }, {"300 deep"});
  // 20 counted strings of 4000 characters each.
  expect_error([&] { schema_grammar(grown(20, R"({"anyOf":[)", R"({"type":"string","maxLength":40#0})", "]}"), "s"); },
               {"states"});
}

}  // namespace
}  // namespace qkv
