// Slow, rude and leaving clients; too many of them; limits; the end.
#include <deque>
#include <fstream>

#include "server/test_server.h"

namespace qkv {
namespace {

using test::Client;
using test::events_of;
using test::HttpAnswer;
using test::request_text;
using test::RunningServer;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

const std::string kLong = R"({"prompt": "one two", "max_tokens": 500, "logit_bias": {"470": -100}, "stream": true})";

// A text of the model `long` that lasts for seconds: it ends because its client leaves.
std::string endless_text(bool stream = false) {
  const Json body = {
      {"model", "long"}, {"prompt", "x"}, {"max_tokens", 60000}, {"logit_bias", {{"470", -100}}}, {"stream", stream}};
  return request_text({.path = "/v1/completions", .body = body.dump()});
}

bool soon(const std::function<bool()>& holds, double seconds = 5) {
  const auto start = Clock::now();
  while (!holds()) {
    if (since(start) > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

TEST(ServerFaults, AClientThatLeavesFreesItsSlot) {
  ServerOptions options = RunningServer::usual({"long"});
  options.room.slots = 1;
  const RunningServer server(options);
  const std::string active = "qkv_slots_active{model=\"long\"}", waiting = "qkv_queue_waiting{model=\"long\"}";
  Client running(server.port()), queued(server.port());
  running.send(endless_text(true));
  ASSERT_TRUE(running.read_until("data: {"));
  queued.send(endless_text());
  ASSERT_TRUE(soon([&] { return server.metric(waiting) == 1; }));
  queued.leave();
  EXPECT_TRUE(soon([&] { return server.metric(waiting) == 0; }));
  EXPECT_EQ(server.metric(active), 1);
  running.leave();
  EXPECT_TRUE(soon([&] { return server.metric(active) == 0; }));
  EXPECT_EQ(server.metric("qkv_cancellations_total"), 2);
  EXPECT_TRUE(soon([&] { return server.metric("qkv_requests_in_progress") == 1; })) << "this one itself";
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 2}}).status, 200);
}

TEST(ServerFaults, TooManyRequestsAreToldToComeBackAtOnce) {
  ServerOptions options = RunningServer::usual({"long"});
  options.room.slots = 1;
  options.room.queue = 2;
  const RunningServer server(options);
  const auto waiting = [&] { return server.metric("qkv_queue_waiting{model=\"long\"}"); };
  Client running(server.port()), first(server.port()), second(server.port());
  running.send(endless_text());
  ASSERT_TRUE(soon([&] { return server.metric("qkv_slots_active{model=\"long\"}") == 1; }));
  for (Client* client : {&first, &second}) client->send(request_text({.path = "/v1/completions", .body = kLong}));
  ASSERT_TRUE(soon([&] { return waiting() == 2; }));
  const HttpAnswer refused = server.post("/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(waiting(), 2) << "it did not wait for a place";
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.error("type"), "rate_limit_error");
  EXPECT_TRUE(refused.headers.contains("retry-after"));
  EXPECT_EQ(server.metric("qkv_rejections_total"), 1);
  EXPECT_EQ(server.get("/health").status, 200);
  // Those that were accepted finish.
  running.leave();
  for (Client* client : {&first, &second}) EXPECT_TRUE(client->read_until("[DONE]"));
}

// What a full model refuses concerns texts of this model alone, whoever reads its name.
TEST(ServerFaults, AFullModelRefusesForItself) {
  ServerOptions options = RunningServer::usual({"long", "plain"});
  options.room.slots = options.room.queue = 1;
  const RunningServer server(options);
  Client running(server.port()), queued(server.port());
  running.send(endless_text());
  ASSERT_TRUE(soon([&] { return server.metric("qkv_slots_active{model=\"long\"}") == 1; }));
  queued.send(endless_text());
  ASSERT_TRUE(soon([&] { return server.metric("qkv_queue_waiting{model=\"long\"}") == 1; }));
  const auto status = [&](const std::string& path, Json ask, const char* model) {
    ask["model"] = model;
    ask["max_tokens"] = 2;
    const HttpAnswer answer = server.post(path, ask);
    EXPECT_EQ(answer.headers.contains("retry-after"), answer.status == 429) << answer.body;
    return answer.status;
  };
  const double before = server.metric("qkv_rejections_total");
  EXPECT_EQ(status("/v1/completions", {{"prompt", "x"}}, "long"), 429);
  EXPECT_EQ(status("/v1/responses", {{"input", "x"}}, "long"), 429);
  EXPECT_EQ(status("/v1/completions", {{"prompt", "x"}, {"user", std::string(20000, 'u')}}, "long"), 429);
  EXPECT_EQ(server.metric("qkv_rejections_total"), before + 3);
  EXPECT_EQ(status("/v1/completions", {{"prompt", "x"}}, "plain"), 200);
  EXPECT_EQ(status("/v1/embeddings", {{"input", "x"}}, "long"), 200);
  EXPECT_EQ(status("/v1/completions", {{"prompt", "x"}}, "absent"), 404);
  EXPECT_EQ(server.ask({.method = "POST", .path = "/v1/completions", .body = R"({"model": "long", )"}).status, 400);
}

// A request for as many texts as have room is never refused by a server that has nothing to do.
TEST(ServerFaults, SlotsAndQueueAreFilledTogether) {
  ServerOptions options = RunningServer::usual();
  options.room.slots = options.room.queue = 2;
  const RunningServer server(options);
  Json body = {{"prompt", {"one", "two"}}, {"n", 2}, {"max_tokens", 2}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(soon([&] { return server.metric("qkv_slots_active{model=\"chatty\"}") == 0; }));
    EXPECT_EQ(server.post("/v1/completions", body).status, 200) << i;
  }
  body["prompt"] = {"one", "two", "three"};
  EXPECT_EQ(server.post("/v1/completions", body).status, 400) << "it could never fit";
}

TEST(ServerFaults, SlowSendersAreDropped) {
  ServerOptions options = RunningServer::usual();
  options.http.header_time = options.http.body_time = server::Seconds(0.3);
  const RunningServer server(options);
  Client silent(server.port()), header(server.port()), body(server.port());
  header.send("GET /health HTTP/1.1\r\nHost: loc");
  body.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
  const auto start = Clock::now();
  EXPECT_EQ(header.answer(5).status, 408);
  EXPECT_FALSE(header.more(5));
  EXPECT_EQ(body.answer(5).status, 408);
  EXPECT_FALSE(body.more(5));
  EXPECT_FALSE(silent.more(5)) << "closed without a word";
  EXPECT_LT(since(start), 4);
  EXPECT_GT(since(start), 0.25);
  // One byte at a time does not help.
  Client drips(server.port());
  bool open = true;
  for (int i = 0; i < 40 && open; ++i) {
    open = drips.send("G");
    if (drips.more(0.02) || !open) break;
  }
  EXPECT_LT(since(start), 6);
}

// It asks for much and reads nothing: it is dropped, and others do not notice.
TEST(ServerFaults, SlowReadersAreDropped) {
  ServerOptions options = RunningServer::usual();
  options.http.write_time = server::Seconds(0.5);
  options.http.stream_bytes = size_t{64} << 10;
  const RunningServer server(options);
  Client slow(server.port(), 4096);
  const std::string greedy =
      R"({"prompt": ["a", "b", "c", "d"], "n": 4, "logprobs": 20, "max_tokens": 500, "logit_bias": {"470": -100}, "stream": true})";
  for (int i = 0; i < 8; ++i) slow.send(request_text({.path = "/v1/completions", .body = greedy}));
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 2}}).status, 200);
  EXPECT_TRUE(soon([&] { return server.metric("qkv_cancellations_total") >= 1; }, 30));
  EXPECT_TRUE(soon([&] { return server.metric("qkv_slots_active{model=\"chatty\"}") == 0; }, 5));
}

TEST(ServerFaults, LimitsOfHttp) {
  ServerOptions options = RunningServer::usual();
  options.http.body_bytes = 100'000;
  const RunningServer server(options);
  const auto status = [&](const std::string& text) {
    Client client(server.port());
    client.send(text);
    return client.answer().status;
  };
  const std::string get = "GET /health HTTP/1.1\r\nHost: localhost\r\n", end = "\r\n";
  EXPECT_EQ(status(get + "X: " + std::string(15'000, 'x') + end + end), 200);
  EXPECT_EQ(status(get + "X: " + std::string(17'000, 'x') + end + end), 431);
  EXPECT_EQ(status(get + "X: " + std::string(1'000'000, 'x') + end + end), 431);
  std::string many;
  for (int i = 0; i < 99; ++i) many += "A: b\r\n";
  EXPECT_EQ(status(get + many + end), 200);
  EXPECT_EQ(status(get + many + "A: b\r\n" + end), 431);
  EXPECT_EQ(status("GET /health?" + std::string(8'100, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
  EXPECT_EQ(status("GET /health?" + std::string(8'300, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 414);
  const std::string post = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(status(post + "Content-Length: 100001\r\n\r\n"), 413);
  EXPECT_EQ(status(post + "Content-Length: 100000\r\n\r\n" + std::string(100'000, ' ')), 400) << "it is no JSON";
  // A body in chunks without end is cut at the limit.
  std::string endless = post + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 30; ++i) endless += "2000\r\n" + std::string(0x2000, ' ') + "\r\n";
  EXPECT_EQ(status(endless), 413);
  const std::string chunks = "a\r\n{\"prompt\":\r\n5\r\n \"x\"}\r\n0\r\n\r\n";
  EXPECT_EQ(status(post + "Transfer-Encoding: chunked\r\n\r\n" + chunks), 200);
  for (const char* bad : {"\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00\x01\r\n\r\n",
                          "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
                          "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
                          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    const int answer = status(bad);
    EXPECT_TRUE(answer == 400 || answer == 413) << bad << ": " << answer;
  }
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(ServerFaults, ConnectionsAreKeptAndPipelined) {
  const RunningServer server;
  Client client(server.port());
  const std::string body = R"({"prompt": "x", "max_tokens": 2, "temperature": 0})";
  for (int i = 0; i < 3; ++i) client.send(request_text({.path = "/v1/completions", .body = body}));
  std::string text;
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = client.answer();
    ASSERT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
    const std::string now = answer.json()["choices"][0]["text"];
    EXPECT_TRUE(i == 0 || now == text);
    text = now;
  }
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.answer().status, 403);
  EXPECT_FALSE(client.more());
  // curl waits for 100 Continue before it sends a long body.
  Client waits(server.port());
  waits.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: " +
             std::to_string(body.size()) + "\r\n\r\n");
  ASSERT_TRUE(waits.read_until("100 Continue\r\n\r\n"));
  waits.send(body);
  EXPECT_EQ(waits.answer().status, 200);
}

// A refusal costs no connection if all of its request is there; what has still to come is not waited for.
TEST(ServerFaults, RefusalsKeepConnectionsThatCanGoOn) {
  const RunningServer server;
  const std::string good = request_text({.path = "/v1/completions", .body = R"({"prompt": "x", "max_tokens": 1})"});
  Client client(server.port());
  client.send(request_text({.path = "/v1/nowhere", .body = "GET /health HTTP/1.1"}) +
              request_text({.method = "GET", .path = "/v1/completions"}) + good);
  for (const int status : {404, 405, 200}) {
    const HttpAnswer answer = client.answer();
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
  }
  for (const char* rest :
       {"Content-Length: 50\r\n\r\n{\"prompt\":", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    Client late(server.port());
    late.send(std::string("POST /v1/nowhere HTTP/1.1\r\nHost: localhost\r\n") + rest);
    const HttpAnswer answer = late.answer();
    EXPECT_EQ(answer.status, 404) << rest;
    EXPECT_EQ(answer.headers.at("connection"), "close") << rest;
  }
}

// Everything about the end of a request that another server might read differently.
TEST(ServerFaults, UnusualFramingIsRefusedAndEndsTheConnection) {
  const RunningServer server;
  const std::string head = "POST /v1/completions HTTP/1.", next = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    chunks = "e\r\n{\"prompt\":\"x\"}\r\n0\r\n\r\n";
  const auto answers = [&](const std::string& text) {
    Client client(server.port());
    client.send(text);
    const HttpAnswer first = client.answer();
    return std::pair(first, client.answer(first.headers.at("connection") == "close" ? 5 : 20));
  };
  for (const char* wrong :
       {"1\r\nTransfer-Encoding: identity", "1\r\nTransfer-Encoding: xchunked",
        "1\r\nTransfer-Encoding: chunked, identity", "1\r\nTransfer-Encoding: identity, chunked",
        "1\r\nTransfer-Encoding: gzip, chunked", "1\r\nTransfer-Encoding:", "1\r\nTransfer-Encoding: chunked;q=1",
        "1\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "1\r\nTransfer-Encoding: chunked\r\nContent-Length: 28",
        "1\r\nContent-Length: 28\r\nTransfer-Encoding: chunked",
        "1\r\nContent-Length: 28\r\nTransfer-Encoding: identity", "1\r\nContent-Length: 28\r\nContent-Length: 28",
        "0\r\nTransfer-Encoding: chunked", "0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked"}) {
    const auto [first, second] = answers(head + wrong + "\r\nHost: localhost\r\n\r\n" + chunks + next);
    EXPECT_EQ(first.status, 400) << wrong;
    EXPECT_EQ(first.headers.at("connection"), "close") << wrong;
    EXPECT_EQ(second.status, 0) << wrong << ": what follows was read as a request";
  }
  for (const char* right : {"chunked", "Chunked", "\tchunked "}) {
    const auto [first, second] =
        answers(head + "1\r\nTransfer-Encoding: " + right + "\r\nHost: localhost\r\n\r\n" + chunks + next);
    EXPECT_EQ(first.status, 200) << right;
    EXPECT_EQ(second.status, 200) << right;
  }
}

// More requests at once than are read ahead: they wait in the socket.
TEST(ServerFaults, AnyNumberOfPipelinedRequestsIsAnswered) {
  const RunningServer server;
  constexpr int kRequests = 3000;
  const std::string one = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::string all;
  for (int i = 0; i < kRequests; ++i) all += one;
  ASSERT_GT(all.size(), size_t{100} << 10);
  Client client(server.port());
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(client.answer().status, 200) << i;
}

TEST(ServerFaults, AClientThatEndsItsSideGetsItsAnswers) {
  ServerOptions options = RunningServer::usual({"long"});
  options.room.slots = 1;
  const RunningServer server(options);
  const std::string body = R"({"prompt": "x", "max_tokens": 2, "temperature": 0})",
                    ask = request_text({.path = "/v1/completions", .body = body});
  Client three(server.port());
  three.send(ask + ask + ask);
  three.end_sending();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(three.answer().status, 200) << i;
  EXPECT_FALSE(three.more()) << "the connection ends behind the last answer";
  // One that waits for long is asked whether it is still there, and answered all the same.
  Client running(server.port()), queued(server.port()), stream(server.port());
  running.send(endless_text(true));
  ASSERT_TRUE(running.read_until("data: {"));
  queued.send(ask);
  queued.end_sending();
  ASSERT_TRUE(queued.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
  EXPECT_EQ(server.metric("qkv_queue_waiting{model=\"long\"}"), 1);
  running.leave();
  EXPECT_EQ(queued.answer().status, 200);
  stream.send(request_text({.path = "/v1/completions", .body = R"({"prompt": "x", "max_tokens": 3, "stream": true})"}));
  stream.end_sending();
  EXPECT_TRUE(stream.read_until("[DONE]"));
  // What cannot become a request any more is refused.
  for (const size_t part : {size_t{20}, ask.size() - 5}) {
    Client cut(server.port());
    cut.send(ask.substr(0, part));
    cut.end_sending();
    EXPECT_EQ(cut.answer().status, 400) << part;
  }
}

// A schema that takes a second to be refused.
std::string slow_schema() {
  Json lists = Json::array(), others = Json::array();
  for (int list = 0; list < 3; ++list) {
    Json strings = Json::array(), numbers = Json::array();
    for (int i = 0; i < 60; ++i) {
      strings.push_back({{"type", "string"}, {"maxLength", i}});
      numbers.push_back({{"type", "integer"}, {"maximum", i}});
    }
    lists.push_back({{"anyOf", strings}});
    others.push_back({{"anyOf", numbers}});
  }
  const Json schema = {{"oneOf", {{{"allOf", lists}}, {{"allOf", others}}}}};
  return request_text({.path = "/v1/completions",
                       .body = Json{{"prompt", "x"},
                                    {"max_tokens", 2},
                                    {"response_format",
                                     {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", schema}}}}}}
                                   .dump()});
}

TEST(ServerFaults, SlowSchemasHoldUpNobodyElse) {
  const RunningServer server;
  std::deque<Client> slow;
  for (int i = 0; i < 4; ++i) slow.emplace_back(server.port()).send(slow_schema());
  ASSERT_TRUE(soon([&] { return server.metric("qkv_requests_in_progress") == 5; }));
  const Json small = {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", {{"type", "integer"}}}}}};
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 2}}).status, 200);
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 2}, {"response_format", small}}).status,
            200);
  EXPECT_FALSE(slow.back().more(0)) << "it was answered first";
  // The first is refused in the end, for its schema.
  const HttpAnswer refused = slow.front().answer(60);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.error("param"), "response_format");
  EXPECT_NE(refused.error().find("steps"), std::string::npos) << refused.error();
}

TEST(ServerFaults, ManySlowSchemasLeaveRoomForOthers) {
  const RunningServer server;
  std::deque<Client> slow;
  for (int i = 0; i < 30; ++i) slow.emplace_back(server.port()).send(slow_schema());
  EXPECT_TRUE(soon([&] { return server.metric("qkv_rejections_total") > 0; }, 20));
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 2}}).status, 200);
  EXPECT_EQ(slow.back().answer().status, 429);
}

TEST(ServerFaults, StoppingEndsCompilations) {
  std::deque<Client> slow;
  {
    RunningServer server;
    for (int i = 0; i < 6; ++i) slow.emplace_back(server.port()).send(slow_schema());
    ASSERT_TRUE(soon([&] { return server.metric("qkv_requests_in_progress") == 7; }));
    server.stop();
    for (int i = 5; i >= 2; --i) {
      const HttpAnswer answer = slow[static_cast<size_t>(i)].answer(60);
      EXPECT_EQ(answer.status, 503) << i;
      EXPECT_NE(answer.error().find("stopping"), std::string::npos) << answer.error();
    }
  }
}

TEST(ServerFaults, PingsKeepASilentStreamOpen) {
  ServerOptions options = RunningServer::usual({"long"});
  options.room.slots = 1;
  options.http.ping = server::Seconds(0.05);
  const RunningServer server(options);
  Client busy(server.port()), waits(server.port());
  busy.send(endless_text());
  ASSERT_TRUE(soon([&] { return server.metric("qkv_slots_active{model=\"long\"}") == 1; }));
  waits.send(request_text({.path = "/v1/completions", .body = kLong}));
  EXPECT_TRUE(waits.read_until(": ping\n\n"));
  EXPECT_EQ(waits.received().find("data: {"), std::string::npos) << "nothing was written meanwhile";
  busy.leave();
  EXPECT_TRUE(waits.read_until("[DONE]"));
}

TEST(ServerFaults, StoppingLetsTextsFinishOrSaysWhy) {
  for (const double time : {10.0, 0.0}) {
    ServerOptions options = RunningServer::usual();
    options.drain = server::Seconds(time);
    std::optional<RunningServer> server(options);
    Client stream(server->port()), idle(server->port());
    stream.send(request_text({.path = "/v1/completions", .body = kLong}));
    ASSERT_TRUE(stream.read_until("data: {"));
    server->stop();
    const HttpAnswer answer = stream.answer();
    EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
    const Json last = events_of(answer.body).back();
    if (time > 0) {
      EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
    } else {
      EXPECT_TRUE(last.contains("error") || last["choices"][0]["finish_reason"] == "length") << last.dump();
    }
    const int port = server->port();
    server.reset();
    EXPECT_FALSE(Client(port).connected());
  }
}

TEST(ServerFaults, PrefixesAreNotSharedBetweenKeys) {
  ServerOptions options = RunningServer::usual();
  options.keys = {test::kGoodKey, test::kOtherKey};
  const RunningServer server(options);
  const Json body = {{"prompt", std::vector<int>(100, 7)}, {"max_tokens", 1}, {"temperature", 0}};
  for (const char* key : {test::kGoodKey, test::kOtherKey, test::kGoodKey}) {
    EXPECT_EQ(server.post("/v1/completions", body, key).status, 200);
  }
  // Of the third alone, all but the last token; counts are shown at the end of a pass.
  const auto shared = [&] { return server.metric("qkv_prefix_tokens_total{model=\"chatty\"}", test::kGoodKey); };
  EXPECT_TRUE(soon([&] { return shared() >= 99; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(shared(), 99);
}

// The embedding of token 77 is not a number: texts with it fail, those beside them do not notice.
TEST(ServerFaults, ARequestThatFailsFailsAlone) {
  const RunningServer server(RunningServer::usual({"broken"}));
  const auto ask = [&](int token, bool stream) {
    return server.post("/v1/completions",
                       {{"prompt", {5, token, 6}}, {"max_tokens", 60}, {"seed", 3}, {"stream", stream}});
  };
  const std::string right = ask(7, false).json()["choices"][0]["text"];
  std::vector<std::thread> clients;
  std::atomic<int> good = 0, bad = 0;
  for (int n = 0; n < 8; ++n) {
    clients.emplace_back([&, n] {
      const HttpAnswer answer = ask(n % 2 == 0 ? 7 : 77, n >= 6);
      if (n < 6 && n % 2 == 0) good += answer.json()["choices"][0]["text"] == right ? 1 : 0;
      if (n < 6 && n % 2 == 1) bad += answer.status == 500 && answer.error("type") == "server_error" ? 1 : 0;
      if (n == 6) good += answer.body.find("error") == std::string::npos ? 1 : 0;
      if (n == 7) bad += events_of(answer.body).back().contains("error") && answer.body.ends_with("[DONE]\n\n") ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 4);
  EXPECT_EQ(bad, 4);
}

TEST(ServerFaults, MemoryIsPlannedBeforeAModelIsLoaded) {
  ServerOptions options = RunningServer::usual({"chatty", "plain"});
  options.room.slots = 256;
  options.room.queue = 1;
  options.models.push_back(test::TinyModels::get().path("wide"));
  Server server(options);
  try {
    server.run();
    FAIL() << "a cache of petabytes was made";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("serving needs"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("wide"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("GiB are free"), std::string::npos) << error.message();
  }
  EXPECT_FALSE(server.ready());
}

}  // namespace
}  // namespace qkv
