#include "base/error.h"
#include "base/file.h"
#include "inspect/heads/head_roles.h"
#include "inspect/watch/movie.h"

namespace qkv {
namespace {

constexpr size_t kPoints = 1000;  // of the loss curve; longer logs are thinned out

enum class Edge : uint8_t { mean, low, high };

Json list(const std::vector<Estimate>& all, Edge edge) {
  Json made = Json::array();
  for (const Estimate& e : all) {
    if (e.n == 0 || (edge != Edge::mean && !e.has_interval())) {
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

Json thresholds() {
  Json made = Json::object();
  for (size_t r = 0; r < kWatchedRoles; ++r) {
    const auto role = static_cast<WatchedRole>(r);
    if (const std::optional<double> least = threshold_of(role)) made[name_of(role)] = *least;
  }
  return made;
}

// --- reading ---------------------------------------------------------------------------------------------------------

// Lists of a report with one entry per snapshot.
class Told {
 public:
  Told(const Json& part, const std::string& what) : part_(part), what_(what), snapshots_(part.at("steps").size()) {}

  ToldMovie run() const {
    ToldMovie told{.texts = part_.at("embedding").at("tokens")};
    Movie& movie = told.movie;
    movie.steps = part_.at("steps").get<std::vector<int64_t>>();
    QKV_CHECK(!movie.steps.empty(), what_, ": the movie has no snapshots", Hint("write it again: qkv movie RUN --out"));
    const Json &measured = part_.at("measured"), &cost = part_.at("cost");
    movie.plan.texts = measured.at("texts");
    movie.plan.rows = measured.at("tokens");
    movie.plan.held_out = measured.at("held_out");
    movie.loss = with_intervals(measured.at("loss"));
    movie.unigram = with_intervals(measured.at("kl_unigram"));
    movie.bigram = with_intervals(measured.at("kl_bigram"));
    movie.icl = series(measured.at("icl"));
    for (const Json& head : part_.at("heads")) movie.heads.push_back(head_of(head));
    QKV_CHECK(!movie.heads.empty(), what_, ": the movie has no heads", Hint("write it again: qkv movie RUN --out"));
    for (const Json& w : part_.at("weights")) {
      movie.weights.push_back({w.at("name"), numbers(w.at("moved")), numbers(w.at("cosine")), numbers(w.at("update"))});
    }
    movie.embedding = embedding(part_.at("embedding"), told.texts.size());
    for (const Json& phase : part_.at("phases")) {
      movie.phases.push_back({.name = phase.at("name"), .reason = phase.at("reason"), .numbers = phase.at("numbers")});
      if (!phase.at("step").is_null()) movie.phases.back().step = phase.at("step");
    }
    for (const Json& at : part_.at("loss")) {
      movie.log.push_back({at.at("step"), value(at.at("loss")), value(at.at("val"))});
    }
    for (const Json& sample : part_.at("samples")) movie.samples.push_back({sample.at("step"), sample.at("text")});
    movie.watch_seconds = cost.at("watch_seconds");
    movie.train_seconds = cost.at("train_seconds");
    return told;
  }

 private:
  const Json& checked(const Json& list, size_t size) const {
    QKV_CHECK(list.is_array() && list.size() == size, what_, ": a list of the movie has ", list.size(),
              " entries but should have ", size, Hint("write it again: qkv movie RUN --out"));
    return list;
  }
  static std::optional<double> value(const Json& json) {
    return json.is_null() ? std::nullopt : std::optional(json.get<double>());
  }
  std::vector<double> numbers(const Json& list) const { return checked(list, snapshots_).get<std::vector<double>>(); }
  Series series(const Json& list) const {
    Series made;
    for (const Json& each : checked(list, snapshots_)) made.push_back(value(each));
    return made;
  }
  std::vector<Estimate> estimates_of(const Json& mean, const Json& low, const Json& high, const Json& n) const {
    const Series means = series(mean), lows = series(low), highs = series(high);
    std::vector<Estimate> made(snapshots_);
    for (size_t s = 0; s < snapshots_; ++s) {
      const int64_t count = n.is_array() ? checked(n, snapshots_)[s].get<int64_t>() : n.get<int64_t>();
      if (!means[s]) continue;
      made[s] = {*means[s], lows[s].value_or(*means[s]), highs[s].value_or(*means[s]), count};
      made[s].texts = lows[s] ? Estimate::kFewestTexts : 1;
    }
    return made;
  }
  std::vector<Estimate> with_intervals(const Json& of) const {
    return estimates_of(of.at("mean"), of.at("low"), of.at("high"), of.at("n"));
  }
  Movie::Head head_of(const Json& json) const {
    Movie::Head head{.name = json.at("name")};
    for (size_t r = 0; r < kWatchedRoles; ++r) {
      const std::string name = name_of(static_cast<WatchedRole>(r));
      head.roles[r].resize(snapshots_);
      if (!json.at("roles").contains(name)) continue;
      const Json& interval = json.at("intervals").at(name);
      head.roles[r] =
          estimates_of(json.at("roles").at(name), interval.at("low"), interval.at("high"), interval.at("n"));
    }
    head.importance = with_intervals(json.at("importance_interval"));
    head.in_layer = series(json.at("importance_in_layer"));
    return head;
  }
  Movie::Embedding embedding(const Json& json, size_t tokens) const {
    Movie::Embedding made{.share = json.at("share")};
    for (const auto& [key, to] : {std::pair("x", &made.x), {"y", &made.y}}) {
      if (json.at(key).empty()) continue;  // a model without embeddings
      for (const Json& at : checked(json.at(key), snapshots_)) to->push_back(checked(at, tokens));
    }
    if (!made.x.empty()) made.neighbours = numbers(json.at("neighbours"));
    made.basis = json.value("basis", part_.at("steps").back().get<int64_t>());
    return made;
  }

  const Json& part_;
  const std::string& what_;
  size_t snapshots_;
};

}  // namespace

std::optional<double> threshold_of(WatchedRole role) {
  for (const auto& [watched, measure] : {std::pair(WatchedRole::previous, Measure::previous),
                                         {WatchedRole::duplicate, Measure::repeat_duplicate},
                                         {WatchedRole::induction, Measure::repeat_induction},
                                         {WatchedRole::first, Measure::first}}) {
    for (const RoleRule& rule : role_rules()) {
      if (watched == role && rule.score == measure) return rule.threshold;
    }
  }
  return std::nullopt;
}

bool has_role(WatchedRole role, const Estimate& score) {
  const std::optional<double> least = threshold_of(role);
  return least && is_role(score, *least, 0);  // snapshots do not know the score of uniform attention
}

ToldMovie read_movie(const std::filesystem::path& report) {
  constexpr size_t kLargest = 64 << 20;
  const std::string what = report.string();
  const Json json = parse_json(read_file(report, kLargest), what, {.tree = 40 * kLargest});
  try {
    return Told(json.at("movie"), what).run();
  } catch (const Json::exception& e) {
    QKV_FAIL(what, " is not the report of a movie: ", e.what(), Hint("qkv movie RUN --out FILE writes one"));
  }
}

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
            {"basis", movie.embedding.basis},
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
