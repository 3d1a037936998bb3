// /page/examples and /page/twins: what heads do, in examples, and which do the same.
#include <algorithm>

#include "inspect/heads/head_examples.h"
#include "inspect/heads/twins.h"
#include "inspect/report/look_report.h"
#include "inspect/report/numbers.h"
#include "server/page/page_routes.h"

namespace qkv::server {
namespace {

constexpr size_t kExampleTexts = 24, kTwinTexts = 16;
constexpr int64_t kMostTwinHeads = 512, kTwinLength = 64, kTwinRows = 2000;
constexpr double kTwinCells = 6e7;  // of maps that are compared: seconds

// From every part of the list, so that each language has its share.
std::vector<TokenText> spread(const std::vector<TokenText>& texts, size_t most) {
  std::vector<TokenText> some;
  const size_t count = std::min(most, texts.size());
  for (size_t i = 0; i < count; ++i) some.push_back(texts[i * texts.size() / count]);
  return some;
}

Json shown_text_json(PageModel& model, std::span<const int32_t> ids) {
  return tokens_json(shown_ids(&model.opened().tokenizer(), ids));
}

OrderedJson twins_json(PageModel& model, const Twins& twins) {
  OrderedJson closest = OrderedJson::array(), clusters = OrderedJson::array();
  for (const TwinPair& pair : twins.closest) {
    OrderedJson one{{"a", name_of(model.spec(), pair.a)},
                    {"b", name_of(model.spec(), pair.b)},
                    {"distance", pair.distance},
                    {"rows", pair.rows},
                    {"cka", pair.cka},
                    {"synergy", pair.synergy.mean},
                    {"low", pair.synergy.low},
                    {"high", pair.synergy.high},
                    {"duplicate", pair.duplicate()}};
    if (pair.qk_cosine) one["qk_cosine"] = *pair.qk_cosine;
    if (pair.ov_cosine) one["ov_cosine"] = *pair.ov_cosine;
    closest.push_back(std::move(one));
  }
  for (const std::vector<HeadId>& cluster : twins.clusters) {
    OrderedJson names = OrderedJson::array();
    for (const HeadId& head : cluster) names.push_back(name_of(model.spec(), head));
    clusters.push_back(std::move(names));
  }
  return {{"compared", twins.compared},
          {"alike", twins.alike},
          {"rows", twins.rows},
          {"closest", std::move(closest)},
          {"clusters", std::move(clusters)}};
}

}  // namespace

HttpResponse page_examples(PageParts& page, const Fields& fields) {
  PageModel& model = page_model_of(page, fields);
  const HeadId head = page_head_of(model, fields);
  const std::vector<TokenText> texts = spread(model.texts(), kExampleTexts);
  const HeadExamples found =
      head_examples(model.model(), model.engine(), texts, head, {.precision = model.precision()});
  const bool reads = model.spec().has_source() && head.stack == Stack::encoder, across = head.stack == Stack::cross;
  Json examples = Json::array();
  for (const HeadExample& one : found.examples) {
    const TokenText& text = texts[one.text];
    Json made{{"decile", one.decile},
              {"row", one.row},
              {"key", one.key},
              {"strength", brief(one.strength)},
              {"weights", brief(one.weights)},
              {"tokens", shown_text_json(model, reads ? text.source : text.ids)}};
    if (across) made["source"] = shown_text_json(model, text.source);
    examples.push_back(std::move(made));
  }
  return report_response({{"head", name_of(model.spec(), head)},
                          {"rows", found.rows},
                          {"texts", texts.size()},
                          {"deciles", found.deciles},
                          {"examples", std::move(examples)}});
}

HttpResponse page_twins(PageParts& page, const Fields& fields) {
  PageModel& model = page_model_of(page, fields);
  const auto heads = static_cast<int64_t>(all_heads(model.spec()).size());
  if (heads > kMostTwinHeads) {
    fields.fail("model", "has " + std::to_string(heads) + " heads; pairs of at most " + std::to_string(kMostTwinHeads) +
                             " are compared");
  }
  const double pairs = static_cast<double>(heads * (heads - 1)) / 2;
  const auto rows = static_cast<int64_t>(kTwinCells / (pairs * static_cast<double>(kTwinLength)));
  return json_response(page.measurements.ask("twins " + model.name(), [&model, rows](const Reader::Finished& finished) {
    Reader reader(model.model(), model.engine(), {.precision = model.precision()});
    return twins_json(model, find_twins(reader, spread(model.texts(), kTwinTexts),
                                        {.map_rows = std::clamp<int64_t>(rows, 32, kTwinRows),
                                         .map_length = kTwinLength,
                                         .finished = finished}));
  }));
}

}  // namespace qkv::server
