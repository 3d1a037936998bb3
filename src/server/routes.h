// What the routes that ask a model do. Called by a reader's thread: they check the request, hand it to the engine, and
// return; the answer comes through the exchange. An ApiError or Error is what the client is told.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "infer/grammar/budget.h"
#include "server/answers/generation.h"
#include "server/requests/chat_request.h"

namespace qkv::server {

struct RouteContext {
  std::shared_ptr<Exchange> exchange;
  WorkQueue* writer = nullptr;
  Metrics* metrics = nullptr;
  std::function<void()> wake = {};                            // the engine
  std::function<void(std::weak_ptr<Generation>)> watch = {};  // told of what may have to be aborted
  int32_t owner = 0;                                          // the number of the API key
  std::chrono::steady_clock::time_point came = {};
  Budget& budget;  // of reading the request
};

void answer_completion(const Fields& fields, ServedModel& model, const RouteContext& route);
void answer_chat(const Fields& fields, ServedModel& model, const RouteContext& route);
void answer_responses(const Fields& fields, ServedModel& model, const RouteContext& route);
void answer_embeddings(const Fields& fields, ServedModel& model, const RouteContext& route);
void answer_translate(const Fields& fields, ServedModel& model, const RouteContext& route);

using ServedModels = std::vector<std::unique_ptr<ServedModel>>;
HttpResponse models_list(const ServedModels& models);
HttpResponse one_model(const ServedModels& models, std::string_view name);

}  // namespace qkv::server
