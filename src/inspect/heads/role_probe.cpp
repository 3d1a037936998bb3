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
  prepare_sums(cx);
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
    wanted.checked = true;
  }
  return wanted;
}

RoleRow RoleProbe::row_of(const RoleView& view, const PassTexts::At& row) {
  RoleRow made{.text = row.text, .position = row.position, .end = std::ssize(texts_.ids(view.keys, row.text))};
  if (view.causal) made.end = std::min<int64_t>(made.end, row.position + 1);
  if (view.window > 0) {
    made.begin = std::max<int64_t>(0, row.position - view.window + 1);
    if (!view.causal) made.end = std::min<int64_t>(made.end, row.position + view.window);
  }
  if (view.chunk > 0) {
    const int64_t first = row.position / view.chunk * view.chunk;
    made.begin = std::max(made.begin, first);
    made.end = std::min(made.end, first + view.chunk);
  }
  made.kinds = texts_.has_kinds();
  if (!made.kinds) return made;
  const auto& before = texts_.counts_before(view.keys, row.text);
  const RoleTexts::Counts &until = before[static_cast<size_t>(made.end)],
                          &from = before[static_cast<size_t>(made.begin)];
  const double even = 1 / static_cast<double>(std::max<int64_t>(made.count(), 1));
  for (size_t k = 0; k < made.base.size(); ++k) made.base[k] = even * static_cast<double>(until[k] - from[k]);
  const TokenKind own = texts_.kind(view.queries, row.text, row.position);
  made.is_mark = own != TokenKind::other && own != TokenKind::special;
  return made;
}

RoleView RoleProbe::view_of(Place place) const {
  const AttentionSpec& spec = *attentions_.at({place.stack, place.layer}).spec;
  return {query_side(place), key_side(place), spec.causal, spec.window, spec.chunk};
}

// What the device needs to know about the rows, and memory for the sums of all attentions. Both outlive the layers.
void RoleProbe::prepare_sums(Context& cx) {
  counts_.clear();
  int64_t numbers = 0;
  const auto shape_of = [&](const RoleView& view, const OfAttention& one) {
    return Shape{counts_.at(view).groups(), one.spec->heads, one.columns.count()};
  };
  for (auto& [at, one] : attentions_) {
    const Place place{at.first, at.second};
    const RoleView view = view_of(place);
    if (!counts_.contains(view)) {
      int32_t last = -1;  // its counts are needed by several threads
      for (const PassTexts::At& row : rows_of(view.queries)) {
        if (row.text != last) texts_.counts_before(view.keys, last = row.text);
      }
      const auto known = [&](const PassTexts::At& row) { return row_of(view, row); };
      counts_.try_emplace(view, cx, texts_, view, rows_of(view.queries), known);
    }
    one.columns = RoleCounts::columns(texts_, *one.spec, view.keys);
    one.seen = false;
    numbers += shape_of(view, one).count();
  }
  all_sums_ = cx.constant({numbers}, DType::f64);
  int64_t from = 0;
  for (auto& [at, one] : attentions_) {
    const Shape shape = shape_of(view_of({at.first, at.second}), one);
    one.sums = all_sums_.slice(0, from, shape.count()).view(shape);
    from += shape.count();
  }
}

void RoleProbe::visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) {
  OfAttention& one = attention(tap.place);
  one.seen = true;
  ops::attention_sums(cx, stats, counts_.at(view_of(tap.place)).rows(), one.sums);
}

void RoleProbe::end() {
  std::vector<double> sums(static_cast<size_t>(all_sums_.count()));
  all_sums_.device().download(sums.data(), all_sums_.data(), all_sums_.count() * size_of(DType::f64));
  for (const auto& [at, one] : attentions_) {
    if (!one.seen) continue;
    const std::span<const double> mine(sums.data() + (one.sums.as<double>() - all_sums_.as<double>()),
                                       static_cast<size_t>(one.sums.count()));
    counts_.at(view_of({at.first, at.second})).add(*one.spec, one.columns, one.first_head, mine, sums_);
  }
}

}  // namespace qkv
