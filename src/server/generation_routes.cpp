// /v1/completions, /v1/chat/completions and /v1/responses.
#include <ctime>

#include "server/routes.h"

namespace qkv::server {
namespace {

using MakeForm = std::unique_ptr<AnswerForm> (*)(AnswerInfo);

void generate(GenerationRequest request, MakeForm make_form, ServedModel& model, const RouteContext& route) {
  AnswerInfo info{.id = route.exchange->id().substr(4),  // without "req-"
                  .model = model.name(),
                  .created = std::time(nullptr),
                  .tokenizer = model.model().tokenizer(),
                  .logprobs = request.logprobs >= 0,
                  .include_usage = request.include_usage};
  const auto generation = std::make_shared<Generation>(std::move(request), Generation::Parts{
                                                                               .model = model,
                                                                               .exchange = route.exchange,
                                                                               .form = make_form(std::move(info)),
                                                                               .writer = *route.writer,
                                                                               .metrics = *route.metrics,
                                                                               .wake = route.wake,
                                                                               .owner = route.owner,
                                                                               .came = route.came,
                                                                           });
  route.watch(generation);
  generation->start();
}

}  // namespace

void answer_completion(const Fields& fields, ServedModel& model, const RouteContext& route) {
  model.scheduler();  // an Error for models that write no text
  generate(read_completion(fields, model, route.budget), completion_form, model, route);
}

void answer_chat(const Fields& fields, ServedModel& model, const RouteContext& route) {
  model.scheduler();
  generate(read_chat(fields, model, route.budget), chat_form, model, route);
}

void answer_responses(const Fields& fields, ServedModel& model, const RouteContext& route) {
  model.scheduler();
  generate(read_responses(fields, model, route.budget), responses_form, model, route);
}

}  // namespace qkv::server
