// Schemas whose compilation takes many times their size.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "infer/grammar/json_schema.h"
#include "infer/grammar_texts.h"

namespace qkv {
namespace {

using grammar::schema_grammar;

std::string list_of(size_t count, const std::function<std::string(size_t)>& one) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + one(i);
  return text + "]";
}

std::string numbers(size_t first, size_t count) {
  return list_of(count, [&](size_t i) { return std::to_string(first + i); });
}

// `choices` lists of 60 branches that hold together.
std::string nested_choices(size_t choices, const std::string& branch, const std::string& keyword) {
  const auto branches = [&](size_t) {
    return R"({"anyOf":)" + list_of(60, [&](size_t i) { return branch + keyword + std::to_string(10 + i) + "}"; }) +
           "}";
  };
  return R"("allOf":)" + list_of(choices, branches);
}

size_t steps_of(const std::string& schema, size_t max_steps = grammar::kMaxSchemaSteps) {
  Budget budget(max_steps);
  schema_grammar(parse_ordered_json(schema, "schema"), budget);
  return budget.used();
}

TEST(JsonSchemaBudget, ACompilationBeyondItIsRefused) {
  // 45 pairs of branches with a million pairs of values each.
  const auto branch = [](size_t i) { return R"({"enum":)" + numbers(1000 * i, 1000) + "}"; };
  const std::string many = R"({"oneOf":)" + list_of(10, branch) + "}";
  expect_error([&] { schema_grammar(many, "schema"); }, {"steps", std::to_string(grammar::kMaxSchemaSteps)});
  EXPECT_THROW(steps_of(many), OutOfBudget);
  // Each branch of one side with each of the other: 60 to the power of 6.
  const std::string multiplied = R"({"oneOf":[{)" + nested_choices(3, R"({"type":"string")", R"(,"maxLength":)") +
                                 "},{" + nested_choices(3, R"({"type":"integer")", R"(,"maximum":)") + "}]}";
  EXPECT_THROW(steps_of(multiplied, 1'000'000), OutOfBudget);
  // It is that of the whole schema, not of each pattern.
  const auto property = [](size_t i) {
    return "\"p" + std::to_string(i) + R"(":{"type":"string","pattern":"(a|b)*x)" + std::to_string(i) + R"((a|b){8}"})";
  };
  std::string properties;
  for (size_t i = 0; i < 20; ++i) properties += (i == 0 ? "" : ",") + property(i);
  const size_t one = steps_of(R"({"properties":{)" + property(0) + "}}");
  EXPECT_GT(steps_of(R"({"properties":{)" + properties + "}}"), 15 * one);
  EXPECT_THROW(steps_of(R"({"properties":{)" + properties + "}}", 5 * one), OutOfBudget);
}

// Every part of the work counts, so none can go on for ever beside the budget.
TEST(JsonSchemaBudget, EveryKindOfWorkSpendsIt) {
  std::string classes, names;
  for (int i = 0; i < 2000; ++i) classes += "\\\\w";
  for (size_t i = 0; i < 400; ++i)
    names += (i == 0 ? "\"n" : ",\"n") + std::to_string(i) + R"(":{"$ref":"#/$defs/last"})";
  std::string definitions;
  for (size_t i = 0; i < 4000; ++i) definitions += "\"d" + std::to_string(i) + R"(":{},)";
  const std::string long_name(100'000, 'n'),
      lengths = list_of(50, [](size_t i) { return R"({"maxLength":)" + std::to_string(i) + "}"; });
  const struct {
    const char* what;
    std::string schema;
    size_t least;
  } kinds[] = {
      {"classes of a pattern", R"({"type":"string","pattern":"[^)" + classes + R"(]"})", 5'000'000},
      {"numbers", R"({"type":"integer","multipleOf":997,"minimum":-99999999,"maximum":999999999})", 1'000'000},
      {"references", R"({"$defs":{)" + definitions + R"("last":{}},"properties":{)" + names + "}}", 300'000},
      {"names", R"({"properties":{")" + long_name + R"(":{"anyOf":)" + lengths + "}}}", 5'000'000},
      {"lengths", R"({"type":"string","minLength":4000})", 500'000},
      {"arrays", R"({"type":"array","minItems":1000})", 50'000},
  };
  for (const auto& kind : kinds) {
    Budget budget(grammar::kMaxSchemaSteps);
    try {
      schema_grammar(parse_ordered_json(kind.schema, "schema"), budget);
    } catch (const Error&) {
    }
    EXPECT_GT(budget.used(), kind.least) << kind.what;
  }
}

TEST(JsonSchemaBudget, WhatAnOrdinarySchemaTakesIsFarBelow) {
  EXPECT_LT(
      steps_of(R"({"type":"object","properties":{"name":{"type":"string","maxLength":100},"mail":{"format":"email"},
      "age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{"enum":["a","b"]}}}})"),
      grammar::kMaxSchemaSteps / 50);
}

TEST(JsonSchemaBudget, ItsCheckEndsACompilation) {
  struct Left {};
  const std::string schema = R"({"oneOf":[{)" + nested_choices(3, R"({"type":"string")", R"(,"maxLength":)") + "},{" +
                             nested_choices(3, R"({"type":"integer")", R"(,"maximum":)") + "}]}";
  Budget budget(grammar::kMaxSchemaSteps, [](size_t used) {
    if (used > 300'000) throw Left{};
  });
  EXPECT_THROW(schema_grammar(parse_ordered_json(schema, "schema"), budget), Left);
  EXPECT_LT(budget.used(), 1'000'000U) << "it went on for long";
}

TEST(JsonSchemaBudget, RepeatsOfNothingAddNothing) {
  std::string groups;
  for (int i = 0; i < 900; ++i) groups += "(?:)";
  for (const std::string& empty :
       {groups, std::string("(?:|)"), std::string("(?:a{0}b{0,0})"), std::string("(?:(?:)*)+")}) {
    const std::string schema = R"({"type":"string","pattern":"^(?:(?:)" + empty + R"(){1000}){1000}x$"})";
    EXPECT_LT(steps_of(schema), 100'000U) << empty.substr(0, 20);
    const grammar::GrammarPtr compiled = schema_grammar(schema, "schema");
    EXPECT_TRUE(test::accepts(*compiled, R"("x")"));
    EXPECT_FALSE(test::accepts(*compiled, R"("a")"));
    EXPECT_FALSE(test::accepts(*compiled, R"("")"));
  }
  // An assertion is not nothing.
  const grammar::GrammarPtr end = schema_grammar(R"({"type":"string","pattern":"(?:a(?:$)|b)c?"})", "schema");
  EXPECT_TRUE(test::accepts(*end, R"("xa")"));
  EXPECT_FALSE(test::accepts(*end, R"("ac")"));
  EXPECT_TRUE(test::accepts(*end, R"("bc")"));
}

TEST(JsonSchemaBudget, CommonValuesOfTwoListsTakeNoProduct) {
  std::string properties;
  for (size_t i = 0; i < 100; ++i) {
    properties += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + R"(":{"allOf":[{"enum":)" + numbers(0, 1000) +
                  R"(},{"enum":)" + numbers(990, 1000) + "}]}";
  }
  EXPECT_LT(steps_of(R"({"type":"object","properties":{)" + properties + "}}"), 15'000'000U);
  const grammar::GrammarPtr common = schema_grammar(
      R"({"allOf":[{"enum":[1.0,2,"1",{"a":[3.0]},null,0.5]},{"enum":[1,"1",{"a":[3]},true,0.5]}]})", "schema");
  for (const char* good : {"1", R"("1")", R"({"a":[3]})", "0.5"}) EXPECT_TRUE(test::accepts(*common, good)) << good;
  for (const char* bad : {"2", "null", "true", "3"}) EXPECT_FALSE(test::accepts(*common, bad)) << bad;
}

// What holds beside the choices decides before branches are multiplied.
TEST(JsonSchemaBudget, TypesBesideChoicesTellBranchesApart) {
  const std::string apart = R"({"oneOf":[{"type":"string",)" + nested_choices(2, "{", R"("maxLength":)") +
                            R"(},{"type":"integer",)" + nested_choices(2, "{", R"("maximum":)") + "}]}";
  const grammar::GrammarPtr compiled = schema_grammar(apart, "schema");
  EXPECT_TRUE(test::accepts(*compiled, R"("abc")"));
  EXPECT_TRUE(test::accepts(*compiled, "7"));
  EXPECT_FALSE(test::accepts(*compiled, "true"));
  // Keywords beside a choice tell no type where a branch does.
  expect_error(
      [] { schema_grammar(R"({"oneOf":[{"minLength":3,"anyOf":[{"type":"integer"}]},{"type":"integer"}]})", "s"); },
      {"oneOf"});
}

}  // namespace
}  // namespace qkv
