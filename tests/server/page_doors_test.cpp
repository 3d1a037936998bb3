// The routes of the page's doors: examples of heads, twins, experts, decoding with and without a cache, comparisons and
// sums. What they answer is held to the libraries, or worked out again from what another route says.
#include <cmath>

#include "inspect/heads/head_examples.h"
#include "inspect/report/numbers.h"
#include "open/open_model.h"
#include "server/page/sum_answer.h"
#include "server/test_server.h"

namespace qkv {
namespace {

using test::HttpAnswer;
using test::RunningServer;
using test::SharedServers;

constexpr const char* kDoorText = "one two three one two";

const RunningServer& door_server() {
  static const RunningServer* const server =
      SharedServers::start(RunningServer::usual({"plain", "translator", "reader", "experts", "deep", "long"}));
  return *server;
}

Json door_json(const std::string& route, const Json& body) {
  const HttpAnswer answer = door_server().post("/page/" + route, body);
  EXPECT_EQ(answer.status, 200) << route << " " << body.dump() << "\n" << answer.body.substr(0, 600);
  return answer.status == 200 ? answer.json() : Json::object();
}

std::string door_refusal(const std::string& route, const Json& body, int status = 400) {
  const HttpAnswer answer = door_server().post("/page/" + route, body);
  EXPECT_EQ(answer.status, status) << route << " " << body.dump() << "\n" << answer.body.substr(0, 600);
  return answer.status == status ? answer.error() : "";
}

// Asks until it is no longer being measured.
Json door_measured(const std::string& route, const Json& body, const std::function<Json(const Json&)>& part) {
  Json answer;
  for (int i = 0; i < 600; ++i) {
    answer = part(door_json(route, body));
    if (answer.at("state") != "measuring") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return answer;
}

TEST(PageDoors, ExamplesGoFromStrongToWeak) {
  const Json found = door_json("examples", {{"model", "plain"}, {"head", "L1H2"}});
  EXPECT_EQ(found.at("head"), "L1H2");
  const Json& examples = found.at("examples");
  ASSERT_EQ(examples.size(), 20U);
  double before = 1;
  for (size_t i = 0; i < examples.size(); ++i) {
    const Json& one = examples[i];
    EXPECT_EQ(one.at("decile"), 10 - static_cast<int>(i) / 2);
    const double strength = one.at("strength").get<double>();
    EXPECT_LE(strength, before);
    before = strength;
    const auto weights = one.at("weights").get<std::vector<double>>();
    const auto row = one.at("row").get<size_t>(), key = one.at("key").get<size_t>();
    ASSERT_EQ(weights.size(), one.at("tokens").size());
    EXPECT_NEAR(weights[key], strength, 1e-5);
    double sum = 0;
    for (size_t j = 0; j < weights.size(); ++j) {
      sum += weights[j];
      if (j > 0) {
        EXPECT_LE(weights[j], strength + 1e-5) << "row " << row << " key " << j;
      }
      if (j > row) {
        EXPECT_EQ(weights[j], 0) << "a decoder looks left";
      }
    }
    EXPECT_NEAR(sum, 1, 1e-3);
  }
  const auto deciles = found.at("deciles").get<std::vector<double>>();
  EXPECT_TRUE(std::is_sorted(deciles.begin(), deciles.end()));
}

TEST(PageDoors, ExamplesAreRowsOfTheHead) {
  const OpenModel model(test::TinyModels::get().path("plain"), {.precision = Precision::f32(), .threads = 1});
  const std::vector<TokenText> texts = {model.encode(kDoorText), model.encode("a longer text of some more words")};
  const HeadId head{Stack::decoder, 1, 3};
  const HeadExamples found = head_examples(model.model(), model.engine(), texts, head, {.each = 1});
  EXPECT_EQ(found.rows, std::ssize(texts[0].ids) + std::ssize(texts[1].ids) - 4);
  const Looked seen = look_at(model.model(), model.engine(), texts[found.examples[0].text]);
  const HeadExample& best = found.examples[0];
  for (size_t j = 0; j < best.weights.size(); ++j) {
    EXPECT_NEAR(best.weights[j], seen.at({Stack::decoder, 1}).weight(best.row, 3, static_cast<int64_t>(j)), 1e-5);
  }
}

TEST(PageDoors, ExamplesOfATranslatorHaveBothSentences) {
  const Json found = door_json("examples", {{"model", "translator"}, {"head", "X0H0"}});
  for (const Json& one : found.at("examples")) {
    EXPECT_EQ(one.at("weights").size(), one.at("source").size());
    EXPECT_LT(one.at("row").get<size_t>(), one.at("tokens").size());
  }
  const std::string refused = door_refusal("examples", {{"model", "translator"}, {"head", "E0H0"}});
  EXPECT_NE(refused.find("bias for every distance"), refused.npos) << refused;
  door_refusal("examples", {{"model", "plain"}, {"head", "L9H9"}}, 404);
}

TEST(PageDoors, TwinsAreMeasuredInTheBackground) {
  const Json twins = door_measured("twins", {{"model", "plain"}}, [](const Json& all) { return all; });
  ASSERT_EQ(twins.at("state"), "ready") << twins.dump();
  EXPECT_EQ(twins.at("compared"), 8 * 7 / 2);
  double before = 0;
  for (const Json& pair : twins.at("closest")) {
    EXPECT_LE(before, pair.at("distance").get<double>());
    before = pair.at("distance").get<double>();
    EXPECT_LE(pair.at("low").get<double>(), pair.at("synergy").get<double>());
  }
}

TEST(PageDoors, EveryTokenGoesToItsExperts) {
  const Json asked{{"model", "experts"}, {"text", kDoorText}};
  const Json seen = door_json("experts", asked);
  ASSERT_EQ(seen.at("routes").size(), 2U);
  for (const Json& layer : seen.at("routes")) {
    ASSERT_EQ(layer.at("ids").size(), seen.at("tokens").size());
    for (size_t t = 0; t < layer.at("ids").size(); ++t) {
      ASSERT_EQ(layer.at("ids")[t].size(), 2U);
      EXPECT_NEAR(layer.at("weights")[t][0].get<double>() + layer.at("weights")[t][1].get<double>(), 1, 1e-3);
    }
  }
  const Json use = door_measured("experts", asked, [](const Json& all) { return all.at("use"); });
  ASSERT_EQ(use.at("state"), "ready") << use.dump();
  double load = 0;
  for (const Json& expert : use.at("layers")[0].at("experts")) load += expert.at("load").get<double>();
  EXPECT_NEAR(load, 2, 1e-6);  // two for each token
}

TEST(PageDoors, NoTokenGoesToAnExpertThatIsCut) {
  Json asked{{"model", "experts"}, {"text", kDoorText}};
  const int first = door_json("experts", asked).at("routes")[0].at("ids")[0][0];
  asked["cut"] = {"L0E" + std::to_string(first)};
  const Json routed = door_json("experts", asked).at("routes")[0].at("ids");
  for (const Json& ids : routed) {
    for (const Json& id : ids) EXPECT_NE(id, first);
  }
  const Json effect = door_json("cut", asked);
  EXPECT_EQ(effect.at("cut")[0], asked["cut"][0]);
  EXPECT_TRUE(effect.contains("delta"));
  EXPECT_NE(door_refusal("experts", {{"model", "plain"}, {"text", kDoorText}}).find("no experts"), std::string::npos);
}

TEST(PageDoors, DecodingWithoutACacheWritesTheSame) {
  Json asked{{"model", "plain"}, {"text", kDoorText}, {"steps", 6}};
  const Json cached = door_json("decode", asked);
  asked["cache"] = false;
  const Json bare = door_json("decode", asked);
  EXPECT_EQ(cached.at("ids"), bare.at("ids"));
  const int64_t prompt = cached.at("prompt");
  ASSERT_EQ(cached.at("steps").size(), bare.at("steps").size());
  int64_t before = 0;
  for (size_t i = 0; i < cached.at("steps").size(); ++i) {
    const Json &with = cached.at("steps")[i], &without = bare.at("steps")[i];
    const auto length = prompt + static_cast<int64_t>(i);
    EXPECT_EQ(with.at("rows"), i == 0 ? prompt : 1);
    EXPECT_EQ(without.at("rows"), length);
    EXPECT_EQ(with.at("id"), without.at("id"));
    // 2 layers, 2 heads of 8 numbers, keys and values, in f32
    EXPECT_EQ(with.at("cache_bytes"), length * 2 * 2 * 8 * 2 * 4);
    EXPECT_EQ(without.at("cache_bytes"), 0);
    EXPECT_GT(with.at("cache_bytes").get<int64_t>(), before);
    before = with.at("cache_bytes");
  }
  const Json written = door_json("write", {{"model", "plain"}, {"text", kDoorText}, {"max_tokens", 6}});
  for (size_t i = 0; i < written.at("tokens").size(); ++i) {
    EXPECT_EQ(written.at("tokens")[i].at("id"), cached.at("steps")[i].at("id")) << "step " << i;
  }
}

TEST(PageDoors, DecodeRefusesWhatCannotBeDecoded) {
  door_refusal("decode", {{"model", "reader"}, {"text", "one"}});
  door_refusal("decode", {{"model", "plain"}, {"text", "one"}, {"steps", 0}});
  door_refusal("decode", {{"model", "plain"}, {"text", "one"}, {"steps", 129}});
  door_refusal("decode", {{"model", "plain"}});
  const Json translated = door_json("decode", {{"model", "translator"}, {"text", "one"}, {"steps", 2}});
  EXPECT_EQ(translated.at("prompt"), 1);
}

TEST(PageDoors, AModelIsItself) {
  const Json same = door_json(
      "compare", {{"text", kDoorText}, {"a", {{"model", "plain"}}}, {"b", {{"model", "plain"}}}, {"head", "L1H1"}});
  EXPECT_TRUE(same.at("same_tokens").get<bool>());
  for (const Json& row : same.at("rows")) {
    EXPECT_EQ(row.at("kl"), 0);
    EXPECT_EQ(row.at("a"), row.at("b"));
  }
  for (const Json& head : same.at("heads")) EXPECT_EQ(head.at("distance"), 0) << head.dump();
  EXPECT_EQ(same.at("heads").size(), 8U);
  EXPECT_EQ(same.at("maps").at("a"), same.at("maps").at("b"));
  // Its losses are those of the ladder.
  const Json look = door_json("look", {{"model", "plain"}, {"text", kDoorText}});
  const Json& losses = look.at("ladder").at("losses");
  for (size_t r = 0; r + 1 < same.at("rows").size(); ++r) {
    EXPECT_NEAR(same.at("rows")[r].at("a").at("loss").get<double>(), losses[r].get<double>(), 2e-3) << "row " << r;
  }
}

TEST(PageDoors, FormsAndCutsDiffer) {
  const auto mean_kl = [](const Json& b) {
    const Json all = door_json("compare", {{"text", kDoorText}, {"a", {{"model", "plain"}}}, {"b", b}});
    const auto most = std::ranges::max_element(all.at("heads"), {},
                                               [](const Json& head) { return head.at("distance").get<double>(); });
    EXPECT_EQ(all.at("maps").at("head"), most->at("name"));  // nobody asked for one: the one that differs most
    double sum = 0;
    for (const Json& row : all.at("rows")) sum += row.at("kl").get<double>();
    return sum / static_cast<double>(all.at("rows").size());
  };
  const double bf16 = mean_kl({{"model", "plain"}, {"form", "bf16"}}),
               q8 = mean_kl({{"model", "plain"}, {"form", "q8"}}), q4 = mean_kl({{"model", "plain"}, {"form", "q4"}}),
               cut = mean_kl({{"model", "plain"}, {"cut", {"L0", "L1"}}});
  EXPECT_GT(bf16, 0);
  EXPECT_GT(q8, 0);
  EXPECT_GT(q4, q8);
  EXPECT_GT(cut, 0);
}

TEST(PageDoors, QuantisedWeightsTakeFewerBytes) {
  const Json all = door_json(
      "compare", {{"text", kDoorText}, {"a", {{"model", "plain"}}}, {"b", {{"model", "plain"}, {"form", "q4"}}}});
  EXPECT_LT(all.at("b").at("weight_bytes").get<double>(), 0.4 * all.at("a").at("weight_bytes").get<double>());
}

TEST(PageDoors, ModelsWithOtherTokensAreShownSideBySide) {
  const Json all =
      door_json("compare", {{"text", "one two"}, {"a", {{"model", "plain"}}}, {"b", {{"model", "translator"}}}});
  EXPECT_FALSE(all.at("same_tokens").get<bool>());
  EXPECT_FALSE(all.contains("heads"));
  EXPECT_FALSE(all.at("rows")[0].contains("kl"));
  const Json deeper =
      door_json("compare", {{"text", "one two"}, {"a", {{"model", "plain"}}}, {"b", {{"model", "deep"}}}});
  EXPECT_TRUE(deeper.at("same_tokens").get<bool>());
  EXPECT_FALSE(deeper.contains("heads"));  // one has more layers
  door_refusal("compare", {{"text", "one"}, {"a", {{"model", "plain"}}}, {"b", {{"model", "nobody"}}}}, 404);
  door_refusal("compare", {{"text", "one"}, {"a", {{"model", "reader"}}}, {"b", {{"model", "plain"}}}});
  const std::string form = door_refusal(
      "compare", {{"text", "one"}, {"a", {{"model", "plain"}, {"form", "q2"}}}, {"b", {{"model", "plain"}}}});
  EXPECT_NE(form.find("q2"), form.npos) << form;
}

TEST(PageDoors, AnswersOfSumsAreRead) {
  using server::number_after;
  EXPECT_EQ(number_after(" 2840. Compute", ""), 2840);
  EXPECT_EQ(number_after(" 2840", ""), std::nullopt);  // there may be more digits
  EXPECT_EQ(number_after(" 500 × 5 = 2500. So 568 × 5 = 2840.", "So 568 × 5 ="), 2840);
  EXPECT_EQ(number_after("500×5=2500。所以568×5=2840。", "所以568×5="), 2840);
  EXPECT_EQ(number_after("So 567 × 5 = 2835.", "So 568 × 5 ="), std::nullopt);  // of another sum
  EXPECT_EQ(number_after(" cats.", ""), std::nullopt);
  EXPECT_EQ(number_after(" 1234567890123.", ""), std::nullopt);
}

// Of a text whose patterns are not kept: what one pass kept of all layers gives the maps that a pass for each gives.
TEST(PageDoors, LongTextsHaveThumbnailsAndTiles) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 600; ++i) ids.push_back(i * 37 % 400);
  const Json look = door_json("look", {{"model", "long"}, {"ids", ids}});
  EXPECT_EQ(look.at("rows").at("count"), 64);
  const OpenModel model(test::TinyModels::get().path("long"), {.precision = Precision::f32(), .threads = 1});
  const TokenText text{.ids = ids};
  const auto pooled = pooled_maps(model.model(), model.engine(), text, 64, {});
  for (size_t h = 0; h < 8; ++h) {
    const Json& head = look.at("heads")[h];
    EXPECT_FALSE(head.contains("top"));
    const MapPart& map = pooled[h / 4][h % 4];
    const std::vector<double> cells(map.cells.begin(), map.cells.end());
    const std::string expected = thumb_json(cells, {map.rows, map.columns, map.pooled}).at("data");
    const std::string got = head.at("thumb").at("data");
    ASSERT_EQ(got.size(), expected.size());
    int64_t differ = 0;  // a rounded byte may be one apart
    for (size_t i = 0; i < got.size(); ++i) differ += got[i] != expected[i] ? 1 : 0;
    EXPECT_LT(differ, std::ssize(got) / 50) << head.at("name");
  }
  const Looked seen = look_at(model.model(), model.engine(), text, {.whole = 600});
  const HttpAnswer tile = door_server().post(
      "/page/tile", {{"model", "long"}, {"ids", ids}, {"head", "L1H2"}, {"rows", {500, 510}}, {"columns", {480, 500}}});
  ASSERT_EQ(tile.body.size(), 32U + 4 * 200);
  std::vector<float> cells(200);
  std::memcpy(cells.data(), tile.body.data() + 32, 800);
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_NEAR(cells[static_cast<size_t>(i)], seen.at({Stack::decoder, 1}).weight(500 + i / 20, 2, 480 + i % 20),
                1e-5);
  }
}

TEST(PageDoors, SumsAreTheWorldsAndJudged) {
  const Json two =
      door_json("sums", {{"model", "plain"}, {"digits", 3}, {"count", 4}, {"operation", "×"}, {"seed", 5}});
  ASSERT_EQ(two.at("sums").size(), 4U);
  for (const Json& one : two.at("sums")) {
    const std::string sum = one.at("sum");
    const int64_t p = std::stoll(sum), q = std::stoll(sum.substr(sum.find("×") + 2));
    EXPECT_GE(p, 100);
    EXPECT_LE(p, 999);
    EXPECT_EQ(one.at("result"), p * q);
    EXPECT_EQ(one.at("at_once").at("prompt"), sum + " =");
    EXPECT_EQ(one.at("by_steps").at("prompt"), "Compute " + sum + " by steps.");
    for (const char* way : {"at_once", "by_steps"}) {
      EXPECT_EQ(one.at(way).at("right").get<bool>(), one.at(way).at("answer") == one.at("result"));
    }
  }
  EXPECT_EQ(two, door_json("sums", {{"model", "plain"}, {"digits", 3}, {"count", 4}, {"operation", "×"}, {"seed", 5}}));
  const Json own =
      door_json("sums", {{"model", "plain"}, {"p", 568}, {"q", 5}, {"operation", "×"}, {"language", "zh"}});
  EXPECT_EQ(own.at("sums")[0].at("by_steps").at("prompt"), "一步一步地算568×5。");
  EXPECT_EQ(own.at("sums")[0].at("result"), 2840);
  door_refusal("sums", {{"model", "plain"}, {"p", 7}, {"q", 2}, {"operation", "÷"}});
  door_refusal("sums", {{"model", "plain"}, {"p", 7}, {"q", 0}, {"operation", "÷"}});
  door_refusal("sums", {{"model", "plain"}, {"p", 2}, {"q", 7}, {"operation", "-"}});
  door_refusal("sums", {{"model", "plain"}, {"p", 2}});
  door_refusal("sums", {{"model", "translator"}});
  door_refusal("sums", {{"model", "plain"}, {"digits", 5}});
}

}  // namespace
}  // namespace qkv
