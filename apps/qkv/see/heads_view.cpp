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
  std::string more = fmt::format("n {} in {} texts", role.score.n, role.score.texts);
  if (role.coverage.n > 0) more = fmt::format("explains {} of its attention, {}", percent(role.coverage), more);
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

// Why a relation is found, or which of its conditions fails.
std::string verdict_of(const LabelScore& label) {
  if (!label.right()) return "not found: no ten points above the best guess without attention";
  if (!label.attends()) {
    return fmt::format("not found: less than {:.0f} % of its attention goes there", 100 * LabelScore::kLeastMass);
  }
  if (label.cause) return label.cause->holds() ? "found" : "not found: it brings too little from there";
  return (label.unpaired ? "found by attention alone: " : "not found: ") + label.no_cause;
}

void show_label(const ModelSpec& spec, const std::vector<HeadId>& heads, const LabelScore& label) {
  const LabelScore::Baseline& baseline = label.best_baseline();
  std::cout << inked(label.found() ? Ink::bold : Ink::plain, label.name) << inked(Ink::dim, ", " + label.direction)
            << '\n'
            << fmt::format("  {:<7}{}  {}\n", name_of(spec, heads[label.head]), percent(label.judged),
                           verdict_of(label));
  const auto line = [](const std::string& text) { std::cout << inked(Ink::dim, "  " + text) << '\n'; };
  line(fmt::format("without attention: {} {:.1f} %, less by {}; n {} in {} texts; where it was chosen {:.1f} %, n {}",
                   baseline.name, 100 * baseline.score.mean, percent(label.above), label.judged.n, label.judged.texts,
                   100 * label.chosen.mean, label.chosen.n));
  line(fmt::format("of the word's attention {} goes there, {:.1f} % to the word itself; explains {} of the head's",
                   percent(label.judged_mass), 100 * label.judged_own.mean, percent(label.judged_coverage)));
  if (!label.cause) return;
  const LabelCause& cause = *label.cause;
  line(
      fmt::format("patched at that word alone it brings back {}, other heads on average {:.1f} %; {}, {} of {} pairs "
                  "have different answers",
                  percent(cause.restored), 100 * cause.others.mean, cause.change, cause.usable, cause.made));
  if (cause.most_head != label.head) {
    line(fmt::format("most of all brings {}: {}", name_of(spec, heads[cause.most_head]), percent(cause.most)));
  }
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
  std::cout << "a head is right if, of the other words, the labelled one has the most of its attention\n"
            << "each head is chosen on every other text and judged on the rest\n"
            << fmt::format("{} labels were asked; the intervals do not correct for so many comparisons\n",
                           labels.comparisons);
  for (const LabelScore& label : labels.labels) show_label(spec, heads, label);
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
            << '\n'
            << fmt::format("{} heads times {} rules are {} comparisons; the intervals do not correct for so many\n\n",
                           scores.heads.size(), role_rules().size(), scores.heads.size() * role_rules().size());
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
