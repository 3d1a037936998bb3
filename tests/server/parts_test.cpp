// The parts of the server that need no connection: keys, events, fields, tool calls.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temp_folder.h"
#include "infer/grammar/json_schema.h"
#include "infer/grammar_texts.h"
#include "server/http/api_keys.h"
#include "server/http/sse.h"
#include "server/memory_needs.h"
#include "server/requests/fields.h"
#include "server/requests/tool_grammar.h"
#include "support/guarded_device.h"

namespace qkv::server {
namespace {

TEST(ServerKeys, MatchWholeKeysAlone) {
  const ApiKeys keys({"0123456789abcdef", "another-key-1234"});
  EXPECT_EQ(keys.match("Bearer 0123456789abcdef"), 0);
  EXPECT_EQ(keys.match("bearer another-key-1234"), 1);
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0",
                            "Bearer  0123456789abcdef", "Basic 0123456789abcdef", "0123456789abcdef"}) {
    EXPECT_EQ(keys.match(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(ApiKeys().match("Bearer x"), std::nullopt);
  expect_error([] { ApiKeys({"short"}); }, {"API key 1 has 5 characters"});
  expect_error([] { ApiKeys({"0123456789abcdef", "with a space 1234"}); }, {"API key 2"});
  // Nothing of a key is in a message.
  EXPECT_EQ(std::string(error_of([] { ApiKeys({"secret"}); })->what()).find("secret"), std::string::npos);
}

TEST(ServerKeys, AreReadFromLinesAndLists) {
  const TempFolder folder;
  const auto file = folder.write("keys", "# of the team\n\n0123456789abcdef  \r\n  \nanother-key-1234");
  EXPECT_EQ(keys_in_file(file), (std::vector<std::string>{"0123456789abcdef", "another-key-1234"}));
  expect_error([&] { keys_in_file(folder.write("none", "# nothing\n")); }, {"has no API key"});
  EXPECT_EQ(keys_in_text(" a, b\nc "), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(ServerEvents, AreOneLineOfJsonEach) {
  const std::string frame = sse({{"text", "a\nb\r\n\xff\xe2\x80\xa8"}});
  EXPECT_TRUE(frame.starts_with("data: {") && frame.ends_with("}\n\n"));
  EXPECT_EQ(std::count(frame.begin(), frame.end(), '\n'), 2);
  EXPECT_EQ(frame.find('\r'), frame.npos);
  EXPECT_EQ(sse("done", {{"a", 1}}), "event: done\ndata: {\"a\":1}\n\n");
}

std::string failed_field(const std::function<void()>& read) {
  try {
    read();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.param;
  }
  return "none";
}

// Twelve values for a number from 1 to 10, and for one from -2 to 2.
TEST(ServerFields, NumbersOfTwelveKinds) {
  const auto whole = [](const std::string& value) -> std::optional<int64_t> {
    const OrderedJson json = parse_body("{\"x\": " + value + "}");
    return Fields(json, "a").whole("x", {1, 10});
  };
  EXPECT_EQ(whole("1"), 1);
  EXPECT_EQ(whole("10"), 10);
  EXPECT_EQ(whole("3.0"), 3);
  EXPECT_EQ(whole("null"), std::nullopt);
  for (const char* wrong : {"0", "11", "-1", "2.5", "1e308", "1e-308", "9223372036854775808", "18446744073709551616",
                            "-9223372036854775809", "\"3\"", "\"\"", "true", "[]", "{}", "\"NaN\""}) {
    EXPECT_EQ(failed_field([&] { whole(wrong); }), "a.x") << wrong;
  }
  const auto number = [](const std::string& value) {
    const OrderedJson json = parse_body("{\"x\": " + value + "}");
    return Fields(json, "").number("x", {-2, 2});
  };
  EXPECT_EQ(number("2"), 2);
  EXPECT_EQ(number("-2.0"), -2);
  EXPECT_EQ(number("1e-308"), 1e-308);
  for (const char* wrong : {"2.0000001", "-3", "1e308", "\"1\"", "false", "[1]", "{}", "18446744073709551616"}) {
    EXPECT_EQ(failed_field([&] { number(wrong); }), "x") << wrong;
  }
  // What is no JSON has no field.
  for (const char* wrong : {"NaN", "Infinity", "-Infinity", "1e400", "01", "+1", ".5", "0x1", "1.", ""}) {
    EXPECT_EQ(failed_field([&] { number(wrong); }), "") << wrong;
  }
}

TEST(ServerFields, TheBodyIsAnObjectOfBoundedDepth) {
  EXPECT_EQ(failed_field([] { parse_body(""); }), "");
  EXPECT_EQ(failed_field([] { parse_body("[]"); }), "");
  EXPECT_EQ(failed_field([] { parse_body("{\"a\": 1, \"a\": 2}"); }), "") << "a key twice";
  const auto nested = [](size_t depth) { return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}"; };
  EXPECT_EQ(failed_field([&] { parse_body(nested(60)); }), "none");
  EXPECT_EQ(failed_field([&] { parse_body(nested(64)); }), "");
  EXPECT_EQ(failed_field([&] { parse_body(nested(100'000)); }), "");
}

// --- tool calls ---

ToolReader::Read read_in_pieces(ToolStyle style, const std::string& text, size_t piece, bool several = true) {
  ToolReader reader(style, several);
  ToolReader::Read all;
  const auto add = [&](ToolReader::Read more) {
    all.text += more.text;
    all.calls.insert(all.calls.end(), more.calls.begin(), more.calls.end());
  };
  for (size_t at = 0; at < text.size(); at += piece) add(reader.feed(text.substr(at, piece)));
  add(reader.finish());
  return all;
}

struct ToolCase {
  ToolStyle style;
  const char *written, *text;
  std::vector<std::pair<const char*, const char*>> calls;  // name and arguments
};

TEST(ServerTools, AreReadFromEveryStyleHoweverTheTextIsCut) {
  using enum ToolStyle;
  const std::vector<ToolCase> cases{
      {hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>", "", {{"f", "{\"x\":1}"}}},
      {hermes,
       "Let me see.\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": "
       "\"g\"}</tool_call>",
       "Let me see.",
       {{"f", "{}"}, {"g", "{}"}}},
      {hermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"</tool\"}}</tool_call>",
       "",
       {{"f", "{\"a\":\"</tool\"}"}}},
      {hermes, "<tool_call>not json</tool_call> after", "<tool_call>not json</tool_call> after", {}},
      {hermes, "a <tool_cal b", "a <tool_cal b", {}},
      {hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 2}}", "", {{"f", "{\"x\":2}"}}},
      {hermes, "<tool_call>{\"name\": 3}</tool_call>", "<tool_call>{\"name\": 3}</tool_call>", {}},
      {hermes, "plain {\"name\": \"f\"} text \n", "plain {\"name\": \"f\"} text \n", {}},
      {llama3, "{\"name\": \"f\", \"parameters\": {\"x\": \"}\"}}", "", {{"f", "{\"x\":\"}\"}"}}},
      {llama3,
       " \n{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {\"y\": [1]}}",
       "",
       {{"f", "{}"}, {"g", "{\"y\":[1]}"}}},
      {llama3, "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "", {{"f", "{}"}}},
      {llama3, "The answer is {\"name\": \"f\"}", "The answer is {\"name\": \"f\"}", {}},
      {llama3, "{\"temperature\": 3}", "{\"temperature\": 3}", {}},
      {llama3, "{ not json", "{ not json", {}},
      {mistral,
       "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": 1}}, {\"name\": \"g\", \"arguments\": {}}]",
       "",
       {{"f", "{\"x\":1}"}, {"g", "{}"}}},
      {mistral, "Well. [TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]", "Well.", {{"f", "{}"}}},
      {mistral, "[TOOL_CALLS][{", "[TOOL_CALLS][{", {}},
      {none, "<tool_call>{\"name\": \"f\"}</tool_call>", "<tool_call>{\"name\": \"f\"}</tool_call>", {}}};
  for (const ToolCase& one : cases) {
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1000}}) {
      const ToolReader::Read read = read_in_pieces(one.style, one.written, piece);
      EXPECT_EQ(read.text, one.text) << one.written << " by " << piece;
      ASSERT_EQ(read.calls.size(), one.calls.size()) << one.written << " by " << piece;
      for (size_t i = 0; i < read.calls.size(); ++i) {
        EXPECT_EQ(read.calls[i].name, one.calls[i].first);
        EXPECT_EQ(read.calls[i].arguments, one.calls[i].second);
        EXPECT_EQ(read.calls[i].id.size(), one.style == mistral ? 9U : 29U);
      }
    }
  }
  const char* two = "<tool_call>{\"name\": \"f\"}</tool_call><tool_call>{\"name\": \"g\"}</tool_call>";
  EXPECT_EQ(read_in_pieces(hermes, two, 5, false).calls.size(), 1U);
}

// What the grammar of a forced call writes after its beginning is read as that call.
TEST(ServerTools, ForcedCallsAreReadInEveryStyle) {
  using enum ToolStyle;
  const OrderedJson tools = parse_ordered_json(
      R"([{"function": {"name": "g", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}},
          {"function": {"name": "f-1", "parameters": {"$ref": "#/$defs/p", "$defs": {"p": {"type": "object",
            "properties": {"x": {"const": 1}}, "required": ["x"]}}}}}])",
      "tools");
  for (const ToolStyle style : {hermes, llama3, mistral}) {
    const std::string key = style == llama3 ? "parameters" : "arguments";
    const auto written = [&](const std::string& name, const std::string& arguments) {
      const std::string call = "{\"name\": \"" + name + "\", \"" + key + "\": " + arguments + "}";
      return style == mistral ? "[" + call + "]" : call;
    };
    const auto fits = [](const grammar::GrammarPtr& grammar, const std::string& text) {
      return test::accepts(*grammar, text);
    };
    Budget budget(grammar::kMaxSchemaSteps);
    const grammar::GrammarPtr any = call_grammar(style, tools, "", budget),
                              named = call_grammar(style, tools, "f-1", budget);
    EXPECT_TRUE(fits(any, written("g", "{\"x\": 5}")));
    EXPECT_TRUE(fits(any, written("f-1", "{\"x\": 1}")));
    EXPECT_TRUE(fits(named, written("f-1", "{\"x\": 1}")));
    EXPECT_FALSE(fits(named, written("g", "{\"x\": 5}")));
    EXPECT_FALSE(fits(any, written("f-1", "{\"x\": 5}"))) << "the arguments of another";
    EXPECT_FALSE(fits(any, written("f-1", "{}")));
    EXPECT_FALSE(fits(any, written("h", "{}")));
    const ToolReader::Read read =
        read_in_pieces(style, std::string(forced_beginning(style)) + written("f-1", "{\"x\": 1}"), 4);
    ASSERT_EQ(read.calls.size(), 1U);
    EXPECT_EQ(read.calls[0].name, "f-1");
    EXPECT_EQ(read.calls[0].arguments, "{\"x\":1}");
    EXPECT_EQ(read.text, "");
  }
}

// Time grows with the text alone.
TEST(ServerTools, LongTextsTakeLinearTime) {
  ToolReader reader(ToolStyle::hermes);
  const auto start = std::chrono::steady_clock::now();
  reader.feed("<tool_call>");
  for (int i = 0; i < 200'000; ++i) reader.feed("<<<<<<<<");
  const ToolReader::Read read = reader.finish();
  EXPECT_EQ(read.text.size(), 11 + 1'600'000U);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5);
}

// What is on a GPU takes none of the host's memory, and may be larger than it.
TEST(ServerMemory, IsAddedUpForEachDevice) {
  constexpr int64_t kGiB = int64_t{1} << 30, kMoreThanAnyHost = int64_t{1} << 55;
  test::GuardedDevice gpu;
  gpu.free = 5 * kGiB;
  const ModelNeed small{"small", &gpu, 2 * kGiB}, large{"large", &gpu, 4 * kGiB}, tiny{"tiny", &cpu_device(), 1};
  check_needs({small, tiny});
  check_needs({tiny, large});
  const std::vector<ModelNeed> all{small, tiny, large};
  expect_error([&] { check_needs(all); },
               {"serving needs 6.00 GiB (small 2.00 GiB, large 4.00 GiB) but 5.00 GiB are free on guarded"});
  gpu.free = kMoreThanAnyHost;
  check_needs({{"vast", &gpu, kMoreThanAnyHost}, tiny});
  const std::optional<Error> host = error_of([&] { check_needs({small, {"vast", &cpu_device(), kMoreThanAnyHost}}); });
  ASSERT_TRUE(host.has_value());
  EXPECT_TRUE(host->message().starts_with("serving needs 33554432.00 GiB (vast 33554432.00 GiB) but ")) << host->what();
  EXPECT_TRUE(host->message().ends_with(" GiB are free")) << host->what();
}

}  // namespace
}  // namespace qkv::server
