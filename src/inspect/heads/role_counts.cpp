#include "inspect/heads/role_counts.h"

#include <cmath>
#include <map>

namespace qkv {
namespace {

using Group = ops::StatsRowsOnHost::Group;

constexpr int32_t kMostRows = 1024;  // of a group: one long text still fills a device
constexpr auto kSpecial = static_cast<size_t>(TokenKind::special);
constexpr std::array<int32_t, kMostWanted> kNoLabels{-1, -1};

// Rows of one text that lie together, in groups of bounded size.
std::vector<Group> groups_of(std::span<const PassTexts::At> rows) {
  std::vector<Group> groups;
  for (size_t r = 0; r < rows.size(); ++r) {
    const bool goes_on = r > 0 && rows[r].text == rows[r - 1].text && groups.back().rows < kMostRows;
    if (!goes_on) groups.push_back({.first_row = static_cast<int32_t>(r), .position = rows[r].position});
    ++groups.back().rows;
  }
  return groups;
}

// Of all kinds of punctuation.
double marks_of(const double* kinds) {
  double sum = 0;
  for (size_t k = 1; k < kSpecial; ++k) sum += kinds[k];
  return sum;
}

}  // namespace

StatsColumns RoleCounts::columns(const RoleTexts& texts, const AttentionSpec& spec, TextSide keys) {
  return {.offsets = spec.causal ? 5 : 6,
          .classes = texts.has_kinds() || spec.sinks ? kTokenKinds : 0,
          .wanted = texts.knows_rare(keys) ? kMostWanted : 0};
}

RoleCounts::RoleCounts(Context& cx, const RoleTexts& texts, const RoleView& view, std::span<const PassTexts::At> rows,
                       FunctionRef<RoleRow(const PassTexts::At&)> row_of)
    : kinds_(texts.has_kinds()) {
  ops::StatsRowsOnHost host{.groups = groups_of(rows)};
  host.weights.resize(rows.size());
  if (texts.knows_rare(view.keys)) {
    host.wanted.assign(rows.size(), kNoLabels);
    std::map<int32_t, int32_t> first;  // label of each text
    for (Group& group : host.groups) {
      const int32_t text = rows[static_cast<size_t>(group.first_row)].text;
      const auto [at, fresh] = first.try_emplace(text, static_cast<int32_t>(host.labels.size()));
      const std::vector<int32_t>& ids = texts.ids(view.keys, text);
      if (fresh) host.labels.insert(host.labels.end(), ids.begin(), ids.end());
      group.first_label = at->second;
    }
  }
  groups_.resize(host.groups.size());
  cx.exec.pool->run(std::ssize(groups_), [&](int64_t g, int) {
    const Group& group = host.groups[static_cast<size_t>(g)];
    Counted& counted = groups_[static_cast<size_t>(g)];
    counted.text = rows[static_cast<size_t>(group.first_row)].text;
    const std::optional<RoleTexts::Rare> rare = texts.rare(view.keys, counted.text);
    for (int32_t i = 0; i < group.rows; ++i) {
      const auto r = static_cast<size_t>(group.first_row + i);
      if (rows[r].position < kFirstCounted) continue;
      const RoleRow row = row_of(rows[r]);
      if (row.count() < 2) continue;
      count(counted, row, rare);
      host.weights[r] = {1, 1 / std::log(static_cast<double>(row.count())), row.is_mark ? 1.0 : 0.0};
      if (rare && row.sees(rare->at[0])) host.wanted[r] = rare->ids;
    }
  });
  rows_ = ops::stats_rows(cx, host);
}

void RoleCounts::count(Counted& group, const RoleRow& row, const std::optional<RoleTexts::Rare>& rare) const {
  ++group.rows;
  for (int64_t o = 0; o < 6; ++o) {
    if (row.sees(o < 5 ? row.position - o : row.position + 1)) ++group.offsets[static_cast<size_t>(o)];
  }
  group.even += 1 / static_cast<double>(row.count());
  for (size_t k = 0; k < row.base.size(); ++k) group.base[k] += row.base[k];
  if (row.is_mark) {
    ++group.marks;
    for (size_t k = 0; k < row.base.size(); ++k) group.marks_base[k] += row.base[k];
  }
  if (rare && row.sees(rare->at[0])) ++group.rare;
}

// Scores of uniform attention: the same for all heads of an attention, so kept for the first and copied at the end.
void RoleCounts::add_chance(const AttentionSpec& spec, const Counted& group,
                            std::span<TextSum, kMeasures> chance) const {
  const auto add = [&](Measure m, double sum) { chance[static_cast<size_t>(m)] += {sum, group.rows}; };
  for (const Measure m : {Measure::current, Measure::previous, Measure::back2, Measure::back3, Measure::back4,
                          Measure::at_current, Measure::at_previous, Measure::at_back2, Measure::at_back3,
                          Measure::at_back4, Measure::first, Measure::rare, Measure::rare2}) {
    add(m, group.even);
  }
  if (!spec.causal) {
    add(Measure::next, group.even);
    add(Measure::at_next, group.even);
  }
  add(Measure::entropy, static_cast<double>(group.rows));
  if (!kinds_) return;
  add(Measure::punctuation_mass, marks_of(group.base.data()));
  add(Measure::special_mass, group.base[kSpecial]);
}

// The mass on each kind, minus that of uniform attention.
void RoleCounts::add_kinds(const Counted& group, const double* in_class, const double* again,
                           std::span<TextSum, kMeasures> sums) const {
  const auto add = [&](Measure m, double sum) { sums[static_cast<size_t>(m)] += {sum, group.rows}; };
  for (size_t k = 1; k < kSpecial; ++k) {  // TokenKind and Measure have the same order
    sums[static_cast<size_t>(Measure::period) + k - 1] += {in_class[k] - group.base[k], group.rows};
  }
  const double marks = marks_of(in_class);
  add(Measure::punctuation, marks - marks_of(group.base.data()));
  add(Measure::punctuation_mass, marks);
  add(Measure::special, in_class[kSpecial] - group.base[kSpecial]);
  add(Measure::special_mass, in_class[kSpecial]);
  sums[static_cast<size_t>(Measure::from_punctuation)] +=
      {marks_of(again) - marks_of(group.marks_base.data()), group.marks};
}

void RoleCounts::add(const AttentionSpec& spec, const StatsColumns& at, size_t first_head, std::span<const double> sums,
                     RoleSums& to) const {
  const double* y = sums.data();
  for (const Counted& group : groups_) {
    add_chance(spec, group, to.chance(first_head));
    for (size_t h = 0; h < static_cast<size_t>(spec.heads); ++h, y += at.count()) {
      const auto into = to.of(first_head + h, group.text);
      const auto add = [&](Measure m, double sum, int64_t count) { into[static_cast<size_t>(m)] += {sum, count}; };
      for (int64_t o = 0; o < at.offsets; ++o) {  // measures current ... back4, then next
        const auto m = static_cast<size_t>(o);
        into[static_cast<size_t>(Measure::current) + m] += {y[at.at_offset(o)], group.offsets[m]};
        into[static_cast<size_t>(Measure::at_current) + m] += {y[at.strongest(o)], group.offsets[m]};
      }
      add(Measure::first, y[at.first], group.rows);
      add(Measure::entropy, y[at.entropy], group.rows);
      add(Measure::distance, y[at.distance], group.rows);
      if (spec.sinks) {
        double mass = 0;
        for (int64_t k = 0; k < at.classes; ++k) mass += y[at.in_class(k)];
        add(Measure::sink, static_cast<double>(group.rows) - mass, group.rows);
      }
      if (kinds_) add_kinds(group, y + at.in_class(), y + at.again(), into);
      if (at.wanted == 0) continue;
      add(Measure::rare, y[at.labelled(0)], group.rare);
      add(Measure::rare2, y[at.labelled(0)] + y[at.labelled(1)], group.rare);
    }
  }
}

}  // namespace qkv
