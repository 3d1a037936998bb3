#include "inspect/heads/head_roles.h"
#include "inspect/watch/movie.h"

namespace qkv {
namespace {

constexpr size_t kPoints = 1000;  // of the loss curve; longer logs are thinned out

enum class Edge : uint8_t { mean, low, high };

Json list(const std::vector<Estimate>& all, Edge edge) {
  Json made = Json::array();
  for (const Estimate& e : all) {
    if (e.n == 0) {
      made.push_back(nullptr);
    } else {
      made.push_back(edge == Edge::mean ? e.mean : edge == Edge::low ? e.low : e.high);
    }
  }
  return made;
}

Json with_interval(const std::vector<Estimate>& all) {
  Json n = Json::array();
  for (const Estimate& e : all) n.push_back(e.n);
  return {{"mean", list(all, Edge::mean)}, {"low", list(all, Edge::low)}, {"high", list(all, Edge::high)}, {"n", n}};
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json loss_json(const std::vector<Movie::Logged>& log) {
  Json made = Json::array();
  const size_t every = log.size() / kPoints + 1;
  for (size_t i = 0; i < log.size(); ++i) {
    if (i % every != 0 && !log[i].held_out && i + 1 < log.size()) continue;
    made.push_back({{"step", log[i].step}, {"loss", or_null(log[i].loss)}, {"val", or_null(log[i].held_out)}});
  }
  return made;
}

Json head_json(const Movie::Head& head) {
  Json roles = Json::object(), intervals = Json::object();
  for (size_t r = 0; r < kWatchedRoles; ++r) {
    const std::string name = name_of(static_cast<WatchedRole>(r));
    if (head.roles[r].front().n == 0) continue;
    roles[name] = list(head.roles[r], Edge::mean);
    intervals[name] = {{"low", list(head.roles[r], Edge::low)},
                       {"high", list(head.roles[r], Edge::high)},
                       {"n", head.roles[r].front().n}};
  }
  Json in_layer = Json::array();
  for (const std::optional<double>& value : head.in_layer) in_layer.push_back(or_null(value));
  return {{"name", head.name},
          {"roles", roles},
          {"intervals", intervals},
          {"importance", list(head.importance, Edge::mean)},
          {"importance_interval", with_interval(head.importance)},
          {"importance_in_layer", in_layer}};
}

// From which score on a head has a role: the rule of qkv heads for the same measure.
Json thresholds() {
  Json made = Json::object();
  for (const auto& [role, measure] : {std::pair(WatchedRole::previous, Measure::previous),
                                      {WatchedRole::duplicate, Measure::repeat_duplicate},
                                      {WatchedRole::induction, Measure::repeat_induction},
                                      {WatchedRole::first, Measure::first}}) {
    for (const RoleRule& rule : role_rules()) {
      if (rule.score == measure) made[name_of(role)] = rule.threshold;
    }
  }
  return made;
}

}  // namespace

Json to_json(const Movie& movie, const std::vector<std::string>& texts) {
  Json heads = Json::array(), weights = Json::array(), phases = Json::array(), samples = Json::array(),
       icl = Json::array();
  for (const Movie::Head& head : movie.heads) heads.push_back(head_json(head));
  for (const Movie::Weight& w : movie.weights) {
    weights.push_back({{"name", w.name}, {"moved", w.moved}, {"cosine", w.cosine}, {"update", w.update}});
  }
  for (const Phase& phase : movie.phases) {
    phases.push_back({{"name", phase.name},
                      {"step", phase.step ? Json(*phase.step) : Json(nullptr)},
                      {"reason", phase.reason},
                      {"numbers", phase.numbers}});
  }
  for (const Movie::Sample& sample : movie.samples) samples.push_back({{"step", sample.step}, {"text", sample.text}});
  for (const std::optional<double>& value : movie.icl) icl.push_back(or_null(value));
  return {{"steps", movie.steps},
          {"loss", loss_json(movie.log)},
          {"heads", heads},
          {"thresholds", thresholds()},
          {"weights", weights},
          {"embedding",
           {{"tokens", texts},
            {"x", movie.embedding.x},
            {"y", movie.embedding.y},
            {"share", movie.embedding.share},
            {"neighbours", movie.embedding.neighbours}}},
          {"phases", phases},
          {"samples", samples},
          {"measured",
           {{"loss", with_interval(movie.loss)},
            {"kl_unigram", with_interval(movie.unigram)},
            {"kl_bigram", with_interval(movie.bigram)},
            {"icl", icl},
            {"texts", movie.plan.texts},
            {"tokens", movie.plan.rows},
            {"held_out", movie.plan.held_out},
            {"sketch", Snapshot::kSketch}}},
          {"cost", {{"watch_seconds", movie.watch_seconds}, {"train_seconds", movie.train_seconds}}}};
}

}  // namespace qkv
