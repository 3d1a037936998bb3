// What a look asks for beside the text, cuts and attributions, and its limits.
#include "inspect/cut/ablation.h"
#include "inspect/look/attribution.h"
#include "inspect/report/look_report.h"
#include "server/look/look_json.h"
#include "server/look_support.h"

namespace qkv {
namespace look_limits_test {

using namespace test;

constexpr const char* kRoute = kLookRoute;

TEST(ServerLook, ACutIsTheTextWithoutTheHeads) {
  const RunningServer server(looking());
  const Beside beside;
  const std::vector<int32_t> prompt = some_prompt(70, 3);  // longer than a page, so that prefixes could be shared
  const Json before = server.post(kRoute, greedy(prompt, 12)).json();
  const Json answer = server.post(kRoute, greedy(prompt, 12, {{"cut", {"L0H2", "L1H0"}}})).json();
  const Json& cut = answer["look"]["choices"][0]["cut"];
  CutProbe probe(beside.model.spec(),
                 {.heads = {{Stack::decoder, 0, 2}, {Stack::decoder, 1, 0}}, .ablation = Ablation::zero});
  const std::vector<int32_t> right = beside.written(prompt, 12, &probe), whole = beside.written(prompt, 12);
  EXPECT_NE(right, whole) << "the heads matter";
  EXPECT_EQ(cut["ids"], Json(std::vector<int32_t>(right.begin() + 70, right.end())));
  EXPECT_EQ(cut["heads"], Json({"L0H2", "L1H0"}));
  EXPECT_EQ(cut["finish_reason"], "length");
  EXPECT_FALSE(answer["look"]["choices"][0].contains("tokens"));
  EXPECT_EQ(answer["choices"], before["choices"]);
  EXPECT_EQ(server.post(kRoute, greedy(prompt, 12)).json()["choices"], before["choices"])
      << "the cut text left its keys and values to others";
}

// A text with a head cut may reach a token whose embedding is broken where the text itself does not.
TEST(ServerLook, ACutThatFailsFailsAlone) {
  ServerOptions options = RunningServer::usual({"broken"});
  options.room.look.allowed = true;
  const RunningServer server(options);
  bool found = false;
  for (int seed = 0; seed < 300 && !found; ++seed) {
    const HttpAnswer answer = server.post(kRoute, {{"prompt", {5, 6, 7}},
                                                   {"max_tokens", 30},
                                                   {"seed", seed},
                                                   {"temperature", 3},
                                                   {"look", {{"cut", {"L0", "L1"}}}}});
    if (answer.status != 200) continue;  // the text itself reached it
    const Json cut = answer.json()["look"]["choices"][0]["cut"];
    found = cut.contains("error");
    EXPECT_EQ(cut["heads"].size(), static_cast<size_t>(kHeads));
  }
  EXPECT_TRUE(found);
}

TEST(ServerLook, AttributionsHaveAQueueOfTheirOwn) {
  const Beside beside;
  server::AttributionQueue queue(beside.model, 3);
  std::shared_ptr<const void> held = queue.reserve(2);
  EXPECT_THROW(queue.reserve(2), QueueFull);
  const std::shared_ptr<const void> one = queue.reserve(1);
  EXPECT_THROW(queue.reserve(1), QueueFull);
  held.reset();
  EXPECT_NO_THROW(queue.reserve(2));

  ServerOptions options = looking(1);
  options.room.queue = 5;
  const RunningServer server(options);
  Client client(server.port());
  Json body = greedy({5, 6}, 500, {{"attribute", Json::object()}});
  body["prompt"] = {{5, 6}, {7, 8}, {9, 10}, {11, 12}, {13, 14}, {15, 16}};
  body["stream"] = true;
  client.send(request_text({.path = kRoute, .body = body.dump()}));
  // Once one has ended there is room for a text more, but all six have an attribution to come.
  ASSERT_TRUE(client.read_until("\"finish_reason\":\"length\""));
  const HttpAnswer refused = server.post(kRoute, greedy({5, 6}, 2, {{"attribute", Json::object()}}));
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.error().find("attributions"), std::string::npos) << refused.error();
}

TEST(ServerLook, AnAttributionIsThatOfTheTextAlone) {
  const RunningServer server(looking());
  const Beside beside;
  const std::vector<int32_t> prompt = some_prompt(12, 40);
  const std::vector<int32_t> ids = beside.written(prompt, 6);
  const auto check = [&](const Json& asked, int64_t row, std::optional<int32_t> target) {
    const Json got =
        server.post(kRoute, greedy(prompt, 6, {{"attribute", asked}})).json()["look"]["choices"][0]["attribute"];
    ASSERT_FALSE(got.contains("error")) << got.dump();
    const TokenText text{.ids = std::vector<int32_t>(ids.begin(), ids.begin() + row + 1)};
    const OpenModel& model = beside.model;
    const Attributor attributor(model.model(), model.engine(), model.precision(), text, row);
    EXPECT_EQ(got["position"], row);
    EXPECT_EQ(got["for"]["id"], target.value_or(ids[static_cast<size_t>(row + 1)]));
    const Attribution right = attributor.of(got["for"]["id"], got["against"]["id"]);
    ASSERT_EQ(got["parts"].size(), right.parts.size());
    for (size_t i = 0; i < right.parts.size(); ++i) {
      EXPECT_EQ(got["parts"][i]["name"], right.parts[i].name);
      EXPECT_DOUBLE_EQ(got["parts"][i]["share"].get<double>(), right.parts[i].share);
    }
    EXPECT_DOUBLE_EQ(got["difference"].get<double>(), right.difference);
  };
  check(Json::object(), 11, std::nullopt);
  check({{"position", 14}, {"against", 7}}, 14, std::nullopt);
  check({{"position", 3}, {"for", 100}, {"against", 101}}, 3, 100);
  const Json none = server.post(kRoute, greedy(prompt, 6, {{"attribute", {{"position", 30}}}}))
                        .json()["look"]["choices"][0]["attribute"];
  EXPECT_TRUE(none.contains("error")) << none.dump();
}

// Of a model in bf16: what a request and the page are told are the numbers of qkv look, in f32 unless bf16 was asked for.
TEST(ServerLook, IsInF32UnlessTheServerWasToldOtherwise) {
  const std::string path = TinyModels::get().path("half");
  const TokenText text{.ids = some_prompt(12, 40)};
  std::vector<double> differences;
  for (const std::optional<Precision> asked : {std::optional<Precision>(), std::optional(Precision::bf16())}) {
    ServerOptions options = RunningServer::usual({"half"});
    options.room.look.allowed = true;
    options.open.precision = asked;
    const RunningServer server(options);
    const OpenModel model(path, {.precision = asked.value_or(Precision::f32()), .threads = 1});
    const Json got = server.post(kRoute, greedy(text.ids, 1, {{"attribute", {{"for", 100}, {"against", 101}}}}))
                         .json()["look"]["choices"][0]["attribute"];
    const Attributor attributor(model.model(), model.engine(), model.precision(), text, 11);
    EXPECT_DOUBLE_EQ(got.at("difference").get<double>(), attributor.of(100, 101).difference) << got.dump();
    differences.push_back(got.at("difference").get<double>());
    const Json report = server.post("/page/look", {{"ids", text.ids}}).json();
    Looked seen = look_at(model.model(), model.engine(), text, {.precision = model.precision()});
    Ladder ladder = climb(model.model(), model.engine(), seen, {.precision = model.precision()});
    const LookedAt at(&model.tokenizer(), model.spec(), std::move(seen), std::move(ladder));
    EXPECT_EQ(report.at("ladder"), look_parts(at).at("ladder"));
  }
  EXPECT_NE(differences[0], differences[1]);
}

TEST(ServerLook, IsRefusedUnlessAllowed) {
  const RunningServer server;
  const Json look = Json::object();
  const std::pair<const char*, Json> routes[] = {
      {kRoute, greedy({5, 6}, 2, look)},
      {"/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"look", look}}},
      {"/v1/responses", {{"input", "x"}, {"look", look}}}};
  for (const auto& [path, body] : routes) {
    const HttpAnswer refused = server.post(path, body);
    EXPECT_EQ(refused.status, 403) << path;
    EXPECT_EQ(refused.error("param"), "look") << path;
    EXPECT_NE(refused.error().find("--look"), std::string::npos) << refused.error();
  }
  EXPECT_EQ(server.post(kRoute, greedy({5, 6}, 2)).status, 200);
}

TEST(ServerLook, WrongFieldsAreNamed) {
  const RunningServer server(looking());
  const std::pair<Json, const char*> wrong[] = {
      {true, "look"},
      {{{"head", "all"}}, "look.head"},
      {{{"heads", "some"}}, "look.heads"},
      {{{"heads", {"L9H0"}}}, "look.heads"},
      {{{"heads", {"L0H4"}}}, "look.heads"},
      {{{"heads", {3}}}, "look.heads"},
      {{{"heads", Json::array()}}, "look.heads"},
      {{{"statistics", {"entropy", "mood"}}}, "look.statistics"},
      {{{"statistics", 5}}, "look.statistics"},
      {{{"maps", "top9"}}, "look.maps"},
      {{{"ladder", 1}}, "look.ladder"},
      {{{"frames", "yes"}}, "look.frames"},
      {{{"cut", {"L0H0,L0H1"}}}, "look.cut"},
      {{{"cut", "L0H0"}}, "look.cut"},
      {{{"attribute", 1}}, "look.attribute"},
      {{{"attribute", {{"row", 1}}}}, "look.attribute.row"},
      {{{"attribute", {{"for", 608}}}}, "look.attribute.for"},
      {{{"attribute", {{"for", 5}, {"against", 5}}}}, "look.attribute.against"},
  };
  for (const char* field : {"for", "against"}) {
    const std::string param = std::string("look.attribute.") + field;
    for (const Json& bad :
         {Json(-1), Json(608), Json(INT64_MAX), Json(UINT64_MAX), Json(1.5), Json(1e308), Json(-1e308), Json(""),
          Json("more than one token"), Json(true), Json::array(), Json::object()}) {
      const HttpAnswer answer = server.post(kRoute, greedy({5, 6}, 2, {{"attribute", {{field, bad}}}}));
      ASSERT_EQ(answer.status, 400) << field << " " << bad << answer.body;
      EXPECT_EQ(answer.error("param"), param) << bad;
    }
    for (const Json& good : {Json(0), Json(607), Json(nullptr)}) {
      EXPECT_EQ(server.post(kRoute, greedy({5, 6}, 2, {{"attribute", {{field, good}}}})).status, 200) << field << good;
    }
  }
  for (const auto& [look, param] : wrong) {
    const HttpAnswer answer = server.post(kRoute, greedy({5, 6}, 2, look));
    EXPECT_EQ(answer.status, 400) << look.dump();
    EXPECT_EQ(answer.error("param"), param) << look.dump();
  }
  const HttpAnswer embedding = server.post("/v1/embeddings", {{"input", "x"}, {"look", Json::object()}});
  EXPECT_EQ(embedding.error("param"), "look");
}

TEST(ServerLook, StopsAtItsBytes) {
  ServerOptions options = looking();
  options.room.look.bytes = 1024;
  const RunningServer server(options);
  // 8 heads x 1 number x 4 bytes: 32 tokens.
  const Json body = greedy(some_prompt(5, 1), 40, {{"statistics", {"entropy"}}});
  const Json choice = server.post(kRoute, body).json()["look"]["choices"][0];
  EXPECT_EQ(choice["tokens"].size(), 32U);
  EXPECT_EQ(choice["truncated"], true);
  const Json within = server.post(kRoute, greedy(some_prompt(5, 1), 32, {{"statistics", {"entropy"}}})).json();
  EXPECT_EQ(within["look"]["choices"][0]["truncated"], false);
  EXPECT_EQ(within["look"]["choices"][0]["tokens"].size(), 32U);
  Json two = body;
  two["n"] = 2;
  const Json texts = server.post(kRoute, two).json()["look"]["choices"];
  ASSERT_EQ(texts.size(), 2U);
  for (const Json& text : texts) EXPECT_EQ(text["tokens"].size(), 16U);
  EXPECT_EQ(server.post(kRoute, greedy({5, 6}, 2, {{"maps", "thumbnails"}})).error("param"), "look.maps");
  EXPECT_EQ(server.post(kRoute, greedy({5, 6}, 2, {{"maps", "thumbnails"}, {"heads", {"L0H0"}}})).status, 200);
}

TEST(ServerLook, MapsHaveALength) {
  const server::LookRequest look{.heads = {{}}, .maps = server::LookMaps::full, .bytes = 1 << 20};
  EXPECT_NO_THROW(server::check_look(look, server::kMostMapTokens));
  EXPECT_THROW(server::check_look(look, server::kMostMapTokens + 1), server::ApiError);
}

TEST(ServerLook, NumbersAreShort) {
  EXPECT_EQ(server::short_double(0.1F), 0.1);
  EXPECT_EQ(static_cast<float>(server::short_double(1.0F / 3)), 1.0F / 3);
  EXPECT_EQ(server::short_double(0), 0.0);
}

}  // namespace look_limits_test
}  // namespace qkv
