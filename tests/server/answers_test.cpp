// Several texts of one request, offsets of tokens, and pages behind a proxy.
#include "server/answers/answer.h"
#include "server/http/origin.h"
#include "server/test_server.h"

namespace qkv {
namespace answers_test {

using server::AnswerInfo;
using server::HttpHead;
using server::OriginIs;
using test::events_of;
using test::HttpAnswer;
using test::RunningServer;

TEST(ServerOrigin, OfAPageBehindAProxyThatEndsTls) {
  const auto judged = [](const std::string& origin, const std::string& host, bool secure) {
    return server::judge_origin(
        HttpHead{.method = "POST", .path = "/", .headers = {{"Host", host}, {"Origin", origin}}, .secure = secure}, {});
  };
  EXPECT_EQ(judged("https://x.example", "x.example", false), OriginIs::same) << "the proxy speaks TLS, we do not";
  EXPECT_EQ(judged("https://x.example:8443", "x.example:8443", false), OriginIs::same);
  EXPECT_EQ(judged("https://x.example:443", "x.example", false), OriginIs::same);
  EXPECT_EQ(judged("https://x.example", "x.example", true), OriginIs::same);
  EXPECT_EQ(judged("http://x.example", "x.example", false), OriginIs::same);
  EXPECT_EQ(judged("http://x.example", "x.example", true), OriginIs::foreign) << "port 80 is not port 443";
  EXPECT_EQ(judged("https://x.example:8443", "x.example", false), OriginIs::foreign);
  EXPECT_EQ(judged("https://y.example", "x.example", false), OriginIs::foreign);
}

// Offsets count characters; of "你好" each has three bytes.
TEST(ServerAnswers, OffsetsOfTokensCountCharacters) {
  const Tokenizer tokenizer = Tokenizer::load(test::TinyModels::get().path("chatty"));
  server::WrittenChoice choice;
  for (const int32_t id : tokenizer.encode("你好 a你b")) choice.tokens.push_back({.id = id});
  ASSERT_GT(choice.tokens.size(), 3U);
  const auto form = server::completion_form({.tokenizer = tokenizer, .logprobs = true});
  const auto expect_offsets = [&](const Json& logprobs, size_t before) {
    size_t bytes = 0;
    ASSERT_EQ(logprobs["tokens"].size(), logprobs["text_offset"].size());
    for (size_t i = 0; i < logprobs["tokens"].size(); ++i) {
      const std::string text = logprobs["tokens"][i];
      EXPECT_EQ(logprobs["text_offset"][i], before) << "token " << i << ", '" << text << "'";
      before += static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
      bytes += text.size();
    }
    EXPECT_NE(bytes, before) << "all characters have one byte: this test compares nothing";
  };
  const Json whole = parse_json(form->whole(std::span(&choice, 1)).dump(), "answer");
  expect_offsets(whole["choices"][0]["logprobs"], 0);
  // In a stream the offset goes on from piece to piece.
  const std::span<const Choice> tokens = choice.tokens;
  const Json first = events_of(form->add(choice, {.tokens = {tokens[0], tokens[1]}})).front(),
             rest = events_of(form->add(choice, {.tokens = {tokens.begin() + 2, tokens.end()}})).front();
  EXPECT_EQ(first["choices"][0]["logprobs"]["text_offset"][1], whole["choices"][0]["logprobs"]["text_offset"][1]);
  EXPECT_EQ(rest["choices"][0]["logprobs"]["text_offset"][0], whole["choices"][0]["logprobs"]["text_offset"][2]);
}

// The seed is that of each prompt's first text, wherever the prompt stands in the list.
TEST(ServerAnswers, PromptsWithASeedAreWrittenAsEachAlone) {
  const RunningServer server;
  const auto texts = [&](const Json& prompts, int n) {
    const Json answer = server
                            .post("/v1/completions", {{"prompt", prompts},
                                                      {"n", n},
                                                      {"seed", 11},
                                                      {"max_tokens", 12},
                                                      {"temperature", 1.5},
                                                      {"logit_bias", {{"470", -100}}}})
                            .json();
    std::vector<std::string> all;
    for (const Json& choice : answer["choices"]) all.push_back(choice["text"]);
    return all;
  };
  for (const int n : {1, 2}) {
    const std::vector<std::string> a = texts("one", n), b = texts("two words", n),
                                   both = texts({"one", "two words"}, n);
    std::vector<std::string> right = a;
    right.insert(right.end(), b.begin(), b.end());
    EXPECT_EQ(both, right) << "with n = " << n;
  }
}

// A text that fails ends its request, so the others of the request are not written to their ends of 60,000 tokens.
TEST(ServerAnswers, AFailedTextEndsTheOthersOfItsRequest) {
  ServerOptions options = RunningServer::usual({"longbroken"});
  options.room.context = 65536;
  const RunningServer server(options);
  const std::string model = "{model=\"longbroken\"}";
  const Json body{{"prompt", {{5, 7, 6}, {5, 77, 6}}},
                  {"max_tokens", 60000},
                  {"temperature", 0},
                  {"logit_bias", {{"470", -100}, {"77", -100}}}};
  test::Client client(server.port());  // stays: a client that leaves ends its texts too
  client.send(test::request_text({.path = "/v1/completions", .body = body.dump()}));
  const HttpAnswer answer = client.answer();
  EXPECT_EQ(answer.status, 500) << answer.body;
  for (int wait = 0; server.metric("qkv_slots_active" + model) != 0 && wait < 3000; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(server.metric("qkv_slots_active" + model), 0) << "a text of the failed request is still being written";
  EXPECT_LT(server.metric("qkv_passes_total" + model), 30000) << "it was written to its end";
}

}  // namespace answers_test
}  // namespace qkv
