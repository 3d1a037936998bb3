#include "see/heads_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "common/drawing.h"

namespace qkv::app {
namespace {

// A role on the wall: one letter and a colour.
struct Sign {
  std::string_view role;
  const char* letter;
  Ink ink;
};
constexpr Sign kSigns[] = {
    {"always previous token", "P", Ink::cyan},
    {"always next token", "N", Ink::cyan},
    {"previous token", "p", Ink::cyan},
    {"next token", "n", Ink::cyan},
    {"current token", "c", Ink::blue},
    {"two back", "2", Ink::blue},
    {"three back", "3", Ink::blue},
    {"four back", "4", Ink::blue},
    {"duplicate token", "d", Ink::yellow},
    {"duplicate of random tokens", "D", Ink::yellow},
    {"induction", "i", Ink::red},
    {"induction on random tokens", "I", Ink::red},
    {"first token", "f", Ink::dim},
    {"learned sink", "s", Ink::dim},
    {"punctuation", ",", Ink::green},
    {"separators", "|", Ink::green},
    {"rare word", "r", Ink::magenta},
};
const Sign& sign_of(const RoleRule& rule) {
  return *std::find_if(std::begin(kSigns), std::end(kSigns) - 1, [&](const Sign& s) { return s.role == rule.name; });
}

std::string interval(const Estimate& e) {
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", e.mean, e.low, e.high);
}
std::string percent(const Estimate& e) {
  return fmt::format("{:.1f} % [{:.1f}, {:.1f}]", 100 * e.mean, 100 * e.low, 100 * e.high);
}

void show_role(const std::string& head, const Role& role) {
  std::cout << in_cells(head, 7) << in_cells(role.rule->name, 27) << interval(role.score) << '\n';
  std::string more = fmt::format("explains {} of its attention, n {}", percent(role.coverage), role.score.n);
  if (role.coverage.n == 0) more = fmt::format("n {}", role.score.n);
  if (role.value_weighted.n > 0) more += fmt::format(", weighted by |v| {:.3f}", role.value_weighted.mean);
  if (role.copies) more += ", copies";
  std::cout << "       " << inked(Ink::dim, more) << '\n';
}

// Layers from top to bottom, heads from left to right.
void show_wall(const HeadsReport& report, const std::vector<std::vector<Role>>& roles) {
  int64_t most = 0;
  for (const Place place : all_attentions(*report.spec)) most = std::max(most, attention_at(*report.spec, place).heads);
  const bool wide = 7 + 2 * most <= terminal_columns();
  std::vector<const Sign*> used;
  size_t h = 0;
  for (const Place place : all_attentions(*report.spec)) {
    std::string line = in_cells(name_of(*report.spec, place), 7);
    for (int64_t i = 0; i < attention_at(*report.spec, place).heads; ++i, ++h) {
      const Sign* sign = roles[h].empty() ? nullptr : &sign_of(*roles[h].front().rule);
      line += sign == nullptr ? inked(Ink::dim, "·") : inked(sign->ink, sign->letter);
      if (wide) line += ' ';
      if (sign != nullptr && std::find(used.begin(), used.end(), sign) == used.end()) used.push_back(sign);
    }
    std::cout << line << '\n';
  }
  for (const Sign* sign : used) std::cout << "  " << inked(sign->ink, sign->letter) << ' ' << sign->role << '\n';
  std::cout << "  " << inked(Ink::dim, "·") << " none found\n";
}

void show_labels(const ModelSpec& spec, const LabelScores& labels) {
  const std::vector<HeadId> heads = all_heads(spec);
  std::cout << fmt::format("\ngold labels: {} words in {} texts, {} questions", labels.words, labels.texts,
                           labels.decisions);
  if (labels.lost > 0) std::cout << fmt::format(" ({} more about words cut off or too early)", labels.lost);
  std::cout << '\n';
  if (labels.earlier_only)
    std::cout << "this model sees only what is left of a word: scores and baselines\nare over labels whose other end "
                 "is earlier\n";
  std::cout << "each head is chosen on every other text and judged on the rest\n";
  for (const LabelScore& label : labels.labels) {
    const LabelScore::Baseline& baseline = label.best_baseline();
    std::cout << inked(label.found() ? Ink::bold : Ink::plain, label.name) << inked(Ink::dim, ", " + label.direction)
              << '\n';
    std::cout << fmt::format("  {:<7}{}  {}\n", name_of(spec, heads[label.head]), percent(label.judged),
                             label.found() ? "explains " + percent(label.judged_coverage) : "not found");
    std::cout << inked(Ink::dim,
                       fmt::format("  without attention: {} {:.1f} %, n {}; where it was chosen {:.1f} %, n {}",
                                   baseline.name, 100 * baseline.score.mean, label.judged.n, 100 * label.chosen.mean,
                                   label.chosen.n))
              << '\n';
  }
}

}  // namespace

void show(const HeadsReport& report) {
  const RoleScores& scores = report.roles;
  std::cout << fmt::format("{} heads, {} texts, {} tokens; {} rows key by key\n", scores.heads.size(), scores.texts,
                           scores.tokens, scores.rows);
  std::vector<std::vector<Role>> roles;
  size_t none = 0;
  for (const HeadScore& head : scores.heads) {
    roles.push_back(roles_of(head));
    if (roles.back().empty()) ++none;
    for (size_t r = 0; r < roles.back().size(); ++r)
      show_role(r == 0 ? name_of(*report.spec, head.id) : "", roles.back()[r]);
  }
  std::cout << (none == scores.heads.size() ? "none found"
                                            : fmt::format("none found in {} of {} heads", none, scores.heads.size()))
            << "\n\n";
  show_wall(report, roles);
  const std::vector<LazyHead> lazy = lazy_heads(scores);
  std::string maybe;
  for (size_t h = 0; h < lazy.size(); ++h) {
    if (lazy[h].maybe()) maybe += (maybe.empty() ? "" : ", ") + name_of(*report.spec, scores.heads[h].id);
  }
  if (!maybe.empty())
    std::cout << "rest on one token and write little, perhaps unused (check with qkv cut): " << maybe << '\n';
  if (report.labels) show_labels(*report.spec, *report.labels);
  std::cout << '\n';
  for (const std::string& what : scores.missing) std::cout << inked(Ink::dim, "not measured: " + what) << '\n';
  const auto price = [&](double rate) { return 100 * (report.plain / rate - 1); };
  const std::string cost = fmt::format(
      "cost: {:.0f} tokens/s without reading heads; time for kernel statistics {:+.0f} %, for everything {:+.0f} %",
      report.plain, price(report.fast), price(report.all));
  for (const std::string& line : wrap(cost, terminal_columns())) std::cout << inked(Ink::dim, line) << '\n';
}

}  // namespace qkv::app
