#include "server/jobs/lab_job.h"

#include <algorithm>
#include <optional>

#include "labs/recorded.h"

namespace qkv::server {
namespace {

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

OrderedJson lab_json(const Lab& lab) {
  OrderedJson rules = OrderedJson::array();
  for (const LabRule& rule : lab.rules) {
    rules.push_back({{"number", rule.number},
                     {"side", rule.side == LabRule::Side::above ? "above" : "below"},
                     {"bound", rule.bound},
                     {"why", rule.why}});
  }
  return {{"name", lab.name},
          {"claim", on_one_line(lab.claim)},
          {"claim_zh", on_one_line(lab.claim_zh)},
          {"how", on_one_line(lab.how)},
          {"seeds", lab.seeds},
          {"rules", std::move(rules)},
          {"recorded", recorded_report(lab)}};
}

LabJob::LabJob(const Lab& lab, int64_t seeds) : lab_(lab), seeds_(seeds) {
  const OrderedJson record = recorded_report(lab);
  if (record.is_object()) of_a_seed_ = record.value("checks", int64_t{0});
}

std::vector<std::string> LabJob::command() const {
  return {"lab", lab_.name, "--lines", "--seeds", std::to_string(seeds_)};
}

void LabJob::hear(const std::string& line) {
  OrderedJson said = OrderedJson::parse(line, nullptr, false);
  if (!said.is_object()) return;
  heard_ = true;
  if (said.contains("verdict")) {
    report_ = std::move(said);
    return;
  }
  const auto seed = said.value("seed", seed_);
  if (seed > seed_) of_a_seed_ = checks_;  // what the last one took
  seed_ = seed;
  checks_ = said.value("checks", int64_t{0});
  doing_ = said.value("doing", std::string());
}

JobNews LabJob::news() {
  JobNews news;
  news.any = std::exchange(heard_, false);
  return news;
}

JobNews LabJob::last_news(int) {
  return {.any = true};
}

Job::State LabJob::end_state(int, bool asked) const {
  if (report_.is_object()) return report_.value("stopped", false) ? State::stopped : State::finished;
  return asked ? State::stopped : State::failed;
}

// Seeds that are done, and of this one as many checks as another one took.
std::optional<double> LabJob::share() const {
  if (report_.is_object()) return 1;
  const auto seeds = static_cast<double>(seeds_), done = static_cast<double>(seed_ - 1);
  if (of_a_seed_ == 0) return seed_ > 1 ? std::optional(done / seeds) : std::nullopt;
  return (done + std::min(static_cast<double>(checks_) / static_cast<double>(of_a_seed_), 1.0)) / seeds;
}

OrderedJson LabJob::json() const {
  OrderedJson made{{"name", lab_.name}, {"seed", seed_}, {"seeds", seeds_}, {"doing", doing_}};
  const std::optional<double> done = share();
  made["share"] = done ? OrderedJson(*done) : OrderedJson(nullptr);
  return made;
}

}  // namespace qkv::server
