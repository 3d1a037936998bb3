// Every route with and without a key; hosts, origins, methods; what the texts are.
#include <set>

#include "server/test_server.h"

namespace qkv {
namespace {

using test::Ask;
using test::HttpAnswer;
using test::RunningServer;

struct RouteCase {
  const char *method, *path, *body;
  bool open;   // needs no key
  int status;  // with a good key
};

const std::vector<RouteCase>& all_routes() {
  static const std::vector<RouteCase> routes{
      {"GET", "/", "", true, 200},
      {"GET", "/page", "", true, 200},
      {"GET", "/health", "", true, 200},
      {"GET", "/metrics", "", false, 200},
      {"GET", "/v1/models", "", false, 200},
      {"GET", "/v1/models/chatty", "", false, 200},
      {"GET", "/v1/models/absent", "", false, 404},
      {"POST", "/v1/completions", R"({"model": "chatty", "prompt": "one two", "max_tokens": 3})", false, 200},
      {"POST", "/v1/chat/completions",
       R"({"model": "chatty", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3})", false, 200},
      {"POST", "/v1/responses", R"({"model": "chatty", "input": "hi", "max_output_tokens": 3})", false, 200},
      {"POST", "/v1/embeddings", R"({"model": "chatty", "input": "one two"})", false, 200},
      {"POST", "/v1/translate", R"({"model": "translator", "input": "one two", "max_tokens": 3})", false, 200}};
  return routes;
}

// A route that is added to the server has to be added to all_routes().
TEST(ServerRoutes, EveryRouteOfTheServerIsTested) {
  std::set<std::string> tested, routes;
  for (const RouteCase& route : all_routes()) tested.insert(route.path);
  const std::string text = read_file(test::golden("..") / ".." / "src" / "server" / "server.cpp", 1 << 20);
  for (const std::string& name : test::quoted_names(text)) {
    const bool path = name.starts_with('/') && name.size() > 1 &&
                      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789/_") == name.npos;
    if (path) routes.insert(name);
  }
  EXPECT_GE(routes.size(), 8U);
  for (const std::string& route : routes) EXPECT_TRUE(tested.contains(route)) << route;
}

TEST(ServerRoutes, EachWithNoKeyABadKeyAndAGoodKey) {
  ServerOptions options = RunningServer::usual({"chatty", "translator"});
  options.keys = {test::kGoodKey, test::kOtherKey};
  const RunningServer server(options);
  for (const RouteCase& route : all_routes()) {
    const auto status = [&](const std::string& key) {
      return server.ask({.method = route.method, .path = route.path, .body = route.body, .key = key}).status;
    };
    EXPECT_EQ(status(""), route.open ? route.status : 401) << route.path;
    EXPECT_EQ(status("key-of-the-tests-0003"), route.open ? route.status : 401) << route.path;
    EXPECT_EQ(status("key-of-the-tests-000"), route.open ? route.status : 401) << route.path;
    EXPECT_EQ(status(test::kGoodKey), route.status) << route.path;
    EXPECT_EQ(status(test::kOtherKey), route.status) << route.path;
  }
  const HttpAnswer refused = server.get("/v1/models");
  EXPECT_EQ(refused.error("type"), "authentication_error");
  EXPECT_EQ(refused.error("code"), "invalid_api_key");
  EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
}

TEST(ServerRoutes, WrongMethodsPathsHostsAndOrigins) {
  ServerOptions options = RunningServer::usual();
  options.origins = {.hosts = {"llm.example.org"}, .cors = {"https://app.example.org"}};
  const RunningServer server(options);
  const auto status = [&](Ask ask) { return server.ask(ask).status; };
  EXPECT_EQ(status({.method = "GET", .path = "/v1/completions"}), 405);
  EXPECT_EQ(status({.method = "DELETE", .path = "/health"}), 405);
  EXPECT_EQ(status({.method = "GET", .path = "/nowhere"}), 404);
  EXPECT_EQ(status({.method = "GET", .path = "/v1/../health"}), 404);
  EXPECT_EQ(status({.method = "HEAD", .path = "/health"}), 200);

  const auto host = [&](const std::string& name) { return status({.method = "GET", .path = "/health", .host = name}); };
  for (const char* good : {"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8080", "[::1]:80", "10.1.2.3",
                           "llm.example.org", "LLM.example.org:443", "llm.example.org."}) {
    EXPECT_EQ(host(good), 200) << good;
  }
  for (const char* bad : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example",
                          "[::1", "localhost:80:80x", ":80"}) {
    EXPECT_EQ(host(bad), 403) << bad;
  }
  EXPECT_EQ(status({.method = "GET", .path = "/health", .host = ""}), 403) << "no Host at all";
  EXPECT_EQ(status({.method = "GET", .path = "/health", .headers = "Host: evil.example\r\n"}), 403) << "two of them";

  const auto origin = [&](const std::string& from, const char* method = "GET") {
    return server.ask(
        {.method = method, .path = "/v1/models", .headers = "Origin: " + from + "\r\n", .host = "localhost:81"});
  };
  EXPECT_EQ(origin("http://localhost:81").status, 200);
  for (const char* foreign :
       {"http://localhost:82", "http://evil.example", "null", "", "file://", "http://localhost:81.evil"}) {
    EXPECT_EQ(origin(foreign).status, 403) << foreign;
  }
  const HttpAnswer allowed = origin("https://app.example.org");
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.headers.at("access-control-allow-origin"), "https://app.example.org");
  EXPECT_FALSE(origin("http://localhost:81").headers.contains("access-control-allow-origin"));
  EXPECT_EQ(origin("https://app.example.org", "OPTIONS").status, 204);
  EXPECT_EQ(origin("http://evil.example", "OPTIONS").status, 403);
  EXPECT_EQ(origin("http://localhost:81", "OPTIONS").status, 403) << "CORS is for other origins";
}

// A server that lets every page ask still knows its own, which may do more.
TEST(ServerRoutes, TheServersOwnPageIsItselfWhereAllMayAsk) {
  const server::OriginRules all{.cors = {"*"}};
  const auto judged = [&](const std::string& origin) {
    return server::judge_origin({.headers = {{"Host", "localhost:81"}, {"Origin", origin}}}, all);
  };
  EXPECT_EQ(judged("http://localhost:81"), server::OriginIs::same);
  EXPECT_EQ(judged("http://localhost:82"), server::OriginIs::allowed);
  EXPECT_EQ(judged("https://app.example.org"), server::OriginIs::allowed);
}

TEST(ServerRoutes, ThePageHasAStrictPolicy) {
  const RunningServer server;
  const HttpAnswer page = server.get("/");
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  const std::string policy = page.headers.at("content-security-policy");
  EXPECT_NE(policy.find("default-src 'none'"), policy.npos);
  EXPECT_EQ(policy.find("unsafe"), policy.npos);
  EXPECT_NE(policy.find("script-src 'sha256-"), policy.npos) << policy;
  EXPECT_EQ(page.body.find("onclick=\""), page.body.npos);
}

TEST(ServerRoutes, ModelsSayWhatTheyCanDo) {
  const RunningServer server(RunningServer::usual({"chatty", "plain", "reader", "translator"}));
  std::map<std::string, Json> can;
  const Json list = server.get("/v1/models").json();
  for (const Json& model : list["data"]) can[model["id"]] = model["capabilities"];
  EXPECT_EQ(can["chatty"], Json({"completions", "chat", "embeddings"}));
  EXPECT_EQ(can["plain"], Json({"completions", "embeddings"}));
  EXPECT_EQ(can["reader"], Json({"embeddings"}));
  EXPECT_EQ(can["translator"], Json({"translate", "embeddings"}));

  const Json chat = {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"max_tokens", 2}};
  const auto with = [](Json body, const char* model) {
    body["model"] = model;
    return body;
  };
  EXPECT_EQ(server.post("/v1/chat/completions", with(chat, "chatty")).status, 200);
  for (const char* model : {"plain", "reader", "translator"}) {
    const HttpAnswer answer = server.post("/v1/chat/completions", with(chat, model));
    EXPECT_EQ(answer.status, 400) << model << answer.body;
  }
  EXPECT_EQ(server.post("/v1/chat/completions", with(chat, "absent")).error("code"), "model_not_found");
  EXPECT_EQ(server.post("/v1/chat/completions", with(chat, "absent")).status, 404);
  EXPECT_EQ(server.post("/v1/chat/completions", chat).error("param"), "model") << "which of four?";
  EXPECT_EQ(server.post("/v1/translate", {{"model", "chatty"}, {"input", "x"}}).status, 400);
  for (const char* model : {"chatty", "plain", "reader", "translator"}) {
    const Json made = server.post("/v1/embeddings", {{"model", model}, {"input", {"the cat", "sat on"}}}).json();
    ASSERT_EQ(made["data"].size(), 2U) << model;
    double square = 0;
    for (const double x : made["data"][1]["embedding"]) square += x * x;
    EXPECT_NEAR(square, 1, 1e-5) << model;
    EXPECT_NE(made["data"][0]["embedding"], made["data"][1]["embedding"]) << model;
  }
}

TEST(ServerRoutes, HealthIsNotReadyBeforeTheModelsAreLoaded) {
  ServerOptions options = RunningServer::usual();
  Server server(options);
  test::Client client(server.port());
  client.send(test::request_text({.method = "GET", .path = "/health"}));
  EXPECT_EQ(client.answer().status, 503);
  client.send(test::request_text({.path = "/v1/completions", .body = R"({"prompt": "x"})"}));
  const HttpAnswer early = client.answer();
  EXPECT_EQ(early.status, 503);
  EXPECT_TRUE(early.headers.contains("retry-after"));
  // The port is taken; a second server says so.
  options.http.port = server.port();
  EXPECT_THROW(Server second(options), Error);
}

}  // namespace
}  // namespace qkv
