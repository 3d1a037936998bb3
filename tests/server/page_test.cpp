// The live page: its file, its routes, and the arithmetic that the page shows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "inspect/look/embedding_update.h"
#include "inspect/look/worth_telling.h"
#include "inspect/report/look_report.h"
#include "open/open_model.h"
#include "server/test_server.h"

namespace qkv {
namespace {

using test::HttpAnswer;
using test::RunningServer;
using test::SharedServers;

constexpr const char* kStory = "one two three one two";

const RunningServer& page_server() {
  static const RunningServer* const server =
      SharedServers::start(RunningServer::usual({"plain", "translator", "reader"}));
  return *server;
}

HttpAnswer page_post(const std::string& path, const Json& body) {
  return page_server().post("/page/" + path, body);
}

Json page_json(const std::string& path, const Json& body) {
  const HttpAnswer answer = page_post(path, body);
  EXPECT_EQ(answer.status, 200) << path << " " << body.dump() << "\n" << answer.body.substr(0, 600);
  return answer.status == 200 ? answer.json() : Json::object();
}

std::vector<double> numbers_of(const Json& list) {
  return list.get<std::vector<double>>();
}

TEST(Page, FileHasTheTokenAndAPolicyOfHashes) {
  const HttpAnswer page = page_server().get("/page");
  EXPECT_EQ(page.status, 200);
  const size_t at = page.body.find("\"token\":\"");
  ASSERT_NE(at, page.body.npos);
  const std::string token = page.body.substr(at + 9, 64);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), token.npos) << token;
  const std::string policy = page.headers.at("content-security-policy");
  EXPECT_NE(policy.find("script-src 'sha256-"), policy.npos) << policy;
  EXPECT_NE(policy.find("style-src 'sha256-"), policy.npos) << policy;
  EXPECT_EQ(policy.find("unsafe"), policy.npos) << policy;
}

// Once the first look is made, the page comes with it: in the browser's language, with the answer and the models.
TEST(Page, FileComesWithTheFirstLook) {
  const RunningServer server(RunningServer::usual({"plain"}));
  const auto first = [&](const std::string& language) {
    Json report;
    for (int i = 0; i < 400 && !report.contains("ladder"); ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const std::string page =
          server.ask({.method = "GET", .path = "/", .headers = "Accept-Language: " + language + "\r\n"}).body;
      const std::string mark = "id=\"report\">";
      const size_t begin = page.find(mark) + mark.size();
      report = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
    }
    return report;
  };
  const Json english = first("en-GB,en;q=0.9"), chinese = first("zh-CN");
  for (const Json& report : {english, chinese}) {
    EXPECT_EQ(report.at("report"), "live");
    EXPECT_EQ(report.at("model"), "plain");
    EXPECT_EQ(report.at("models").at(0).at("name"), "plain");
    EXPECT_EQ(report.at("models").at(0).at("examples").size(), 4U);
    EXPECT_TRUE(report.contains("answer"));
    const Json asked = server.post("/page/look", {{"text", report.at("title")}}).json();
    for (const char* part : {"tokens", "ladder", "story", "next"}) EXPECT_EQ(report.at(part), asked.at(part)) << part;
  }
}

TEST(Page, ModelsCanBeAddedWhileItRuns) {
  RunningServer server(RunningServer::usual({"plain"}));
  server.server().show_model("deep", test::TinyModels::get().path("deep"));
  server.server().show_model("deep", "/none");  // the name is taken
  Json models;
  for (int i = 0; i < 200 && models.size() != 2; ++i) {
    models = server.get("/page/models").json().at("models");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[1].at("facts").at("layers"), 4);
  EXPECT_EQ(server.post("/page/look", {{"model", "deep"}, {"text", kStory}}).status, 200);
}

TEST(Page, ListsTheModelsWithTheirFacts) {
  const Json models = page_server().get("/page/models").json().at("models");
  ASSERT_EQ(models.size(), 3U);
  EXPECT_EQ(models[0].at("name"), "plain");
  EXPECT_EQ(models[0].at("facts").at("layers"), 2);
  EXPECT_EQ(models[0].at("facts").at("heads"), 4);
  EXPECT_EQ(models[0].at("facts").at("kv_heads"), 2);
  EXPECT_EQ(models[1].at("kind"), "encoder-decoder");
}

TEST(Page, LookIsTheReportOfQkvLook) {
  const Json report = page_json("look", {{"text", kStory}, {"token", 3}});
  const OpenModel model(test::TinyModels::get().path("plain"), {.precision = Precision::f32(), .threads = 1});
  Looked seen = look_at(model.model(), model.engine(), model.encode(kStory), {.token = 3});
  Ladder ladder = climb(model.model(), model.engine(), seen);
  LookedAt at(&model.tokenizer(), model.spec(), std::move(seen), std::move(ladder));
  at.next = next_tokens(model.model(), model.engine(), at.seen, Precision::f32());
  const Json expected = look_report(
      at, {.model = "plain", .title = kStory, .made_with = "qkv look plain '" + std::string(kStory) + "' --token 3"});
  for (const char* part : {"tokens", "ladder", "heads", "story", "next", "facts", "title", "report", "made_with"}) {
    EXPECT_EQ(report.at(part), expected.at(part)) << part;
  }
}

TEST(Page, CandidatesGiveAnyTemperature) {
  const Json next = page_json("look", {{"text", kStory}}).at("next");
  double sum = next.at("rest").get<double>();
  for (const Json& one : next.at("candidates")) {
    sum += one.at("p").get<double>();
    EXPECT_NEAR(one.at("p").get<double>(), std::exp(one.at("logit").get<double>() - next.at("lse").get<double>()),
                1e-4);
  }
  EXPECT_NEAR(sum, 1, 1e-3);
  EXPECT_EQ(next.at("candidates").size(), 256U);
}

TEST(Page, CutHeadsChangeWhatIsSeenAndWritten) {
  const Json whole = page_json("look", {{"text", kStory}}),
             cut = page_json("look", {{"text", kStory}, {"cut", {"L0"}}});
  EXPECT_NE(whole.at("ladder"), cut.at("ladder"));
  EXPECT_EQ(cut.at("cut").size(), 4U);
  const Json effect = page_json("cut", {{"text", kStory}, {"cut", {"L0", "L1"}}, {"max_tokens", 8}});
  EXPECT_NE(effect.at("next").at("before"), effect.at("next").at("after"));
  EXPECT_LE(effect.at("low").get<double>(), effect.at("delta").get<double>());
  EXPECT_LE(effect.at("delta").get<double>(), effect.at("high").get<double>());
  EXPECT_GT(effect.at("n").get<int64_t>(), 1000);
}

TEST(Page, RolesAreMeasuredInTheBackground) {
  page_json("look", {{"text", kStory}});
  Json roles;
  for (int i = 0; i < 400; ++i) {
    roles = page_json("roles", Json::object());
    if (roles.at("state") != "measuring" && roles.at("labels") == "ready") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_EQ(roles.at("state"), "ready");
  EXPECT_EQ(roles.at("labels"), "ready");
  EXPECT_EQ(roles.at("heads").size(), 8U);
  EXPECT_TRUE(page_json("look", {{"text", kStory}}).at("heads").at(0).contains("roles"));
}

// x W_Q is q, q k / sqrt(d) the score, and so on: with the numbers and weights that the page is given.
TEST(Page, FormulasOfTheStoryAreItsNumbers) {
  for (const int layer : {0, 1}) {
    const Json asked{{"text", kStory}, {"token", 4}, {"layer", layer}, {"head", 3}};
    const Json story = page_json("story", asked);
    EXPECT_TRUE(story.at("plain").get<bool>());
    for (const auto& [name, far] : story.at("checks").items()) EXPECT_LT(far.get<double>(), 2e-5) << name;
    for (const char* name : {"q", "k", "v", "scores", "z", "out", "mid", "mlp_pre", "mlp_out", "post"}) {
      EXPECT_TRUE(story.at("checks").contains(name)) << name;
    }
    const std::vector<double> x = numbers_of(story.at("norm").at("values"));
    const Json column = page_json("weight", {{"matrix", "q"}, {"layer", layer}, {"head", 3}, {"columns", {2, 3}}});
    EXPECT_EQ(column.at("shape"), (Json{32, 8}));
    double q = 0;
    for (size_t i = 0; i < x.size(); ++i) q += x[i] * column.at("values")[i][0].get<double>();
    EXPECT_NEAR(q, story.at("q").at("linear")[2].get<double>(), 1e-5);
    double sum = 0;
    const std::vector<double> scores = numbers_of(story.at("scores")), shares = numbers_of(story.at("pattern"));
    for (size_t j = 0; j < shares.size(); ++j) {
      EXPECT_NEAR(shares[j], std::exp(scores[j] - story.at("lse").get<double>()), 1e-5);
      sum += shares[j];
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_EQ(story.contains("final"), layer == 1);
  }
}

std::vector<float> cells_of_frame(const HttpAnswer& answer, std::array<uint32_t, 8>& head) {
  EXPECT_EQ(answer.status, 200) << answer.body.substr(0, 300);
  std::memcpy(head.data(), answer.body.data(), sizeof head);
  std::vector<float> cells((answer.body.size() - sizeof head) / sizeof(float));
  std::memcpy(cells.data(), answer.body.data() + sizeof head, cells.size() * sizeof(float));
  return cells;
}

// A step along the gradient of one embedding changes the loss by its squared length; every use of the row counts.
TEST(Page, AnEmbeddingsUpdateIsTheSlopeOfTheLoss) {
  OpenModel model(test::TinyModels::get().path("plain"), {.precision = Precision::f32(), .threads = 1});
  const TokenText text = model.encode(kStory);
  const EmbeddingUpdate found = embedding_update(model.own_model(), model.engine(), text, 2, Precision::f32());
  EXPECT_EQ(found.id, text.ids[2]);
  EXPECT_EQ(found.uses, std::ranges::count(text.ids, found.id));
  Param* embed = nullptr;
  for (auto& [name, weight] : model.own_model().weights()) {
    EXPECT_FALSE(weight.trainable) << name;
    EXPECT_FALSE(weight.gradient().defined()) << name;
    if (name == "embed") embed = &weight;
  }
  ASSERT_NE(embed, nullptr);
  Arena arena(model.engine().device());
  Context cx = model.engine().context(arena, Precision::f32());
  const auto loss_at = [&](double along) {
    auto* row = embed->writable(cx).as<float>() + static_cast<size_t>(found.id) * found.row.size();
    for (size_t j = 0; j < found.row.size(); ++j) {
      row[j] = static_cast<float>(static_cast<double>(found.row[j]) + along * static_cast<double>(found.gradient[j]));
    }
    embed->updated();
    Reader reader(model.model(), model.engine(), {});
    const std::vector<float> losses = reader.losses({&text, 1}).front();
    return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  };
  double squares = 0;
  for (const float g : found.gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  ASSERT_GT(squares, 0);
  constexpr double kStep = 1e-2;
  EXPECT_NEAR((loss_at(kStep) - loss_at(-kStep)) / (2 * kStep), squares, 0.02 * squares);
  EXPECT_NEAR(loss_at(0), found.loss, 1e-5);

  const Json told = page_json("update", {{"text", kStory}, {"token", 2}});
  EXPECT_EQ(told.at("id"), found.id);
  const std::vector<double> gradient = numbers_of(told.at("gradient"));
  ASSERT_EQ(gradient.size(), found.gradient.size());
  for (size_t j = 0; j < gradient.size(); ++j) EXPECT_NEAR(gradient[j], found.gradient[j], 1e-6);
}

// Asked for the story alone, there are no heads to send again.
TEST(Page, TheStoryAlone) {
  const Json told = page_json("look", {{"text", kStory}, {"token", 1}, {"only", "story"}});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.at("story"), page_json("look", {{"text", kStory}, {"token", 1}}).at("story"));
}

TEST(Page, TilesAreThePattern) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "one two three ";
  const OpenModel model(test::TinyModels::get().path("plain"), {.precision = Precision::f32(), .threads = 1});
  const Looked seen = look_at(model.model(), model.engine(), model.encode(text));
  const SeenAttention& a = seen.at({Stack::decoder, 1});
  ASSERT_GT(a.queries, 64);
  std::array<uint32_t, 8> head{};
  const HttpAnswer tile =
      page_post("tile", {{"text", text}, {"head", "L1H2"}, {"rows", {30, 60}}, {"columns", {10, 50}}});
  const std::vector<float> cells = cells_of_frame(tile, head);
  EXPECT_EQ(head, (std::array<uint32_t, 8>{0x54564B51, 1, 30, 40, 30, 10, 1, static_cast<uint32_t>(a.keys)}));
  ASSERT_EQ(cells.size(), 1200U);
  for (size_t i = 0; i < cells.size(); ++i) {
    const auto row = static_cast<int64_t>(30 + i / 40), key = static_cast<int64_t>(10 + i % 40);
    EXPECT_NEAR(cells[i], a.weight(row, 2, key), 1e-5) << row << " " << key;
  }
  const std::vector<float> pooled = cells_of_frame(page_post("overview", {{"text", text}, {"head", "L1H2"}}), head);
  EXPECT_LE(head[2], 256U);
  double sum = 0;
  for (const float cell : pooled) sum += static_cast<double>(cell);
  EXPECT_NEAR(sum, head[2], 1e-3);  // every row adds up to 1
}

TEST(Page, ErrorsNameTheField) {
  const auto fails = [](const std::string& path, const Json& body, int status, const std::string& param) {
    const HttpAnswer answer = page_post(path, body);
    EXPECT_EQ(answer.status, status) << path << " " << body.dump() << answer.body;
    EXPECT_EQ(answer.error("param"), param) << path << " " << body.dump();
  };
  fails("look", {{"model", "<b>none</b>"}, {"text", "a"}}, 404, "model");
  fails("look", Json::object(), 400, "text");
  fails("look", {{"text", ""}}, 400, "text");
  fails("look", {{"text", 3}}, 400, "text");
  fails("look", {{"text", std::string(2000, 'x') + " y z"}}, 400, "text");
  fails("look", {{"text", "a"}, {"cut", {"L9H9"}}}, 404, "cut");
  fails("look", {{"text", "a"}, {"token", 99}}, 400, "token");
  fails("look", {{"text", "a"}, {"target", "b"}}, 400, "target");
  fails("look", {{"ids", {1, 99999}}}, 400, "ids");
  fails("tile", {{"text", "a b"}, {"head", "L7H0"}}, 404, "head");
  fails("tile", {{"text", "a b"}, {"head", "L0H0"}, {"rows", {5, 2}}}, 400, "rows");
  fails("story", {{"text", "a b"}, {"layer", 2}}, 400, "layer");
  fails("update", {{"text", "a b"}, {"token", 9}}, 400, "token");
  fails("update", {{"ids", {1}}}, 400, "text");
  fails("update", {{"model", "translator"}, {"text", "a b"}}, 400, "model");
  fails("look", {{"text", "a"}, {"only", "tokens"}}, 400, "only");
  fails("weight", {{"matrix", "z"}}, 400, "matrix");
  fails("weight", {{"matrix", "embed"}, {"rows", {0, 608}}, {"columns", {0, 0}}}, 400, "columns");
  fails("cut", {{"text", "a"}}, 400, "cut");
  const HttpAnswer bytes = page_server().ask({.path = "/page/look", .body = "{\"text\": \"\xff\xfe\"}"});
  EXPECT_EQ(bytes.status, 400) << bytes.body;
}

TEST(Page, KindsOfModels) {
  const Json translated = page_json("look", {{"model", "translator"}, {"text", "one two"}, {"target", "three"}});
  EXPECT_TRUE(translated.contains("source"));
  EXPECT_EQ(page_post("write", {{"model", "reader"}, {"text", "one"}}).status, 400);
  EXPECT_TRUE(page_json("look", {{"model", "reader"}, {"text", "one two"}}).contains("ladder"));
}

}  // namespace
}  // namespace qkv
