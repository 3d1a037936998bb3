// /v1/models: what is served, and which routes it answers.
#include "server/http/api_error.h"
#include "server/routes.h"

namespace qkv::server {
namespace {

OrderedJson model_json(const ServedModel& model) {
  const ModelSpec& spec = model.model().spec();
  OrderedJson can = OrderedJson::array();
  if (spec.kind == ModelSpec::Kind::decoder_only) can.push_back("completions");
  if (spec.kind == ModelSpec::Kind::decoder_only && model.chat_template() != nullptr) can.push_back("chat");
  if (spec.has_source()) can.push_back("translate");
  can.push_back("embeddings");
  return {{"id", model.name()},
          {"object", "model"},
          {"created", model.created()},
          {"owned_by", "qkv"},
          {"family", spec.family},
          {"max_model_len", model.context()},
          {"capabilities", std::move(can)}};
}

}  // namespace

HttpResponse models_list(const ServedModels& models) {
  OrderedJson data = OrderedJson::array();
  for (const auto& model : models) data.push_back(model_json(*model));
  return json_response({{"object", "list"}, {"data", std::move(data)}});
}

HttpResponse one_model(const ServedModels& models, std::string_view name) {
  for (const auto& model : models) {
    if (model->name() == name) return json_response(model_json(*model));
  }
  ApiError error(404, "that model is not served here", "model");
  error.code = "model_not_found";
  return error.response();
}

}  // namespace qkv::server
