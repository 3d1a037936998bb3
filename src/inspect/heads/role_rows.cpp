// The part of RoleProbe that needs single keys: rows of the attention map, values and head outputs.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/heads/role_probe.h"
#include "inspect/look/looking.h"
#include "ops/ops.h"

namespace qkv {
namespace {

constexpr double kFaint = 0.01;  // smaller weights are ignored

// Attention mass on earlier copies, and on the tokens after them.
struct CopyMass {
  double copies = 0, after = 0;
};
template <class Weight>
CopyMass copy_mass(const RoleRow& row, const Weight& weight) {
  CopyMass found;
  for (const int32_t p : row.copies) {
    if (row.sees(p)) found.copies += weight(p);
    if (p + 1 == row.position || !row.sees(p + 1)) continue;  // of a doubled token the next one is the row's own
    if (const double after = weight(p + 1); after >= kFaint) found.after += after;
  }
  return found;
}

void add_copies(const RoleRow& row, const CopyMass& found, std::span<TextSum, kMeasures> sums) {
  const auto add = [&](Measure m, double value) { sums[static_cast<size_t>(m)].add(value); };
  if (!row.copies.empty()) {
    add(Measure::duplicate, found.copies);
    add(Measure::induction, found.after);
  }
  add(Measure::duplicate_mass, found.copies);
  add(Measure::induction_mass, found.after);
}

}  // namespace

Tensor RoleProbe::shown_rows(Context& cx, TextSide side, const Tensor& x) const {
  const Tensor flat = x.view({x.dim(0), x.count() / x.dim(0)});
  return ops::gather_rows(cx, flat, cx.upload(shown_[at(side)]));
}

void RoleProbe::visit(Context& cx, const Tap& tap, Tensor& x) {
  const Place place = tap.place;
  if (tap.site == Site::resid_post) return finish_logits(host_floats(shown_rows(cx, TextSide::own, x)));
  if (tap.site == Site::resid_pre) {
    const std::vector<float> rows = host_floats(shown_rows(cx, query_side(place), x));
    const auto width = static_cast<size_t>(x.cols());
    stream_.clear();
    for (size_t r = 0; r < rows.size(); r += width)
      stream_.push_back(static_cast<float>(norm_of({rows.data() + r, width})));
    return;
  }
  OfAttention& one = attention(place);
  if (!one.writes) one.writes = std::make_unique<HeadWrites>(cx, model_, place);
  switch (tap.site) {
    case Site::attn_v: {
      const std::vector<float> lengths = one.writes->lengths(cx, host_floats(x), x.dim(1));
      const std::vector<PassTexts::At>& rows = rows_of(key_side(place));
      const auto heads = static_cast<size_t>(one.spec->heads);
      for (size_t r = 0; r < rows.size(); ++r) {
        std::vector<float>& text = one.lengths[rows[r].text];
        text.resize(static_cast<size_t>(rows[r].position) * heads);
        text.insert(text.end(), lengths.begin() + static_cast<ptrdiff_t>(r * heads),
                    lengths.begin() + static_cast<ptrdiff_t>((r + 1) * heads));
      }
      rest_of_texts(place);
      break;
    }
    case Site::attn_probs:
      read_pattern(place, host_floats(x), x.dim(2));
      break;
    case Site::attn_z:
      read_written(cx, place, x);
      if (!one.writes->has_norm()) finish_written(place, {});
      break;
    default: {  // attn_out
      if (!one.writes->has_norm()) break;
      const std::vector<float> rows = host_floats(shown_rows(cx, query_side(place), x));
      const auto width = static_cast<size_t>(x.cols());
      std::vector<double> scales;
      for (size_t r = 0; r < rows.size(); r += width) scales.push_back(one.writes->scale_of({rows.data() + r, width}));
      finish_written(place, scales);
    }
  }
}

// Measure::resting, once per text when all its values are known.
void RoleProbe::rest_of_texts(Place place) {
  const OfAttention& one = attention(place);
  const auto heads = static_cast<size_t>(one.spec->heads);
  for (const PassTexts::At& row : rows_of(key_side(place))) {
    const std::vector<float>& lengths = one.lengths.at(row.text);
    const size_t keys = texts_.ids(key_side(place), row.text).size();
    if (static_cast<size_t>(row.position) + 1 != keys || keys < 3) continue;
    for (size_t h = 0; h < heads; ++h) {
      double mean = 0;
      for (size_t j = 0; j < keys; ++j) mean += static_cast<double>(lengths[j * heads + h]) / static_cast<double>(keys);
      if (mean <= 0) continue;
      sums_.of(one.first_head + h, row.text)[static_cast<size_t>(Measure::resting)].add(
          static_cast<double>(lengths[h]) / mean);
    }
  }
}

void RoleProbe::read_pattern(Place place, const std::vector<float>& pattern, int64_t keys) {
  OfAttention& one = attention(place);
  const TextSide side = query_side(place), key = key_side(place);
  const auto heads = static_cast<size_t>(one.spec->heads);
  const std::vector<int32_t>& shown = shown_[at(side)];
  one.strongest.assign(shown.size() * heads, -1);
  const RoleView view = view_of(place);
  std::vector<float> weights;
  for (size_t r = 0; r < shown.size(); ++r) {
    RoleRow row = row_of(view, rows_of(side)[static_cast<size_t>(shown[r])]);
    if (row.count() < 2) continue;
    const bool itself = place.stack != Stack::cross;  // queries and keys are of the same text
    if (itself) row.copies = texts_.earlier_copies(key, row.text, row.position);
    const std::vector<int32_t>& ids = texts_.ids(key, row.text);
    const std::vector<float>& lengths = one.lengths.at(row.text);
    if (itself) {
      const double even = 1 / static_cast<double>(row.count());
      const auto chance = sums_.chance(one.first_head);
      add_copies(row, copy_mass(row, [&](int64_t) { return even; }), chance);
    }
    for (size_t h = 0; h < heads; ++h) {
      const float* a = pattern.data() + (r * heads + h) * static_cast<size_t>(keys);
      const auto sums = sums_.of(one.first_head + h, row.text);
      const auto add = [&](Measure m, double value) { sums[static_cast<size_t>(m)].add(value); };
      double mass = 0, far = 0, far2 = 0, total = 0;
      float highest = 0;
      weights.assign(static_cast<size_t>(row.end), 0);
      int64_t strongest = row.begin;
      for (int64_t j = row.begin; j < row.end; ++j) {
        const auto weight = static_cast<double>(a[j]), d = static_cast<double>(row.position - j);
        mass += weight;
        far += weight * d;
        far2 += weight * d * d;
        if (a[j] > highest && !texts_.ends(ids[static_cast<size_t>(j)])) highest = a[j];
        if (a[j] > a[strongest]) strongest = j;
        weights[static_cast<size_t>(j)] = a[j] * lengths[static_cast<size_t>(j) * heads + h];
        total += static_cast<double>(weights[static_cast<size_t>(j)]);
      }
      one.strongest[r * heads + h] = static_cast<int32_t>(strongest);
      add(Measure::confidence, static_cast<double>(highest));
      if (mass > 0) add(Measure::spread, std::sqrt(std::max(far2 / mass - far / mass * (far / mass), 0.0)));
      if (itself) add_copies(row, copy_mass(row, [&](int64_t j) { return static_cast<double>(a[j]); }), sums);
      if (total <= 0) continue;
      for (float& w : weights) w = static_cast<float>(static_cast<double>(w) / total);
      weigh_row(place, row, weights, sums_.value_weighted(one.first_head + h, row.text));
    }
  }
}

// The measures with value-weighted attention, A_ij |v_j W_O|.
void RoleProbe::weigh_row(Place place, const RoleRow& row, std::span<const float> weights,
                          std::span<TextSum, kMeasures> sums) const {
  const auto weight = [&](int64_t j) { return static_cast<double>(weights[static_cast<size_t>(j)]); };
  const auto add = [&](Measure m, double value) { sums[static_cast<size_t>(m)].add(value); };
  const bool causal = attentions_.at({place.stack, place.layer}).spec->causal;
  const auto strongest = std::max_element(weights.begin(), weights.end()) - weights.begin();
  for (int64_t o = 0; o < (causal ? 5 : 6); ++o) {
    const int64_t key = o < 5 ? row.position - o : row.position + 1;
    if (!row.sees(key)) continue;
    sums[static_cast<size_t>(Measure::current) + static_cast<size_t>(o)].add(weight(key));
    sums[static_cast<size_t>(Measure::at_current) + static_cast<size_t>(o)].add(strongest == key ? 1 : 0);
  }
  add(Measure::first, row.sees(0) ? weight(0) : 0);
  double entropy = 0, distance = 0;
  std::array<double, kTokenKinds> masses{};
  for (int64_t j = row.begin; j < row.end; ++j) {
    const double w = weight(j);
    if (w > 0) entropy -= w * std::log(w);
    distance += w * static_cast<double>(row.position - j);
    if (row.kinds) masses[static_cast<size_t>(texts_.kind(key_side(place), row.text, static_cast<int32_t>(j)))] += w;
  }
  add(Measure::entropy, entropy / std::log(static_cast<double>(row.count())));
  add(Measure::distance, distance);
  if (row.kinds) row.add_kinds(std::span<const double>(masses), sums);
  if (place.stack != Stack::cross) add_copies(row, copy_mass(row, weight), sums);
}

void RoleProbe::read_written(Context& cx, Place place, const Tensor& z) {
  OfAttention& one = attention(place);
  const Tensor rows = shown_rows(cx, query_side(place), z);
  one.written = one.writes->lengths(cx, host_floats(rows), z.dim(1));
  one.raised.clear();
  const bool foreign = place.stack == Stack::cross && model_.spec().source_vocabulary != 0;  // another vocabulary
  if (copies_ && place.stack != Stack::encoder && !foreign) raise_logits(cx, place, rows);
}

// Each head's contribution to the logit of its most attended token, before the final norm's scale is known.
void RoleProbe::raise_logits(Context& cx, Place place, const Tensor& z) {
  OfAttention& one = attention(place);
  if (!directions_) directions_ = std::make_unique<LogitDirections>(cx, model_);
  const auto heads = static_cast<size_t>(one.spec->heads), width = static_cast<size_t>(one.spec->value_width),
             stream = static_cast<size_t>(model_.spec().width);
  std::vector<int32_t> tokens;
  for (const size_t r : copied_) {
    const auto row = static_cast<size_t>(shown_[at(TextSide::own)][r]);
    const std::vector<int32_t>& ids = texts_.ids(key_side(place), pass_->rows[row].text);
    for (size_t h = 0; h < heads; ++h) {
      const int32_t key = one.strongest[r * heads + h];
      tokens.push_back(ids[static_cast<size_t>(std::max(key, 0))]);
    }
  }
  const std::vector<float> directions = directions_->of(cx, tokens), w = one.writes->matrix(cx),
                           values = host_floats(z);
  one.raised.resize(tokens.size());
  cx.exec.pool->run(std::ssize(tokens), [&](int64_t task, int) {
    const auto i = static_cast<size_t>(task);
    const size_t h = i % heads;
    const float* to = directions.data() + i * stream;
    const float* from = values.data() + (copied_[i / heads] * heads + h) * width;
    double sum = 0;
    for (size_t c = 0; c < stream; ++c) {
      const std::span<const float> row = one.writes->out().of_head(w, static_cast<int64_t>(c), static_cast<int64_t>(h));
      float written = 0;
      for (size_t e = 0; e < width; ++e) written += from[e] * row[e];
      sum += static_cast<double>(written) * static_cast<double>(to[c]);
    }
    one.raised[i] = sum;
  });
}

void RoleProbe::finish_written(Place place, std::span<const double> scales) {
  OfAttention& one = attention(place);
  const auto heads = static_cast<size_t>(one.spec->heads);
  const TextSide side = query_side(place);
  for (size_t r = 0; r < shown_[at(side)].size(); ++r) {
    const int32_t text = rows_of(side)[static_cast<size_t>(shown_[at(side)][r])].text;
    const double scale = scales.empty() ? 1 : scales[r];
    for (size_t h = 0; h < heads && stream_[r] > 0; ++h) {
      const double length = static_cast<double>(one.written[r * heads + h]) * scale;
      sums_.of(one.first_head + h, text)[static_cast<size_t>(Measure::write)].add(length /
                                                                                  static_cast<double>(stream_[r]));
    }
  }
  if (scales.empty()) return;
  for (size_t i = 0; i < one.raised.size(); ++i) one.raised[i] *= scales[copied_[i / heads]];
}

void RoleProbe::finish_logits(const std::vector<float>& stream) {
  const auto width = static_cast<size_t>(model_.spec().width);
  std::vector<double> scales;
  for (const size_t r : copied_) scales.push_back(directions_->scale_of({stream.data() + r * width, width}));
  for (auto& [place, one] : attentions_) {
    const auto heads = static_cast<size_t>(one.spec->heads);
    for (size_t i = 0; i < one.raised.size(); ++i) {
      const auto row = static_cast<size_t>(shown_[at(TextSide::own)][copied_[i / heads]]);
      const int32_t text = pass_->rows[row].text;
      sums_.of(one.first_head + i % heads, text)[static_cast<size_t>(Measure::copying)].add(one.raised[i] *
                                                                                            scales[i / heads]);
    }
    one.raised.clear();
  }
}

}  // namespace qkv
