#include "inspect/report/heads_report.h"

#include "text/chat/ordered_json.h"

namespace qkv {
namespace {

OrderedJson json_of(const Estimate& e) {
  OrderedJson made{{"mean", e.mean}, {"n", e.n}, {"texts", e.texts}};
  if (e.has_interval()) made["interval95"] = {e.low, e.high};
  return made;
}

OrderedJson json_of(const std::optional<LabelCause>& cause) {
  if (!cause) return nullptr;
  return {{"pairs_differ_in", cause->change},      {"pairs", cause->made},
          {"usable_pairs", cause->usable},         {"restored", json_of(cause->restored)},
          {"other_heads", json_of(cause->others)}, {"above_other_heads", json_of(cause->above)},
          {"least", LabelCause::kLeastRestored},   {"holds", cause->holds()}};
}

OrderedJson json_of(const LazyHead& lazy) {
  OrderedJson made{{"rests", lazy.rests}, {"writes_little", lazy.writes_little}};
  made["not_missed"] = lazy.not_missed ? OrderedJson(*lazy.not_missed) : OrderedJson(nullptr);
  made["lazy"] = lazy.lazy()    ? OrderedJson(true)
                 : lazy.maybe() ? OrderedJson("not known until it is cut")
                                : OrderedJson(false);
  return made;
}

}  // namespace

nlohmann::ordered_json roles_json(const HeadScore& head) {
  OrderedJson roles = OrderedJson::array();
  for (const Role& role : roles_of(head)) {
    OrderedJson r{{"name", role.rule->name},
                  {"score", role.score.mean},
                  {"low", role.score.low},
                  {"high", role.score.high},
                  {"n", role.score.n},
                  {"texts", role.score.texts},
                  {"coverage", json_of(role.coverage)},
                  {"chance", role.chance}};
    if (role.value_weighted.n > 0) r["value_weighted"] = json_of(role.value_weighted);
    if (role.rule->score == Measure::induction || role.rule->score == Measure::repeat_induction)
      r["copies"] = role.copies;
    roles.push_back(std::move(r));
  }
  return roles;
}

nlohmann::ordered_json label_roles_json(const LabelScores& labels, size_t head) {
  OrderedJson roles = OrderedJson::array();
  for (const LabelScore& label : labels.labels) {
    if (label.head != head || !label.found()) continue;
    roles.push_back({{"name", label.name + ": " + label.direction},
                     {"score", label.judged.mean},
                     {"low", label.judged.low},
                     {"high", label.judged.high},
                     {"n", label.judged.n},
                     {"texts", label.judged.texts},
                     {"mass", json_of(label.judged_mass)},
                     {"cause", json_of(label.cause)},
                     {"coverage", json_of(label.judged_coverage)},
                     {"chance", label.best_baseline().score.mean},
                     {"baseline", label.best_baseline().name}});
  }
  return roles;
}

nlohmann::ordered_json to_json(const HeadsReport& report) {
  const RoleScores& scores = report.roles;
  OrderedJson made{{"report", "heads"},
                   {"model", report.model},
                   {"data", report.data},
                   {"texts", scores.texts},
                   {"tokens", scores.tokens},
                   {"rows_key_by_key", scores.rows},
                   {"not_measured", scores.missing}};
  if (report.plain > 0) {
    made["tokens_per_second"] = {
        {"plain", report.plain}, {"kernel_statistics", report.fast}, {"everything", report.all}};
  }
  made["comparisons"] = std::ssize(scores.heads) * std::ssize(role_rules());
  made["rules"] = OrderedJson::array();
  for (const RoleRule& rule : role_rules()) {
    made["rules"].push_back({{"role", rule.name},
                             {"measure", name_of(rule.score)},
                             {"coverage", name_of(rule.coverage)},
                             {"threshold", rule.threshold},
                             {"why", rule.why}});
  }
  const std::vector<LazyHead> lazy = lazy_heads(scores);
  made["heads"] = OrderedJson::array();
  for (size_t h = 0; h < scores.heads.size(); ++h) {
    const HeadScore& head = scores.heads[h];
    OrderedJson one{{"name", name_of(*report.spec, head.id)},
                    {"stack", head.id.stack == Stack::encoder ? "encoder"
                              : head.id.stack == Stack::cross ? "cross"
                                                              : "decoder"},
                    {"layer", head.id.layer},
                    {"head", head.id.head}};
    one["roles"] = roles_json(head);
    for (size_t m = 0; m < kMeasures; ++m) {
      if (head.values[m].n == 0) continue;
      OrderedJson value = json_of(head.values[m]);
      if (head.chance[m] > 0) value["chance"] = head.chance[m];
      if (head.value_weighted[m].n > 0) value["value_weighted"] = json_of(head.value_weighted[m]);
      one["measures"][name_of(static_cast<Measure>(m))] = std::move(value);
    }
    one["lazy"] = json_of(lazy[h]);
    made["heads"].push_back(std::move(one));
  }
  if (!report.labels) return made;
  const std::vector<HeadId> ids = all_heads(*report.spec);
  OrderedJson labels{{"words", report.labels->words},
                     {"questions", report.labels->decisions},
                     {"lost", report.labels->lost},
                     {"earlier_only", report.labels->earlier_only},
                     {"comparisons", report.labels->comparisons},
                     {"least_mass", LabelScore::kLeastMass},
                     {"margin", LabelScore::kMargin}};
  for (const LabelScore& label : report.labels->labels) {
    OrderedJson one{{"label", label.name}, {"direction", label.direction}};
    for (const auto& baseline : label.baselines) one["baselines"][baseline.name] = json_of(baseline.score);
    for (size_t h = 0; h < ids.size(); ++h) {
      if (label.accuracy[h].n == 0) continue;
      one["heads"].push_back({{"name", name_of(*report.spec, ids[h])},
                              {"accuracy", json_of(label.accuracy[h])},
                              {"coverage", json_of(label.coverage[h])},
                              {"mass", json_of(label.mass[h])},
                              {"on_itself", json_of(label.own[h])}});
    }
    one["head"] = {{"name", name_of(*report.spec, ids[label.head])},
                   {"where_chosen", json_of(label.chosen)},
                   {"accuracy", json_of(label.judged)},
                   {"coverage", json_of(label.judged_coverage)},
                   {"above_baseline", json_of(label.above)},
                   {"mass", json_of(label.judged_mass)},
                   {"on_itself", json_of(label.judged_own)},
                   {"right", label.right()},
                   {"attends", label.attends()},
                   {"cause", json_of(label.cause)},
                   {"found", label.found()}};
    if (label.cause) {
      one["head"]["cause"]["most"] = {{"name", name_of(*report.spec, ids[label.cause->most_head])},
                                      {"restored", json_of(label.cause->most)}};
    }
    if (!label.cause) {
      one["head"]["no_cause"] = label.no_cause;
      one["head"]["by_attention_alone"] = label.found();
    }
    labels["scores"].push_back(std::move(one));
  }
  made["labels"] = std::move(labels);
  return made;
}

}  // namespace qkv
