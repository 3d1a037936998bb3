// The rules that turn scores into roles, and their thresholds.
#include <algorithm>

#include "base/error.h"
#include "inspect/heads/head_roles.h"

namespace qkv {
namespace {

constexpr double kOften = 0.9, kMuch = 0.4, kSinks = 0.3;

constexpr const char* kVoita = "Voita et al. 2019: a head is positional from 90 %";
constexpr const char* kShare =
    "two fifths of the head's attention: in long texts no mixture of other roles reaches that";
constexpr const char* kGu = "Gu et al. 2024: attention sinks from 0.3";
constexpr const char* kTwoFifths = "two fifths, in rows that have an earlier copy";
constexpr const char* kAboveUniform = "0.3 more than uniform attention";

constexpr RoleRule kRules[] = {
    {"always previous token", Measure::at_previous, Measure::previous, kOften, kVoita},
    {"always next token", Measure::at_next, Measure::next, kOften, kVoita},
    {"previous token", Measure::previous, Measure::previous, kMuch, kShare},
    {"next token", Measure::next, Measure::next, kMuch, kShare},
    {"current token", Measure::current, Measure::current, kMuch, kShare},
    {"two back", Measure::back2, Measure::back2, kMuch, kShare},
    {"three back", Measure::back3, Measure::back3, kMuch, kShare},
    {"four back", Measure::back4, Measure::back4, kMuch, kShare},
    {"duplicate token", Measure::duplicate, Measure::duplicate_mass, kMuch, kTwoFifths},
    {"duplicate of random tokens", Measure::repeat_duplicate, Measure::repeat_duplicate_mass, kMuch, kTwoFifths},
    {"induction", Measure::induction, Measure::induction_mass, kMuch, kTwoFifths},
    {"induction on random tokens", Measure::repeat_induction, Measure::repeat_induction_mass, kMuch, kTwoFifths},
    {"first token", Measure::first, Measure::first, kSinks, kGu},
    {"learned sink", Measure::sink, Measure::sink, kSinks, kGu},
    {"punctuation", Measure::punctuation, Measure::punctuation_mass, kSinks, kAboveUniform},
    {"separators", Measure::special, Measure::special_mass, kSinks, kAboveUniform},
    {"rare word", Measure::rare, Measure::rare, 0.5, "every second row; Voita et al. 2019 saw 66 % and 83 %"},
};

constexpr double kAboveChance = 2;  // times the score of uniform attention

}  // namespace

bool is_role(const Estimate& score, double threshold, double chance) {
  return score.has_interval() && score.low >= threshold && score.low >= kAboveChance * chance;
}

std::span<const RoleRule> role_rules() {
  return kRules;
}

std::vector<Role> roles_of(const HeadScore& head) {
  std::vector<Role> found;
  for (const RoleRule& rule : kRules) {
    const auto m = static_cast<size_t>(rule.score);
    if (!is_role(head.values[m], rule.threshold, head.chance[m])) continue;
    const Estimate& copying = head[Measure::copying];
    const bool inducing = rule.score == Measure::induction || rule.score == Measure::repeat_induction;
    found.push_back({.rule = &rule,
                     .score = head.values[m],
                     .coverage = head[rule.coverage],
                     .value_weighted = head.value_weighted[m],
                     .chance = head.chance[m],
                     .copies = inducing && copying.has_interval() && copying.low > 0});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Role& a, const Role& b) { return a.coverage.mean > b.coverage.mean; });
  return found;
}

std::vector<LazyHead> lazy_heads(const RoleScores& scores, std::span<const Estimate> cut) {
  QKV_CHECK(cut.empty() || cut.size() == scores.heads.size(), cut.size(), " heads were cut but ", scores.heads.size(),
            " measured", Hint("cut each of them, in the order of all_heads()"));
  std::vector<double> writes;
  for (const HeadScore& head : scores.heads) {
    if (head[Measure::write].n > 0) writes.push_back(head[Measure::write].mean);
  }
  std::sort(writes.begin(), writes.end());
  std::vector<LazyHead> found;
  for (size_t h = 0; h < scores.heads.size(); ++h) {
    const HeadScore& head = scores.heads[h];
    LazyHead one{.rests = head[Measure::first].mean >= 0.9 || head[Measure::entropy].mean >= 0.95};
    const auto lower = std::lower_bound(writes.begin(), writes.end(), head[Measure::write].mean) - writes.begin();
    one.writes_little = head[Measure::write].n > 0 && 10 * lower < std::ssize(writes);
    if (!cut.empty() && cut[h].n > 0) one.not_missed = cut[h].low <= 0 && cut[h].high >= 0;
    found.push_back(one);
  }
  return found;
}

}  // namespace qkv
