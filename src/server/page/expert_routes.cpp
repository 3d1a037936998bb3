// /page/experts: which experts the tokens of a text visit, and how all of them are used over many texts.
#include "inspect/heads/expert_use.h"
#include "inspect/report/look_report.h"
#include "inspect/texts/word_kinds.h"
#include "server/page/page_routes.h"

namespace qkv::server {
namespace {

OrderedJson routing_json(const std::vector<LayerRouting>& layers) {
  OrderedJson list = OrderedJson::array();
  for (const LayerRouting& layer : layers) {
    OrderedJson experts = OrderedJson::array();
    for (const ExpertUse& use : layer.of_expert) {
      experts.push_back({{"load", use.load.mean},
                         {"low", use.load.low},
                         {"high", use.load.high},
                         {"probability", use.probability},
                         {"kinds", use.classes}});
    }
    list.push_back({{"layer", layer.layer},
                    {"visited", layer.visited},
                    {"tokens", layer.tokens},
                    {"balance", layer.balance},
                    {"entropy", layer.entropy.mean},
                    {"information", layer.information.mean},
                    {"by_chance", layer.by_chance},
                    {"experts", std::move(experts)}});
  }
  return list;
}

OrderedJson measured_routing(PageModel& model, const Reader::Finished& finished) {
  RoutingOptions options{.class_of = word_kinds(model.opened().tokenizer(), model.spec().vocabulary),
                         .classes = static_cast<int32_t>(kWordKinds.size()),
                         .finished = finished};
  Reader reader(model.model(), model.engine(), {.precision = model.precision()});
  return {{"kinds", kWordKinds}, {"layers", routing_json(measure_routing(reader, model.texts(), options))}};
}

}  // namespace

HttpResponse page_experts(PageParts& page, const Fields& fields) {
  const PageText asked = page_text_of(page, fields);
  PageModel& model = asked.model;
  if (all_experts(model.spec()).empty()) fields.fail("model", "has no experts");
  const Json report = page_look_report(asked, std::nullopt);
  Json answer{{"tokens", report.at("tokens")}, {"routes", report.at("experts")}};
  if (report.contains("rows")) answer["rows"] = report.at("rows");
  answer["use"] = Json(page.measurements.ask("experts " + model.name(), [&model](const Reader::Finished& finished) {
    return measured_routing(model, finished);
  }));
  return report_response(answer);
}

}  // namespace qkv::server
