// A server whose requests may look inside, and the model beside it.
#pragma once

#include "inspect/look/looking.h"
#include "server/test_server.h"

namespace qkv::test {

inline constexpr const char* kLookRoute = "/v1/completions";
inline constexpr int kLayers = 2, kHeadsOfLayer = 4, kHeads = kLayers * kHeadsOfLayer;

inline ServerOptions looking(int64_t slots = 4) {
  ServerOptions options = RunningServer::usual();
  options.room.look.allowed = true;
  options.room.slots = slots;
  return options;
}

inline std::vector<int32_t> some_prompt(size_t length, int32_t first) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < length; ++i) ids.push_back(first + static_cast<int32_t>(i * 7 % 300));
  return ids;
}

inline Json greedy(const std::vector<int32_t>& prompt, int max_tokens, Json look = nullptr) {
  Json body = {{"prompt", prompt}, {"max_tokens", max_tokens}, {"temperature", 0}, {"logit_bias", {{"470", -100}}}};
  if (!look.is_null()) body["look"] = std::move(look);
  return body;
}

// The model beside the server.
class Beside {
 public:
  const OpenModel model{TinyModels::get().path("chatty"), {.threads = 1}};

  // Prompt and text; `probe` edits all rows.
  std::vector<int32_t> written(const std::vector<int32_t>& prompt, int64_t count, Probe* probe = nullptr) const {
    Runner runner = model.runner({.cache = DType::f32, .positions = 512, .probe = probe});
    SessionOptions options{.prompt = prompt, .max_new = count};
    options.sampling.temperature = 0;
    options.sampling.logit_bias = {{470, -100}};
    Session session(runner, options);
    while (session.next()) {
    }
    return session.ids();
  }
  Looked looked(const std::vector<int32_t>& ids) const { return look_at(model.model(), model.engine(), {.ids = ids}); }
};

inline Json tokens_of(const HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.json()["look"]["choices"][0]["tokens"];
}

}  // namespace qkv::test
