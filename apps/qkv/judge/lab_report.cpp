#include "judge/lab_report.h"

#include "help/version.h"
#include "inspect/report/report_html.h"
#include "server/jobs/lab_job.h"

namespace qkv::app {
namespace {

OrderedJson parts_json(const Lab& lab, const LabResult& result) {
  OrderedJson parts = OrderedJson::array();
  for (size_t i = 0; i < lab.parts.size(); ++i) {
    const LabPart& part = lab.parts[i];
    const LabSentence found = part_conclusion(lab, result, i);
    parts.push_back({{"name", part.name},
                     {"name_zh", part.name_zh},
                     {"claim", part.claim.english},
                     {"claim_zh", part.claim.chinese},
                     {"verdict", skipped_part(lab, result, i) != nullptr ? "skipped" : name_of(result.parts[i])},
                     {"found", found.english},
                     {"found_zh", found.chinese}});
  }
  return parts;
}

}  // namespace

OrderedJson lab_report(const Lab& lab, const LabResult& result, const Engine& engine, double size) {
  const LabSentence found = conclusion(lab, result);
  OrderedJson out{{"lab", lab.name},
                  {"claim", lab.claim},
                  {"verdict", name_of(result.verdict)},
                  {"found", found.english},
                  {"found_zh", found.chinese},
                  {"stopped", result.stopped},
                  {"seeds", result.seeds},
                  {"seconds", result.seconds},
                  {"cpu_seconds", result.cpu_seconds},
                  {"checks", result.each.front().checks},
                  {"size", size},
                  {"commit", built_from()},
                  {"device", engine.device().name()},
                  {"threads", engine.threads()},
                  {"interval", "95 %, Student's t over seeds, on a scale that ends where the number ends"},
                  {"parts", parts_json(lab, result)},
                  {"rows", OrderedJson::array()},
                  {"rules", OrderedJson::array()},
                  {"curves", OrderedJson::array()}};
  for (const LabRow& row : result.rows) {
    OrderedJson one{{"name", row.name}, {"n", row.values.size()}, {"values", row.values}};
    if (!row.label) one.update({{"mean", row.mean}, {"low", row.low}, {"high", row.high}});
    out["rows"].push_back(std::move(one));
  }
  for (const Judged& j : result.judged) {
    OrderedJson rule{{"number", j.rule.number},
                     {"side", j.rule.side == LabRule::Side::above ? "above" : "below"},
                     {"bound", j.rule.bound},
                     {"why", j.rule.why},
                     {"held", j.skipped ? OrderedJson(nullptr) : OrderedJson(j.held)}};
    if (j.rule.part >= 0) rule["part"] = lab.parts[static_cast<size_t>(j.rule.part)].name;
    out["rules"].push_back(std::move(rule));
  }
  if (lab.parts.empty()) out.erase("parts");
  for (size_t c = 0; c < result.curves.size(); ++c) {
    const SeedNumbers::Curve& mean = result.curves[c];
    OrderedJson curve{{"x", mean.x}, {"y", mean.y}, {"series", mean.series}, {"points", OrderedJson::array()}};
    for (size_t p = 0; p < mean.points.size(); ++p) {
      OrderedJson values = OrderedJson::array();
      for (const SeedNumbers& seed : result.each) values.push_back(seed.curves[c].points[p].y);
      curve["points"].push_back({{"x", mean.points[p].x}, {"mean", mean.points[p].y}, {"values", values}});
    }
    out["curves"].push_back(std::move(curve));
  }
  return out;
}

std::string labs_html(std::span<const OrderedJson> reports, const std::string& made_with) {
  OrderedJson labs = OrderedJson::array();
  for (const OrderedJson& report : reports) {
    OrderedJson one = server::lab_json(lab_named(report.at("lab").get<std::string>()));
    one["here"] = report;
    labs.push_back(std::move(one));
  }
  return report_html(Json{{"report", "labs"}, {"made_with", made_with}, {"labs", Json::parse(labs.dump())}});
}

}  // namespace qkv::app
