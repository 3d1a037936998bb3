// Texts through the server are those of the engine: streamed or not, alone or among others, with two models.
#include <set>

#include "base/philox.h"
#include "infer/text_choices.h"
#include "server/test_server.h"

namespace qkv {
namespace {

using test::events_of;
using test::HttpAnswer;
using test::RunningServer;

const char* kCompletions = "/v1/completions";
const char* kChat = "/v1/chat/completions";

Json some_chat(int n) {
  Json body = {{"messages",
                {{{"role", "system"}, {"content", "Be kind."}},
                 {{"role", "user"}, {"content", "number " + std::to_string(n) + " 你好"}}}},
               {"max_tokens", 5 + n % 20},
               {"temperature", n % 3 == 0 ? 0.0 : 1.1},
               {"seed", n},
               {"logprobs", true},
               {"top_logprobs", n % 4}};
  if (n % 5 == 0) body["stop"] = {"e", "the"};
  if (n % 7 == 0) body["n"] = 2;
  return body;
}

// Tokens in the cache depend on who asked before.
Json counted(Json usage) {
  if (usage.is_object()) usage.erase("prompt_tokens_details");
  return usage;
}

// What matters of an answer: texts, reasons, log-probabilities, usage.
Json essence(const Json& answer) {
  Json all = Json::array();
  for (const Json& choice : answer["choices"]) {
    all.push_back({choice.contains("message") ? choice["message"]["content"] : choice["text"], choice["finish_reason"],
                   choice["logprobs"]});
  }
  return {all, counted(answer["usage"])};
}

// The same, put together from the events of a stream.
Json streamed_essence(const std::string& body) {
  std::map<size_t, Json> choices;
  Json usage;
  for (const Json& event : events_of(body)) {
    EXPECT_FALSE(event.contains("error")) << event.dump();
    if (event.contains("usage")) usage = event["usage"];
    for (const Json& part : event["choices"]) {
      Json& choice =
          choices.try_emplace(part["index"].get<size_t>(), Json::array({"", nullptr, nullptr})).first->second;
      const Json text = part.contains("delta") ? part["delta"].value("content", Json("")) : part["text"];
      choice[0] = choice[0].get<std::string>() + text.get<std::string>();
      if (!part["finish_reason"].is_null()) choice[1] = part["finish_reason"];
      if (part["logprobs"].is_null()) continue;
      if (choice[2].is_null()) {
        choice[2] = part["logprobs"];
        continue;
      }
      for (const auto& [name, list] : part["logprobs"].items()) {
        if (!list.is_array()) continue;
        for (const Json& one : list) choice[2][name].push_back(one);
      }
    }
  }
  Json all = Json::array();
  for (const auto& [index, choice] : choices) all.push_back(choice);
  return {all, counted(usage)};
}

Json with(Json body, const char* field, Json value) {
  body[field] = std::move(value);
  return body;
}

TEST(ServerTexts, StreamsAreTheSameAsWholeAnswers) {
  const RunningServer server;
  for (int n = 0; n < 15; ++n) {
    const Json body = some_chat(n);
    Json stream = with(body, "stream", true);
    stream["stream_options"] = {{"include_usage", true}};
    const HttpAnswer whole = server.post(kChat, body), parts = server.post(kChat, stream);
    ASSERT_EQ(whole.status, 200) << whole.body;
    ASSERT_EQ(parts.status, 200) << parts.body;
    EXPECT_EQ(parts.headers.at("content-type"), "text/event-stream");
    EXPECT_TRUE(parts.body.ends_with("data: [DONE]\n\n"));
    EXPECT_EQ(streamed_essence(parts.body), essence(whole.json())) << n;
    const Json first = events_of(parts.body).front();
    EXPECT_EQ(first["choices"][0]["delta"]["role"], "assistant");
  }
  for (int n = 0; n < 6; ++n) {
    Json body = {{"prompt", {"one two", "three 你"}}, {"n", 2}, {"seed", n}, {"max_tokens", 12}, {"logprobs", n % 3}};
    if (n == 5) body = {{"prompt", {5, 6, 7, 8}}, {"echo", true}, {"seed", 1}};
    Json stream = with(body, "stream", true);
    stream["stream_options"] = {{"include_usage", true}};
    EXPECT_EQ(streamed_essence(server.post(kCompletions, stream).body),
              essence(server.post(kCompletions, body).json()));
  }
  // Without being asked a stream has no usage.
  const HttpAnswer plain = server.post(kCompletions, {{"prompt", "one"}, {"stream", true}});
  for (const Json& event : events_of(plain.body)) EXPECT_FALSE(event.contains("usage"));
}

TEST(ServerTexts, AreThoseOfTheEngine) {
  const RunningServer server;
  const OpenModel model(test::TinyModels::get().path("chatty"), {.threads = 1});
  Runner runner = model.runner({.cache = DType::f32, .positions = 512});
  for (int n = 0; n < 8; ++n) {
    const std::string prompt = "text number " + std::to_string(n);
    const Json body = {{"prompt", prompt},
                       {"max_tokens", 20},
                       {"seed", n},
                       {"temperature", 0.5 + 0.1 * n},
                       {"top_p", 0.9},
                       {"frequency_penalty", 0.5},
                       {"logit_bias", {{"100", 5}, {"470", -100}}}};
    TextRequest request = text_request({.temperature = 0.5 + 0.1 * n,
                                        .top_p = 0.9,
                                        .frequency_penalty = 0.5,
                                        .max_new = 20,
                                        .logit_bias = {{100, 5}, {470, -100}},
                                        .seed = static_cast<uint64_t>(n)},
                                       model.defaults());
    request.options.prompt = prompt_ids(model.tokenizer(), model.spec(), prompt);
    WrittenText right;
    request.on_end = [&](const WrittenText& written) { right = written; };
    Scheduler scheduler(runner);
    submit_text(scheduler, model.tokenizer(), std::move(request));
    scheduler.run();
    const Json answer = server.post(kCompletions, body).json();
    EXPECT_EQ(answer["choices"][0]["text"], right.text) << n;
    EXPECT_EQ(answer["usage"]["completion_tokens"], right.tokens.size()) << n;
    EXPECT_EQ(answer["usage"]["prompt_tokens"], right.prompt_tokens) << n;
  }
}

// Many clients, two models, streams and whole answers side by side: each gets what it would get alone.
TEST(ServerTexts, DoNotDependOnWhoElseAsks) {
  const RunningServer server(RunningServer::usual({"chatty", "plain", "translator"}));
  constexpr int kRequests = 36;
  const auto ask = [&](int n, bool stream) -> Json {
    if (n % 9 == 8) {
      return server
          .post("/v1/translate", {{"model", "translator"},
                                  {"input", "number " + std::to_string(n)},
                                  {"max_tokens", 8},
                                  {"beams", 1 + n % 4}})
          .json();
    }
    Json body = some_chat(n);
    body["model"] = "chatty";
    if (n % 2 == 1) {
      body = {{"model", "plain"},
              {"prompt", "number " + std::to_string(n)},
              {"seed", n},
              {"max_tokens", 20},
              {"logprobs", 2}};
    }
    const char* route = n % 2 == 1 ? kCompletions : kChat;
    if (!stream) return essence(server.post(route, body).json());
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    return streamed_essence(server.post(route, body).body);
  };
  std::vector<Json> right(kRequests), got(kRequests);
  for (int n = 0; n < kRequests; ++n) right[static_cast<size_t>(n)] = ask(n, false);
  std::atomic<int> next = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&] {
      for (int n = next++; n < kRequests; n = next++) got[static_cast<size_t>(n)] = ask(n, n % 4 < 2);
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t n = 0; n < kRequests; ++n) EXPECT_EQ(got[n], right[n]) << n;
}

TEST(ServerTexts, EndWhereTheyShould) {
  const RunningServer server;
  const HttpAnswer cut =
      server.post(kCompletions, {{"prompt", "one"}, {"max_tokens", 4}, {"seed", 1}, {"logit_bias", {{"470", -100}}}});
  EXPECT_EQ(cut.json()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(cut.json()["usage"]["completion_tokens"], 4);
  const HttpAnswer ended =
      server.post(kCompletions, {{"prompt", "one"}, {"logit_bias", {{"470", 100}}}, {"temperature", 0}});
  EXPECT_EQ(ended.json()["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(ended.json()["choices"][0]["text"], "");
  // The context has 512 tokens: a prompt of 511 leaves room for one, one of 512 for none.
  const auto ids = [](size_t count) { return Json(std::vector<int>(count, 5)); };
  const HttpAnswer last = server.post(kCompletions, {{"prompt", ids(511)}, {"max_tokens", 100}});
  EXPECT_EQ(last.json()["usage"]["completion_tokens"], 1);
  EXPECT_EQ(last.json()["choices"][0]["finish_reason"], "length");
  for (const size_t length : {size_t{512}, size_t{513}, size_t{5120}}) {
    const HttpAnswer full = server.post(kCompletions, {{"prompt", ids(length)}});
    EXPECT_EQ(full.status, 400);
    EXPECT_EQ(full.error("code"), "context_length_exceeded");
    EXPECT_EQ(full.json()["error"]["prompt_tokens"], length);
    EXPECT_EQ(full.json()["error"]["max"], 511);
  }
}

TEST(ServerTexts, ToolsAreOfferedAndForced) {
  const RunningServer server;
  const Json tool = {{"type", "function"}, {"function", {{"name", "weather"}, {"parameters", {{"type", "object"}}}}}};
  Json body = {
      {"messages", {{{"role", "user"}, {"content", "how is it?"}}}}, {"tools", {tool}}, {"max_tokens", 8}, {"seed", 1}};
  const HttpAnswer offered = server.post(kChat, body);
  ASSERT_EQ(offered.status, 200) << offered.body;
  const Json none = with(body, "tool_choice", "none");
  EXPECT_LT(server.post(kChat, none).json()["usage"]["prompt_tokens"].get<int>(),
            offered.json()["usage"]["prompt_tokens"].get<int>());
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "weather"}}}};
  const Json forced = server.post(kChat, body).json();
  EXPECT_GT(forced["usage"]["prompt_tokens"], offered.json()["usage"]["prompt_tokens"]);
  EXPECT_TRUE(forced["choices"][0]["message"]["content"].get<std::string>().starts_with("<tool_call>"))
      << "random weights do not complete the call, so it stays text: " << forced.dump();
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "time"}}}};
  EXPECT_EQ(server.post(kChat, body).error("param"), "tool_choice");
}

// A call that has to be made is one of the tools', and its arguments satisfy their schema, whatever the model would say.
TEST(ServerTexts, ForcedCallsAreHeldToTheirSchema) {
  const RunningServer server;
  const Json schema = {
      {"type", "object"},
      {"properties",
       {{"unit", {{"$ref", "#/$defs/unit"}}}, {"days", {{"type", "integer"}, {"minimum", 1}, {"maximum", 9}}}}},
      {"required", {"unit", "days"}},
      {"additionalProperties", false},
      {"$defs", {{"unit", {{"enum", {"C", "F"}}}}}}};
  const auto function = [](const char* name, Json more) {
    more["name"] = name;
    return Json{{"type", "function"}, {"function", more}};
  };
  Json body = {
      {"messages", {{{"role", "user"}, {"content", "how is it?"}}}},
      {"tools", {function("now", Json::object()), function("weather", {{"strict", true}, {"parameters", schema}})}},
      {"max_tokens", 200},
      {"temperature", 1.5}};
  std::set<std::string> called;
  for (int seed = 0; seed < 24; ++seed) {
    body["seed"] = seed;
    const bool named = seed % 2 == 0;
    body["tool_choice"] = named ? Json{{"type", "function"}, {"function", {{"name", "weather"}}}} : Json("required");
    const Json choice = server.post(kChat, body).json()["choices"][0];
    ASSERT_EQ(choice["finish_reason"], "tool_calls") << choice.dump();
    EXPECT_TRUE(choice["message"]["content"].is_null()) << choice.dump();
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U);
    const Json call = choice["message"]["tool_calls"][0]["function"];
    const Json arguments = parse_json(call["arguments"].get<std::string>(), "arguments");
    called.insert(call["name"].get<std::string>());
    if (call["name"] == "now") {
      EXPECT_FALSE(named);
      EXPECT_EQ(arguments, Json::object());
      continue;
    }
    ASSERT_EQ(call["name"], "weather");
    ASSERT_EQ(arguments.size(), 2U) << arguments;
    EXPECT_TRUE(arguments["unit"] == "C" || arguments["unit"] == "F") << arguments;
    EXPECT_TRUE(arguments["days"].is_number_integer() && arguments["days"] >= 1 && arguments["days"] <= 9) << arguments;
  }
  EXPECT_EQ(called.size(), 2U) << "both are called where any may be";

  // A keyword that is not supported: a 400 that names it if the tool is strict, any object otherwise.
  body["tool_choice"] = "required";
  body["tools"] = {
      function("f", {{"strict", true}, {"parameters", {{"type", "object"}, {"dependentSchemas", Json::object()}}}})};
  const HttpAnswer refused = server.post(kChat, body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.error("param"), "tools");
  EXPECT_NE(refused.error().find("dependentSchemas"), std::string::npos) << refused.error();
  body["tools"][0]["function"]["strict"] = false;
  EXPECT_EQ(server.post(kChat, body).status, 200);

  const Json asked = {{"input", "how is it?"},
                      {"tools", {{{"type", "function"}, {"name", "weather"}, {"parameters", schema}}}},
                      {"tool_choice", {{"type", "function"}, {"name", "weather"}}},
                      {"seed", 1}};
  const Json item = server.post("/v1/responses", asked).json()["output"][0];
  EXPECT_EQ(item["type"], "function_call");
  EXPECT_EQ(item["name"], "weather");
  std::string delta;
  for (const Json& event : events_of(server.post("/v1/responses", with(asked, "stream", true)).body)) {
    if (event["type"] == "response.function_call_arguments.delta") delta += event["delta"].get<std::string>();
    if (event["type"] == "response.output_item.added") {
      EXPECT_EQ(event["item"]["arguments"], "");
    }
  }
  EXPECT_EQ(delta, item["arguments"].get<std::string>());
}

TEST(ServerTexts, UsageSaysWhatWasInTheCache) {
  const RunningServer server;
  const std::vector<int> prompt(100, 7);
  const Json body = {{"prompt", prompt}, {"max_tokens", 2}, {"temperature", 0}};
  const auto cached = [](const Json& usage) { return usage["prompt_tokens_details"]["cached_tokens"]; };
  EXPECT_EQ(cached(server.post(kCompletions, body).json()["usage"]), 0);
  EXPECT_EQ(cached(server.post(kCompletions, body).json()["usage"]), 99) << "the last token is always computed";
  const Json asked = {{"input", std::string(300, 'x')}, {"max_output_tokens", 2}, {"temperature", 0}};
  server.post("/v1/responses", asked);
  const Json usage = server.post("/v1/responses", asked).json()["usage"];
  EXPECT_EQ(usage["input_tokens_details"]["cached_tokens"], usage["input_tokens"].get<int>() - 1);
  EXPECT_EQ(usage["output_tokens_details"]["reasoning_tokens"], 0);
}

TEST(ServerTexts, ResponsesSayTheSameInOtherWords) {
  const RunningServer server;
  const Json body = {{"instructions", "Be kind."}, {"input", "hi"}, {"temperature", 0}, {"max_output_tokens", 6}};
  const Json whole = server.post("/v1/responses", body).json();
  const Json chat =
      server
          .post(kChat,
                {{"messages", {{{"role", "system"}, {"content", "Be kind."}}, {{"role", "user"}, {"content", "hi"}}}},
                 {"temperature", 0},
                 {"max_tokens", 6}})
          .json();
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(whole["usage"]["output_tokens"], chat["usage"]["completion_tokens"]);
  const std::vector<Json> events = events_of(server.post("/v1/responses", with(body, "stream", true)).body);
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["sequence_number"], i);
    if (events[i]["type"] == "response.output_text.delta") text += events[i]["delta"].get<std::string>();
  }
  EXPECT_EQ(events.front()["type"], "response.created");
  EXPECT_EQ(text, whole["output"][0]["content"][0]["text"].get<std::string>());
  const std::string last = events.back()["type"];
  EXPECT_TRUE(last == "response.completed" || last == "response.incomplete");
  EXPECT_EQ(events.back()["response"]["output"][0]["content"], whole["output"][0]["content"]);
  EXPECT_EQ(server.post("/v1/responses", with(body, "previous_response_id", "x")).error("param"),
            "previous_response_id");
}

TEST(ServerTexts, TranslationsHaveAlternativesAndAlignments) {
  const RunningServer server(RunningServer::usual({"translator"}));
  const Json body = {
      {"input", {"the cat sat", "", "one"}}, {"beams", 4}, {"n", 3}, {"max_tokens", 6}, {"alignment", true}};
  const HttpAnswer answer = server.post("/v1/translate", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json made = answer.json()["translations"];
  ASSERT_EQ(made.size(), 3U);
  EXPECT_EQ(made[0]["alternatives"].size(), 2U);
  EXPECT_GE(made[0]["score"], made[0]["alternatives"][0]["score"]);
  ASSERT_TRUE(made[0].contains("alignment")) << made[0].dump();
  EXPECT_EQ(made[0]["alignment"]["weights"].size(), made[0]["alignment"]["target"].size());
  EXPECT_EQ(made[1]["text"], "");
  EXPECT_EQ(server.post("/v1/translate", with(body, "n", 5)).error("param"), "n");
  EXPECT_EQ(server.post("/v1/translate", with(body, "input", 5)).error("param"), "input");
}

}  // namespace
}  // namespace qkv
