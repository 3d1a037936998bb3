// What a request sees of its own text while the server writes it is what inspect computes on the text alone, whoever
// asks beside it, whole or streamed; and nobody's text changes by it.
#include <cmath>
#include <cstring>

#include "inspect/lens/ladder.h"
#include "server/look_support.h"
#include "text/tokenizer/files/base64.h"

namespace qkv {
namespace look_test {

using namespace test;

constexpr const char* kRoute = kLookRoute;

TEST(ServerLook, IsWhatInspectComputes) {
  const RunningServer server(looking());
  const Beside beside;
  const std::vector<int32_t> prompt = some_prompt(21, 9);
  const Json tokens =
      tokens_of(server.post(kRoute, greedy(prompt, 6, {{"statistics", "all"}, {"maps", "full"}, {"ladder", true}})));
  ASSERT_EQ(tokens.size(), 6U);
  const Looked seen = beside.looked(beside.written(prompt, 6));
  const Ladder ladder = climb(beside.model.model(), beside.model.engine(), seen);
  for (size_t t = 0; t < tokens.size(); ++t) {
    const Json& token = tokens[t];
    const int64_t row = std::ssize(prompt) - 1 + static_cast<int64_t>(t);
    ASSERT_EQ(token["position"], row);
    const Json& rows = token["maps"]["rows"];
    ASSERT_EQ(rows.size(), t == 0 ? prompt.size() : 1U);
    EXPECT_EQ(token["maps"]["first"], t == 0 ? 0 : row);
    for (int h = 0; h < kHeads; ++h) {
      const auto at = static_cast<size_t>(h);
      const SeenAttention& attention = seen.attentions[static_cast<size_t>(h / kHeadsOfLayer)];
      const int64_t head = h % kHeadsOfLayer;
      double entropy = 0, distance = 0;
      for (int64_t key = 0; key <= row; ++key) {
        const double weight = static_cast<double>(attention.weight(row, head, key));
        if (weight > 0) entropy -= weight * std::log(weight);
        distance += weight * static_cast<double>(row - key);
      }
      const Json& s = token["statistics"];
      const TopKey strongest = attention.top_of(row, head)[0];
      EXPECT_NEAR(s["entropy"][at].get<double>(), entropy, 1e-5);
      EXPECT_NEAR(s["distance"][at].get<double>(), distance, 1e-4);
      EXPECT_EQ(s["argmax"][at], strongest.key);
      EXPECT_NEAR(s["highest"][at].get<float>(), strongest.weight, 1e-6F);
      EXPECT_NEAR(s["first"][at].get<float>(), attention.weight(row, head, 0), 1e-6F);
      EXPECT_NEAR(s["previous"][at].get<float>(), attention.weight(row, head, row - 1), 1e-6F);
      for (size_t r = 0; r < rows.size(); ++r) {
        const int64_t own = t == 0 ? static_cast<int64_t>(r) : row;
        ASSERT_EQ(rows[r][at].size(), static_cast<size_t>(own + 1));
        for (int64_t key = 0; key <= own; ++key) {
          EXPECT_EQ(rows[r][at][static_cast<size_t>(key)].get<float>(), attention.weight(own, head, key));
        }
      }
    }
    ASSERT_EQ(token["ladder"].size(), static_cast<size_t>(kLayers) + 1);
    for (size_t level = 0; level <= kLayers; ++level) {
      const Rung& rung = ladder.at(level, row);
      const Json& got = token["ladder"][level];
      EXPECT_EQ(got["level"], level == 0 ? "embed" : std::to_string(level - 1));
      EXPECT_EQ(got["rank"], rung.rank);
      EXPECT_DOUBLE_EQ(got["entropy"].get<double>(), rung.entropy);
      ASSERT_EQ(got["guesses"].size(), rung.guesses.size());
      for (size_t g = 0; g < rung.guesses.size(); ++g) {
        EXPECT_EQ(got["guesses"][g]["id"], rung.guesses[g].id);
        EXPECT_DOUBLE_EQ(got["guesses"][g]["p"].get<double>(), rung.guesses[g].p);
      }
    }
    EXPECT_EQ(token["ladder"].back()["guesses"][0]["id"], seen.text.ids[static_cast<size_t>(row + 1)])
        << "the last level chose the token";
  }
}

// The rows of a text, [heads, keys], from its full maps.
std::vector<Json> rows_of(const Json& tokens) {
  std::vector<Json> rows;
  for (const Json& token : tokens) {
    for (const Json& row : token["maps"]["rows"]) rows.push_back(row);
  }
  return rows;
}

TEST(ServerLook, TheTopEightAreThoseOfTheFullMaps) {
  ServerOptions options = RunningServer::usual({"deep"});
  options.room.look.allowed = true;
  const RunningServer server(options);
  const std::vector<int32_t> prompt = some_prompt(37, 20);
  const Json all = tokens_of(server.post(kRoute, greedy(prompt, 9, {{"maps", "full"}, {"statistics", "all"}})));
  const std::vector<Json> rows = rows_of(all);
  ASSERT_EQ(rows.size(), 45U);
  const Json top = tokens_of(server.post(kRoute, greedy(prompt, 9, {{"maps", "top8"}})));
  const Json names = server.post(kRoute, greedy(prompt, 1, Json::object())).json()["look"]["heads"];
  ASSERT_EQ(names.size(), 16U);
  size_t left_out = 0;
  for (size_t t = 0; t < top.size(); ++t) {
    std::vector<std::pair<float, size_t>> right;  // strongest first
    for (size_t h = 0; h < names.size(); ++h) {
      if (all[t]["statistics"]["argmax"][h] == 0) continue;
      right.emplace_back(-all[t]["statistics"]["highest"][h].get<float>(), h);
    }
    std::sort(right.begin(), right.end());
    left_out += right.size() > 8 ? 1U : 0U;
    right.resize(std::min<size_t>(right.size(), 8));
    ASSERT_EQ(top[t]["maps"].size(), right.size());
    for (size_t i = 0; i < right.size(); ++i) {
      EXPECT_EQ(top[t]["maps"][i]["head"], names[right[i].second]);
      EXPECT_EQ(top[t]["maps"][i]["weights"], rows[prompt.size() - 1 + t][right[i].second]);
    }
  }
  EXPECT_GT(left_out, 0U) << "no token has more than eight to choose from";
}

// Of a text that begins long, and of one that grows: its cells are pooled again while it is written.
TEST(ServerLook, ThumbnailsAreTheFullMapsPooled) {
  const RunningServer server(looking());
  for (const auto& [length, written] : {std::pair<size_t, int>{37, 5}, {3, 38}, {14, 3}}) {
    const std::vector<int32_t> prompt = some_prompt(length, 20);
    const std::vector<Json> rows = rows_of(tokens_of(server.post(kRoute, greedy(prompt, written, {{"maps", "full"}}))));
    const size_t seen = length + static_cast<size_t>(written) - 1, pooled = seen > 32 ? 4 : 1;
    ASSERT_EQ(rows.size(), seen);
    const Json look =
        server.post(kRoute, greedy(prompt, written, {{"maps", "thumbnails"}, {"heads", {"L1H2", "L0H3"}}}))
            .json()["look"];
    EXPECT_EQ(look["heads"], Json({"L0H3", "L1H2"}));
    const Json& thumbnails = look["choices"][0]["thumbnails"];
    EXPECT_EQ(thumbnails["rows"], seen);
    ASSERT_EQ(thumbnails["pooled"], pooled);
    ASSERT_EQ(thumbnails["maps"].size(), 2U);
    const size_t side = (seen + pooled - 1) / pooled;
    for (size_t i = 0; i < 2; ++i) {
      const size_t head = i == 0 ? 3 : kHeadsOfLayer + 2;
      ASSERT_EQ(thumbnails["maps"][i].size(), side);
      for (size_t y = 0; y < side; ++y) {
        const size_t end = std::min(rows.size(), pooled * (y + 1));
        for (size_t x = 0; x < side; ++x) {
          double sum = 0;
          for (size_t r = pooled * y; r < end; ++r) {
            for (size_t k = pooled * x; k < pooled * (x + 1) && k <= r; ++k) sum += rows[r][head][k].get<double>();
          }
          EXPECT_NEAR(thumbnails["maps"][i][y][x].get<double>(), sum / static_cast<double>(end - pooled * y), 1e-6);
        }
      }
    }
  }
}

// Everything a request can ask for, by number.
Json mixed_look(int n) {
  const char* maps[] = {"none", "top8", "thumbnails", "full"};
  Json look = {{"statistics", {"entropy", "argmax", "previous"}}, {"maps", maps[n % 4]}, {"ladder", n % 3 == 0}};
  if (n % 4 == 1) look["statistics"] = {"highest"};
  if (n % 2 == 1) look["heads"] = {"L1"};
  if (n % 4 == 3) look["attribute"] = Json::object();
  if (n % 5 == 2) look["cut"] = {"L0H1", "L1H3"};
  Json body = greedy(some_prompt(static_cast<size_t>(3 + 9 * n), n), 4 + n % 7, look);
  body["logprobs"] = 2;
  return body;
}

Json what_matters(const Json& answer) {
  return {answer["choices"], answer["usage"]["completion_tokens"], answer.value("look", Json())};
}

TEST(ServerLook, IsTheSameInABatchAndLeavesOthersAlone) {
  const RunningServer server(looking(9));
  constexpr int kRequests = 16;
  const auto body = [](int n) {
    Json made = mixed_look(n % 8);
    if (n >= 8) made.erase("look");  // neighbours that do not look
    return made;
  };
  std::vector<Json> alone(kRequests), among(kRequests);
  for (int n = 0; n < kRequests; ++n) {
    const HttpAnswer answer = server.post(kRoute, body(n));
    ASSERT_EQ(answer.status, 200) << answer.body;
    alone[static_cast<size_t>(n)] = what_matters(answer.json());
  }
  for (size_t n = 0; n < 8; ++n) EXPECT_EQ(alone[n][0], alone[n + 8][0]) << "a look changed text " << n;
  std::vector<std::thread> clients;
  for (int n = 0; n < kRequests; ++n) {
    clients.emplace_back([&, n] { among[static_cast<size_t>(n)] = what_matters(server.post(kRoute, body(n)).json()); });
  }
  for (std::thread& client : clients) client.join();
  for (size_t n = 0; n < kRequests; ++n) EXPECT_EQ(among[n], alone[n]) << n;
}

// The "look" of a whole answer, put together from the events of a stream.
Json streamed_look(const std::string& body, size_t texts) {
  Json look = {{"heads", nullptr}, {"choices", Json::array()}};
  for (size_t i = 0; i < texts; ++i) look["choices"].push_back({{"index", i}, {"tokens", Json::array()}});
  constexpr std::string_view kNamed = "event: look\ndata: ";
  for (size_t at = body.find(kNamed); at != std::string::npos; at = body.find(kNamed, at + 1)) {
    const size_t begin = at + kNamed.size();
    Json event = parse_json(body.substr(begin, body.find('\n', begin) - begin), "event");
    if (event.contains("heads")) {
      look["heads"] = event["heads"];
      continue;
    }
    Json& choice = look["choices"][event["index"].get<size_t>()];
    event.erase("index");
    if (event.contains("position")) {
      choice["tokens"].push_back(event);
    } else {
      choice.update(event);
    }
  }
  return look;
}

TEST(ServerLook, StreamsAreTheWhole) {
  const RunningServer server(looking());
  for (int n = 0; n < 8; ++n) {
    Json body = mixed_look(n);
    body["n"] = n % 3 == 1 ? 2 : 1;
    const Json whole = server.post(kRoute, body).json();
    ASSERT_TRUE(whole.contains("look")) << whole.dump();
    body["stream"] = true;
    EXPECT_EQ(streamed_look(server.post(kRoute, body).body, whole["choices"].size()), whole["look"]) << n;
  }
}

// Chats and responses see what a completion of the same tokens sees, whole and streamed.
TEST(ServerLook, EveryRouteShowsTheSame) {
  const RunningServer server(looking());
  const Json looks[] = {
      {{"statistics", "all"}, {"maps", "top8"}, {"ladder", true}, {"cut", {"L0H1"}}, {"attribute", Json::object()}},
      {{"statistics", {"entropy"}}, {"maps", "thumbnails"}, {"heads", {"L1"}}, {"frames", true}},
      {{"maps", "full"}, {"heads", {"L0H3", "L1H0"}}, {"attribute", {{"position", 3}, {"for", 7}, {"against", 9}}}}};
  for (const Json& look : looks) {
    const Json common = {{"temperature", 0}, {"logit_bias", {{"470", -100}}}, {"look", look}};
    const auto body = [&](Json own) {
      own.update(common);
      return own;
    };
    const std::pair<const char*, Json> routes[] = {
        {kRoute,
         body({{"prompt", "<|im_start|>user\nhow is it?<|im_end|>\n<|im_start|>assistant\n"}, {"max_tokens", 5}})},
        {"/v1/chat/completions",
         body({{"messages", {{{"role", "user"}, {"content", "how is it?"}}}}, {"max_tokens", 5}})},
        {"/v1/responses", body({{"input", "how is it?"}, {"max_output_tokens", 5}})}};
    Json first;
    for (const auto& [path, asked] : routes) {
      const HttpAnswer answer = server.post(path, asked);
      ASSERT_EQ(answer.status, 200) << path << answer.body;
      const Json seen = answer.json()["look"];
      ASSERT_EQ(seen["choices"][0]["tokens"].size(), 5U) << path;
      if (first.is_null()) first = seen;
      EXPECT_EQ(seen, first) << path;
      Json stream = asked;
      stream["stream"] = true;
      const HttpAnswer streamed = server.post(path, stream);
      EXPECT_EQ(streamed_look(streamed.body, 1), seen) << path;
      // Each token is shown before the text it adds, and what belongs to the end before the end.
      EXPECT_LT(streamed.body.find("event: look\ndata: {\"heads\""), streamed.body.find("\"position\"")) << path;
      const size_t end =
          streamed.body.rfind(path == std::string("/v1/responses") ? "response.incomplete" : "\"length\"");
      ASSERT_NE(end, std::string::npos) << path;
      EXPECT_LT(
          streamed.body.rfind("\"position\":" + std::to_string(seen["choices"][0]["tokens"][4]["position"].get<int>())),
          end)
          << path;
    }
  }
}

TEST(ServerLook, OneLargeEventDropsNobody) {
  const RunningServer server(looking());
  Json body = greedy(some_prompt(300, 1), 2, {{"maps", "full"}});
  const HttpAnswer whole = server.post(kRoute, body);
  body["stream"] = true;
  const HttpAnswer streamed = server.post(kRoute, body);
  EXPECT_GT(streamed.body.size(), size_t{2} << 20);
  EXPECT_TRUE(streamed.body.ends_with("data: [DONE]\n\n"));
  size_t tokens = 0;
  for (Json event : events_of(streamed.body)) {
    if (!event.contains("position")) continue;
    event.erase("index");
    EXPECT_EQ(event, tokens_of(whole)[tokens++]);
  }
  EXPECT_EQ(tokens, 2U);
}

TEST(ServerLook, FramesHoldTheSameNumbers) {
  const RunningServer server(looking());
  Json look = {{"statistics", {"entropy", "argmax"}}, {"maps", "full"}};
  const Json plain = tokens_of(server.post(kRoute, greedy(some_prompt(8, 1), 3, look)));
  look["frames"] = true;
  const Json framed = tokens_of(server.post(kRoute, greedy(some_prompt(8, 1), 3, look)));
  const auto same = [](const Json& frame, const Json& flat) {
    const std::string bytes = decode_base64(frame["data"].get<std::string>(), "frame");
    ASSERT_EQ(bytes.size(), flat.size() * 4);
    for (size_t i = 0; i < flat.size(); ++i) {
      uint32_t bits = 0;
      for (size_t b = 0; b < 4; ++b)
        bits |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[4 * i + b])) << 8 * b;
      if (frame["dtype"] == "i32") {
        EXPECT_EQ(static_cast<int32_t>(bits), flat[i].get<int32_t>());
      } else {
        float value = 0;
        std::memcpy(&value, &bits, sizeof value);
        EXPECT_EQ(value, flat[i].get<float>());
      }
    }
  };
  for (size_t t = 0; t < 3; ++t) {
    for (const char* name : {"entropy", "argmax"}) {
      EXPECT_EQ(framed[t]["statistics"][name]["shape"], Json({kHeads}));
      EXPECT_EQ(framed[t]["statistics"][name]["dtype"], std::strcmp(name, "argmax") == 0 ? "i32" : "f32");
      same(framed[t]["statistics"][name], plain[t]["statistics"][name]);
    }
    Json flat = Json::array();
    for (const Json& head : plain[t]["maps"]["rows"].back()) flat.insert(flat.end(), head.begin(), head.end());
    EXPECT_EQ(framed[t]["maps"]["rows"].back()["shape"], Json({kHeads, 8 + t}));
    same(framed[t]["maps"]["rows"].back(), flat);
  }
}

}  // namespace look_test
}  // namespace qkv
