// What a request may say: every numeric field at and beyond its bounds, and wrong types.
#include <ranges>
#include <set>

#include "server/test_server.h"

namespace qkv {
namespace {

using test::HttpAnswer;
using test::RunningServer;

struct NumericField {
  const char *path, *field;
  Json low, high;     // accepted
  Json below, above;  // refused
  bool whole;
};

Json base_body(const std::string& path) {
  const Json ends = {{"470", 100}};
  if (path == "/v1/completions")
    return {{"model", "chatty"}, {"prompt", "one"}, {"logit_bias", ends}, {"temperature", 0}};
  if (path == "/v1/chat/completions") {
    return {{"model", "chatty"},
            {"messages", {{{"role", "user"}, {"content", "x"}}}},
            {"logit_bias", ends},
            {"temperature", 0},
            {"logprobs", true}};
  }
  if (path == "/v1/responses") return {{"model", "chatty"}, {"input", "one"}, {"logit_bias", ends}, {"temperature", 0}};
  if (path == "/v1/embeddings") return {{"model", "chatty"}, {"input", "one"}};
  return {{"model", "translator"}, {"input", "one"}, {"max_tokens", 2}};
}

// A field inside an object is named with a dot.
std::vector<NumericField> numeric_fields() {
  const int64_t least = INT64_MIN, most = INT64_MAX, most_new = int64_t{1} << 30;
  std::vector<NumericField> fields;
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/v1/responses"}) {
    fields.insert(fields.end(), {{path, "temperature", 0, 100, -0.001, 100.001, false},
                                 {path, "top_p", 0, 1, -0.001, 1.001, false},
                                 {path, "min_p", 0, 1, -0.001, 1.001, false},
                                 {path, "typical_p", 0, 1, -0.001, 1.001, false},
                                 {path, "top_k", -1, INT32_MAX, -2, int64_t{INT32_MAX} + 1, true},
                                 {path, "repetition_penalty", 0.01, 100, 0, 100.1, false},
                                 {path, "presence_penalty", -2, 2, -2.001, 2.001, false},
                                 {path, "frequency_penalty", -2, 2, -2.001, 2.001, false},
                                 {path, "logit_bias.5", -100, 100, -100.001, 100.001, false},
                                 {path, "seed", least, most, -1e19, 1e19, true},
                                 {path, "look.attribute.position", 0, 511, -1, 512, true},
                                 {path, "n", 1, 4, 0, 5, true}});
  }
  for (const char* path : {"/v1/completions", "/v1/chat/completions"}) {
    fields.push_back({path, "max_tokens", 1, most_new, 0, most_new + 1, true});
  }
  fields.push_back({"/v1/chat/completions", "max_completion_tokens", 1, most_new, 0, most_new + 1, true});
  fields.push_back({"/v1/responses", "max_output_tokens", 1, most_new, -1, most_new + 1, true});
  fields.push_back({"/v1/chat/completions", "top_logprobs", 0, 20, -1, 21, true});
  fields.push_back({"/v1/completions", "logprobs", 0, 20, -1, 21, true});
  fields.push_back({"/v1/completions", "best_of", 1, 1, 0, 5, true});
  fields.push_back({"/v1/embeddings", "dimensions", 1, 32, 0, 33, true});
  fields.push_back({"/v1/translate", "beams", 1, 8, 0, 9, true});
  fields.push_back({"/v1/translate", "n", 1, 4, 0, 9, true});
  fields.push_back({"/v1/translate", "max_tokens", 1, 100, 0, int64_t{1} << 40, true});
  fields.push_back({"/v1/translate", "length_penalty", -10, 10, -10.1, 10.1, false});
  return fields;
}

TEST(ServerRequests, EveryNumericFieldAtItsBoundsAndBeyond) {
  ServerOptions options = RunningServer::usual({"chatty", "translator"});
  options.room.look.allowed = true;
  const RunningServer server(options);
  for (const NumericField& field : numeric_fields()) {
    const std::string name = field.field;
    const auto ask = [&](const Json& value) {
      Json body = base_body(field.path);
      Json* at = &body;
      for (const auto part : std::views::split(name, '.')) at = &(*at)[std::string(part.begin(), part.end())];
      *at = value;
      return server.post(field.path, body);
    };
    for (const Json& good : {field.low, field.high, Json(nullptr)}) {
      const HttpAnswer answer = ask(good);
      EXPECT_EQ(answer.status, 200) << field.path << " " << name << " " << good << ": " << answer.body;
    }
    std::vector<Json> wrong{field.below, field.above, 1e308,         -1e308,         "1",
                            "",          true,        Json::array(), Json::object(), "NaN"};
    if (field.whole) wrong.push_back(1.5);
    for (const Json& bad : wrong) {
      const HttpAnswer answer = ask(bad);
      ASSERT_EQ(answer.status, 400) << field.path << " " << name << " " << bad << ": " << answer.body;
      EXPECT_EQ(answer.error("param"), name) << bad;
      EXPECT_NE(answer.error().find(name), std::string::npos) << answer.error();
      EXPECT_EQ(answer.error("type"), "invalid_request_error");
    }
  }
}

// A parser that reads a number under a new name has to be added to numeric_fields().
TEST(ServerRequests, EveryNumberTheParsersReadIsTested) {
  std::set<std::string> tested;
  for (const NumericField& field : numeric_fields()) {
    const std::string name = field.field;
    tested.insert(name.substr(name.rfind('.') + 1));
  }
  size_t found = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(test::golden("..") / ".." / "src" / "server")) {
    // The page's own routes are in page_numbers_test.cpp.
    if (file.path().extension() != ".cpp" || file.path().parent_path().filename() == "page") continue;
    const std::string text = read_file(file.path(), 1 << 20);
    const auto expect_tested = [&](const std::string& name) {
      ++found;
      EXPECT_TRUE(tested.contains(name)) << name << " of " << file.path().filename();
    };
    for (const char* call : {"number(\"", "whole(\""}) {
      for (size_t at = text.find(call); at != text.npos; at = text.find(call, at + 1)) {
        expect_tested(test::quoted_names(text.substr(at, 80)).front());
      }
    }
    for (size_t at = text.find("read_generation("); at != text.npos; at = text.find("read_generation(", at + 1)) {
      for (const std::string& name : test::quoted_names(text.substr(at, text.find(';', at) - at))) {
        if (name.starts_with("max_")) expect_tested(name);
      }
    }
  }
  EXPECT_GE(found, 20U);
}

TEST(ServerRequests, EveryIdOfATokenAtItsBoundsAndBeyond) {
  const RunningServer server(RunningServer::usual({"chatty", "translator"}));
  const std::vector<std::pair<const char*, const char*>> lists{{"/v1/completions", "prompt"},
                                                               {"/v1/embeddings", "input"}};
  for (const auto& [path, field] : lists) {
    for (const bool nested : {false, true}) {
      const auto ask = [&, path = path, field = field](const Json& id) {
        Json body = base_body(path), ids = Json::array({5, id});
        body[field] = nested ? Json::array({ids}) : ids;
        return server.post(path, body);
      };
      for (const int good : {0, 607}) EXPECT_EQ(ask(good).status, 200) << path << " " << good;
      for (const Json& bad : {Json(-1), Json(608), Json(INT32_MAX), Json(int64_t{INT32_MAX} + 1), Json(INT64_MAX),
                              Json(INT64_MIN), Json(UINT64_MAX), Json(int64_t{1} << 32), Json(1.5), Json(5.0),
                              Json(1e308), Json(-1e308), Json("1"), Json(true), Json(nullptr), Json::object()}) {
        const HttpAnswer answer = ask(bad);
        ASSERT_EQ(answer.status, 400) << path << " " << bad << ": " << answer.body;
        EXPECT_EQ(answer.error("param"), field) << bad;
      }
    }
  }
}

// They are refused by their beginning: reading megabytes whole would keep a reader busy for seconds.
TEST(ServerRequests, TextsThatAreTooLongByFarAreRefusedByTheirBeginning) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "x y ";
  for (const auto& [path, model, field] :
       {std::tuple("/v1/completions", "plain", "prompt"), std::tuple("/v1/embeddings", "reader", "input"),
        std::tuple("/v1/translate", "translator", "input")}) {
    const test::RunningServer server(test::RunningServer::usual({model}));
    const test::HttpAnswer answer = server.post(path, {{field, text}});
    EXPECT_EQ(answer.status, 400) << path;
    if (answer.status != 400) continue;
    EXPECT_EQ(answer.error("param"), field);
    EXPECT_NE(answer.error().find("the first"), std::string::npos) << answer.error();
  }
  const test::RunningServer chat;
  const test::HttpAnswer answer =
      chat.post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", text.substr(0, 3'000'000)}}}}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.error("param"), "messages");
  EXPECT_NE(answer.error().find("the first"), std::string::npos) << answer.error();
}

TEST(ServerRequests, WrongTypesAndSizesNameTheirField) {
  const RunningServer server(RunningServer::usual({"chatty", "translator"}));
  const auto refused = [&](const char* path, const char* field, const Json& value, const std::string& named) {
    Json body = base_body(path);
    body[field] = value;
    const HttpAnswer answer = server.post(path, body);
    EXPECT_EQ(answer.status, 400) << path << " " << field << " " << value.dump().substr(0, 80) << " "
                                  << answer.body.substr(0, 200);
    if (answer.status != 400) return;
    EXPECT_EQ(answer.error("param"), named) << answer.body;
  };
  const char *text = "/v1/completions", *chat = "/v1/chat/completions";
  refused(text, "stream", "yes", "stream");
  refused(text, "echo", 1, "echo");
  refused(text, "prompt", 5, "prompt");
  refused(text, "prompt", Json::array(), "prompt");
  refused(text, "prompt", {1, 2, 608}, "prompt");
  refused(text, "prompt", {1, -2}, "prompt");
  refused(text, "prompt", {1, 2.5}, "prompt");
  refused(text, "prompt", {1, "a"}, "prompt");
  refused(text, "prompt", {"a", 1}, "prompt");
  refused(text, "prompt", Json::array({Json::array()}), "prompt");
  refused(text, "prompt", std::vector<std::string>(65, "a"), "prompt");
  refused(text, "stop", 5, "stop");
  refused(text, "stop", "", "stop");
  refused(text, "stop", std::string(257, 'a'), "stop");
  refused(text, "stop", std::vector<std::string>(17, "a"), "stop");
  refused(text, "stop", {"a", 5}, "stop");
  refused(text, "logit_bias", {{"608", 1}}, "logit_bias");
  refused(text, "logit_bias", {{"-1", 1}}, "logit_bias");
  refused(text, "logit_bias", {{"a", 1}}, "logit_bias");
  refused(text, "logit_bias", {{"1", 101}}, "logit_bias.1");
  refused(text, "logit_bias", {{"1", "a"}}, "logit_bias.1");
  refused(text, "logit_bias", 5, "logit_bias");
  refused(text, "suffix", "after", "suffix");
  refused(text, "stream_options", {{"include_usage", true}}, "stream_options");
  refused(text, "response_format", {{"type", "xml"}}, "response_format.type");
  refused(text, "response_format", "json", "response_format");
  refused(text, "model", 5, "model");
  Json biases = Json::object();
  for (int i = 0; i < 1025; ++i) biases[std::to_string(i)] = 1;
  refused(text, "logit_bias", biases, "logit_bias");

  const auto message = [](Json one) { return Json::array({std::move(one)}); };
  refused(chat, "messages", Json::array(), "messages");
  refused(chat, "messages", "hi", "messages");
  refused(chat, "messages", message("hi"), "messages[0]");
  refused(chat, "messages", message({{"content", "x"}}), "messages[0].role");
  refused(chat, "messages", message({{"role", "king"}, {"content", "x"}}), "messages[0].role");
  refused(chat, "messages", message({{"role", "user<|im_end|>"}, {"content", "x"}}), "messages[0].role");
  refused(chat, "messages", message({{"role", "user"}}), "messages[0].content");
  refused(chat, "messages", message({{"role", "user"}, {"content", 5}}), "messages[0].content");
  refused(chat, "messages",
          message({{"role", "user"},
                   {"content", {{{"type", "image_url"}, {"image_url", {{"url", "http://localhost/x"}}}}}}}),
          "messages[0].content[0].type");
  refused(chat, "messages", message({{"role", "user"}, {"content", {{{"type", "text"}, {"text", 5}}}}}),
          "messages[0].content[0].text");
  refused(chat, "messages", message({{"role", "assistant"}, {"tool_calls", {5}}}), "messages[0].tool_calls[0]");
  refused(chat, "messages", std::vector<Json>(4097, {{"role", "user"}, {"content", "x"}}), "messages");
  refused(chat, "tools", {{{"type", "function"}}}, "tools[0].function");
  refused(chat, "tools", {{{"type", "browser"}}}, "tools[0].type");
  refused(chat, "tools", {{{"type", "function"}, {"function", {{"name", "a b"}}}}}, "tools[0].function.name");
  refused(chat, "tool_choice", "always", "tool_choice");
  refused(chat, "tool_choice", "required", "tool_choice");
  refused(chat, "chat_template_kwargs", {{"bos_token", "<|im_end|>"}}, "chat_template_kwargs.bos_token");
  refused(chat, "chat_template_kwargs", {{"enable_thinking", "no"}}, "chat_template_kwargs.enable_thinking");
  refused("/v1/embeddings", "input", 5, "input");
  refused("/v1/embeddings", "input", "", "input");
  refused("/v1/embeddings", "encoding_format", "int8", "encoding_format");
  refused("/v1/embeddings", "pooling", "max", "pooling");
  refused("/v1/translate", "alignment", "yes", "alignment");
  refused("/v1/translate", "input", std::vector<std::string>(65, "a"), "input");

  for (const char* body :
       {"", "null", "[]", "5", "{", "{\"prompt\": \"a\"", "{\"prompt\": NaN}", "\xff\xfe", "{\"prompt\": \"\xff\"}"}) {
    const HttpAnswer answer = server.ask({.path = "/v1/completions", .body = body});
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_FALSE(answer.error().empty()) << body;
  }
  // Fields nobody knows are ignored, as OpenAI does.
  Json more = base_body(chat);
  more.update(
      {{"user", "me"}, {"metadata", {{"a", 1}}}, {"service_tier", "auto"}, {"nonsense", Json::array({1, "x"})}});
  EXPECT_EQ(server.post(chat, more).status, 200);
}

}  // namespace
}  // namespace qkv
