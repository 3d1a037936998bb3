#include "inspect/heads/role_probe.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/host_values.h"
#include "ops/ops.h"

namespace qkv {

RoleProbe::RoleProbe(const Model& model, RoleTexts& texts, RoleSums& sums, const RoleOptions& options)
    : model_(model),
      texts_(texts),
      sums_(sums),
      options_(options),
      has_source_(model.spec().has_source()),
      copies_(options.patterns && LogitDirections::why_not(model.spec()).empty()) {
  size_t first = 0;
  for (const Place place : all_attentions(model.spec())) {
    OfAttention& one = attentions_[{place.stack, place.layer}];
    one.spec = &attention_at(model.spec(), place);
    one.first_head = first;
    first += static_cast<size_t>(one.spec->heads);
  }
}

void RoleProbe::begin(Context& cx, const PassTexts& pass) {
  pass_ = &pass;
  texts_.forget();
  const auto upload = [&](TextSide side, const std::vector<PassTexts::At>& keys) {
    std::vector<int32_t> kinds(keys.size(), 0);
    for (size_t k = 0; k < keys.size(); ++k) {
      if (keys[k].text >= 0) kinds[k] = static_cast<int32_t>(texts_.kind(side, keys[k].text, keys[k].position));
    }
    kinds_[at(side)] = cx.upload(kinds);
  };
  upload(TextSide::own, pass.keys);
  if (has_source_) upload(TextSide::source, pass.source_rows);
  if (!options_.patterns) return;
  for (auto& [place, one] : attentions_) {
    std::erase_if(one.lengths, [&](const auto& text) { return text.first != pass.rows.front().text; });
  }
  choose_rows(TextSide::own);
  if (has_source_) choose_rows(TextSide::source);
  copied_.clear();
  constexpr size_t kMostCopied = 32;  // per pass: each costs as much as W_O for a token
  const size_t shown = shown_[at(TextSide::own)].size(), step = (shown + kMostCopied - 1) / kMostCopied;
  for (size_t r = 0; r < shown; r += step) copied_.push_back(r);
}

// All rows if their maps fit, otherwise rows at equal distances.
void RoleProbe::choose_rows(TextSide side) {
  int64_t longest = 1, heads = 1;
  std::vector<int32_t> candidates;
  const std::vector<PassTexts::At>& rows = rows_of(side);
  for (size_t r = 0; r < rows.size(); ++r) {
    longest = std::max<int64_t>(longest, rows[r].position + 1);
    if (has_source_) longest = std::max(longest, std::ssize(texts_.ids(TextSide::source, rows[r].text)));
    if (rows[r].position >= kFirstCounted) candidates.push_back(static_cast<int32_t>(r));
  }
  for (const auto& [place, one] : attentions_) heads = std::max(heads, one.spec->heads);
  const int64_t room = std::max<int64_t>(options_.pattern_numbers / (longest * heads), 1);
  const int64_t step = (std::ssize(candidates) + room - 1) / room;
  std::vector<int32_t>& shown = shown_[at(side)];
  shown.clear();
  for (int64_t r = 0; r < std::ssize(candidates); r += step) shown.push_back(candidates[static_cast<size_t>(r)]);
  rows_shown_ += std::ssize(shown);
}

Ask RoleProbe::ask(Place place, Site site) const {
  if (site == Site::attn_probs) {
    const bool rows = options_.patterns && !shown_[at(query_side(place))].empty();
    return rows ? Ask::stats | Ask::rows : Ask::stats;
  }
  if (!options_.patterns || shown_[at(query_side(place))].empty()) return Ask::none;
  switch (site) {
    case Site::attn_v:
    case Site::attn_z:
    case Site::attn_out:
    case Site::resid_pre:
      return Ask::read;
    case Site::resid_post: {
      const bool last = static_cast<size_t>(place.layer) + 1 == model_.spec().decoder.layers.size();
      return copies_ && place.stack == Stack::decoder && last ? Ask::read : Ask::none;
    }
    default:
      return Ask::none;
  }
}

StatsWanted RoleProbe::stats_wanted(Place place) const {
  const AttentionSpec& spec = *attentions_.at({place.stack, place.layer}).spec;
  StatsWanted wanted{.offsets = {0, 1, 2, 3, 4}};
  if (!spec.causal) wanted.offsets.push_back(-1);
  if (texts_.has_kinds() || spec.sinks) {
    wanted.key_classes = kinds_[at(key_side(place))];
    wanted.classes = kTokenKinds;
  }
  return wanted;
}

RoleRow RoleProbe::row_of(Place place, const PassTexts::At& row) {
  const AttentionSpec& spec = *attention(place).spec;
  RoleRow made{.text = row.text, .position = row.position, .end = std::ssize(texts_.ids(key_side(place), row.text))};
  if (spec.causal) made.end = std::min<int64_t>(made.end, row.position + 1);
  if (spec.window > 0) {
    made.begin = std::max<int64_t>(0, row.position - spec.window + 1);
    if (!spec.causal) made.end = std::min<int64_t>(made.end, row.position + spec.window);
  }
  if (spec.chunk > 0) {
    const int64_t first = row.position / spec.chunk * spec.chunk;
    made.begin = std::max(made.begin, first);
    made.end = std::min(made.end, first + spec.chunk);
  }
  made.kinds = texts_.has_kinds();
  if (!made.kinds) return made;
  const auto& before = texts_.counts_before(key_side(place), row.text);
  const RoleTexts::Counts &until = before[static_cast<size_t>(made.end)],
                          &from = before[static_cast<size_t>(made.begin)];
  for (size_t k = 0; k < made.base.size(); ++k) {
    made.base[k] = static_cast<double>(until[k] - from[k]) / static_cast<double>(std::max<int64_t>(made.count(), 1));
  }
  const TokenKind own = texts_.kind(query_side(place), row.text, row.position);
  made.is_mark = own != TokenKind::other && own != TokenKind::special;
  return made;
}

void RoleProbe::visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) {
  OfAttention& one = attention(tap.place);
  const TextSide side = query_side(tap.place), keys = key_side(tap.place);
  const auto heads = static_cast<size_t>(one.spec->heads);
  const size_t offsets = one.spec->causal ? 5 : 6;
  const std::vector<float> entropy = host_floats(stats.entropy), distance = host_floats(stats.distance),
                           first = host_floats(stats.first), at_offset = host_floats(stats.at_offset),
                           in_class = stats.in_class.defined() ? host_floats(stats.in_class) : std::vector<float>();
  const std::vector<int32_t> argmax = host_ints(stats.argmax);
  constexpr auto kKinds = static_cast<size_t>(kTokenKinds);
  const std::vector<PassTexts::At>& rows = rows_of(side);

  struct Counted {
    size_t at;
    RoleRow row;
    double max_entropy;
    std::optional<RoleTexts::Rare> rare;
  };
  std::vector<Counted> counted;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].position < kFirstCounted) continue;
    const RoleRow row = row_of(tap.place, rows[r]);
    if (row.count() < 2) continue;
    const bool same = !counted.empty() && counted.back().row.text == row.text;
    counted.push_back(
        {r, row, std::log(static_cast<double>(row.count())), same ? counted.back().rare : texts_.rare(keys, row.text)});
    count_chance(tap.place, row, sums_.chance(one.first_head));
  }

  // Each head has its own sums: no locking.
  cx.exec.pool->run(one.spec->heads, [&](int64_t head, int) {
    const auto h = static_cast<size_t>(head);
    for (const auto& [r, row, max_entropy, rare] : counted) {
      const size_t i = r * heads + h;
      const auto sums = sums_.of(one.first_head + h, row.text);
      const auto add = [&](Measure m, double value) { sums[static_cast<size_t>(m)].add(value); };
      for (size_t o = 0; o < offsets; ++o) {  // measures current ... back4, then next
        const int64_t key = o < 5 ? row.position - static_cast<int64_t>(o) : row.position + 1;
        if (key < row.begin || key >= row.end) continue;  // this row has no such key
        sums[static_cast<size_t>(Measure::current) + o].add(static_cast<double>(at_offset[i * offsets + o]));
        sums[static_cast<size_t>(Measure::at_current) + o].add(argmax[i] == key ? 1 : 0);
      }
      add(Measure::first, static_cast<double>(first[i]));
      add(Measure::entropy, static_cast<double>(entropy[i]) / max_entropy);
      add(Measure::distance, static_cast<double>(distance[i]));
      const std::span<const float> masses(in_class.data() + (in_class.empty() ? 0 : i * kKinds),
                                          in_class.empty() ? 0 : kKinds);
      if (one.spec->sinks) {
        double mass = 0;
        for (const float m : masses) mass += static_cast<double>(m);
        add(Measure::sink, 1 - mass);
      }
      if (row.kinds) row.add_kinds(masses, sums);
      if (rare && rare->at[0] >= row.begin && rare->at[0] < row.end && argmax[i] >= 0) {
        const int32_t looked_at = texts_.ids(keys, row.text)[static_cast<size_t>(argmax[i])];
        add(Measure::rare, looked_at == rare->ids[0] ? 1 : 0);
        add(Measure::rare2, looked_at == rare->ids[0] || looked_at == rare->ids[1] ? 1 : 0);
      }
    }
  });
}

// Scores of uniform attention: the same for all heads of an attention, so kept for the first and copied at the end.
void RoleProbe::count_chance(Place place, const RoleRow& row, std::span<TextSum, kMeasures> chance) const {
  const double even = 1 / static_cast<double>(row.count());
  const auto add = [&](Measure m, double value) { chance[static_cast<size_t>(m)].add(value); };
  for (const Measure m : {Measure::current, Measure::previous, Measure::back2, Measure::back3, Measure::back4,
                          Measure::at_current, Measure::at_previous, Measure::at_back2, Measure::at_back3,
                          Measure::at_back4, Measure::first, Measure::rare, Measure::rare2}) {
    add(m, even);
  }
  if (!attentions_.at({place.stack, place.layer}).spec->causal) {
    add(Measure::next, even);
    add(Measure::at_next, even);
  }
  add(Measure::entropy, 1);
  if (!row.kinds) return;
  double marks = 0;
  for (size_t k = 1; k < static_cast<size_t>(TokenKind::special); ++k) marks += row.base[k];
  add(Measure::punctuation_mass, marks);
  add(Measure::special_mass, row.base[static_cast<size_t>(TokenKind::special)]);
}

}  // namespace qkv
