#include "server/look/look_probe.h"

#include <algorithm>
#include <cmath>

#include "base/log_sum_exp.h"
#include "core/host_values.h"

namespace qkv::server {
namespace {

constexpr size_t kTopHeads = 8;
constexpr double kCellUnit = 0x1p40;
constexpr auto kNumberBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

LookProbe::LookProbe(const Model& model, LookRequest request, int64_t prompt_tokens)
    : model_(model), request_(std::move(request)), prompt_(prompt_tokens), left_(request_.bytes) {
  for (size_t i = 0; i < request_.heads.size(); ++i) {
    OfLayer& layer = layers_.try_emplace(request_.heads[i].layer, OfLayer{.first = i, .heads = {}}).first->second;
    layer.heads.push_back(static_cast<size_t>(request_.heads[i].head));
  }
  if (request_.maps != LookMaps::thumbnails) return;
  cells_.resize(request_.heads.size() * static_cast<size_t>(kThumbnail * kThumbnail));
  left_ -= std::ssize(cells_) * kNumberBytes;
}

bool LookProbe::wants(LookStatistic statistic) const {
  return std::find(request_.statistics.begin(), request_.statistics.end(), statistic) != request_.statistics.end();
}

int64_t LookProbe::cost() const {
  constexpr int64_t kRungBytes = 96;
  const int64_t heads = std::ssize(request_.heads), tokens = rows_ - chosen_;
  int64_t numbers = tokens * heads * std::ssize(request_.statistics);
  const int64_t levels = std::ssize(model_.spec().decoder.layers) + 1;
  for (int64_t r = 0; r < rows_; ++r) {
    if (request_.maps == LookMaps::full) numbers += heads * (first_ + r + 1);
    if (request_.maps == LookMaps::top8 && r >= chosen_) numbers += static_cast<int64_t>(kTopHeads) * (first_ + r + 1);
  }
  return numbers * kNumberBytes + (request_.ladder ? tokens * levels * kRungBytes : 0);
}

bool LookProbe::begin(int64_t first, int64_t rows) {
  seen_.clear();
  streams_.clear();
  if (truncated_) return false;
  first_ = first;
  rows_ = rows;
  chosen_ = std::clamp<int64_t>(prompt_ - 1 - first, 0, rows);
  if (chosen_ == rows_ && !request_.whole_maps()) return false;
  left_ -= cost();
  if (left_ < 0) {
    truncated_ = true;
    kept_.clear();
    return false;
  }
  for (int64_t r = chosen_; r < rows_; ++r) {
    TokenLook& look = seen_.emplace_back(TokenLook{.position = first_ + r});
    look.statistics.resize(request_.statistics.size());
  }
  if (request_.maps == LookMaps::full) {
    if (kept_.empty()) first_kept_ = first_;
    for (int64_t r = 0; r < rows_; ++r) {
      kept_.emplace_back(request_.heads.size() * static_cast<size_t>(first_ + r + 1));
    }
  }
  if (request_.maps == LookMaps::thumbnails) {
    pooled_rows_ = first_ + rows_;
    while (pooled_rows_ > kThumbnail * pooled_) widen();
  }
  return true;
}

Ask LookProbe::ask(Place place, Site site) const {
  if (place.stack != Stack::decoder) return Ask::none;
  const bool chooses = chosen_ < rows_;
  switch (site) {
    case Site::attn_probs: {
      if (!layers_.contains(place.layer)) return Ask::none;
      const bool top = request_.maps == LookMaps::top8;
      const Ask stats = chooses && (top || !request_.statistics.empty()) ? Ask::stats : Ask::none;
      return request_.whole_maps() || (top && chooses) ? stats | Ask::rows : stats;
    }
    case Site::embed:
    case Site::resid_post:
    case Site::final:
      return chooses && request_.ladder ? Ask::read : Ask::none;
    default:
      return Ask::none;
  }
}

StatsWanted LookProbe::stats_wanted(Place place) const {
  const bool wanted = layers_.contains(place.layer) && wants(LookStatistic::previous);
  return {.offsets = wanted ? std::vector<int32_t>{1} : std::vector<int32_t>{}};
}

std::vector<int32_t> LookProbe::rows_wanted(Place) const {
  std::vector<int32_t> wanted;
  for (int64_t r = request_.whole_maps() ? 0 : chosen_; r < rows_; ++r) wanted.push_back(static_cast<int32_t>(r));
  return wanted;
}

void LookProbe::visit_stats(Context&, const Tap& tap, const AttentionStats& stats) {
  const OfLayer& layer = layers_.at(tap.place.layer);
  const auto chosen = [&](const Tensor& x) { return x.slice(0, chosen_, rows_ - chosen_); };
  if (request_.maps == LookMaps::top8) {
    highest_ = host_floats(chosen(stats.highest));
    argmax_ = host_ints(chosen(stats.argmax));
  }
  for (const LookStatistic statistic : request_.statistics) {
    switch (statistic) {
      case LookStatistic::entropy:
        take_statistic(statistic, layer, chosen(stats.entropy));
        break;
      case LookStatistic::distance:
        take_statistic(statistic, layer, chosen(stats.distance));
        break;
      case LookStatistic::first:
        take_statistic(statistic, layer, chosen(stats.first));
        break;
      case LookStatistic::highest:
        take_statistic(statistic, layer, chosen(stats.highest));
        break;
      case LookStatistic::argmax:
        take_statistic(statistic, layer, chosen(stats.argmax));
        break;
      case LookStatistic::previous:
        take_statistic(statistic, layer, chosen(stats.at_offset.slice(2, 0, 1)));
        break;
    }
  }
}

// values [rows from chosen_, H] or [.., H, 1].
void LookProbe::take_statistic(LookStatistic statistic, const OfLayer& layer, const Tensor& values) {
  std::vector<float> all;
  if (values.dtype() == DType::i32) {
    for (const int32_t value : host_ints(values)) all.push_back(static_cast<float>(value));
  } else {
    all = host_floats(values);
  }
  const auto which = static_cast<size_t>(std::find(request_.statistics.begin(), request_.statistics.end(), statistic) -
                                         request_.statistics.begin());
  const auto width = static_cast<size_t>(values.dim(1));
  for (size_t r = 0; r < seen_.size(); ++r) {
    for (const size_t head : layer.heads) seen_[r].statistics[which].push_back(all[r * width + head]);
  }
}

void LookProbe::visit(Context& cx, const Tap& tap, Tensor& x) {
  if (tap.site == Site::attn_probs) {
    const OfLayer& layer = layers_.at(tap.place.layer);
    if (request_.maps == LookMaps::top8) take_top(layer, x);
    if (request_.maps == LookMaps::thumbnails) pool(layer, x);
    if (request_.maps == LookMaps::full) keep_rows(layer, x);
    return;
  }
  if (tap.site == Site::final) return climb(cx);
  streams_.push_back(host_floats(x.slice(0, chosen_, rows_ - chosen_)));
}

// Heads whose strongest key is the first say little: the first is where heads look that look nowhere.
void LookProbe::take_top(const OfLayer& layer, const Tensor& pattern) {
  const std::vector<float> all = host_floats(pattern);
  const auto heads = static_cast<size_t>(pattern.dim(1)), keys = static_cast<size_t>(pattern.dim(2));
  for (size_t r = 0; r < seen_.size(); ++r) {
    std::vector<TokenLook::HeadRow>& top = seen_[r].top;
    for (size_t i = 0; i < layer.heads.size(); ++i) {
      const size_t at = r * heads + layer.heads[i];
      if (argmax_[at] <= 0) continue;
      const auto place = std::find_if(top.begin(), top.end(),
                                      [&](const TokenLook::HeadRow& other) { return other.strongest < highest_[at]; });
      if (place == top.end() && top.size() == kTopHeads) continue;
      const auto row = all.begin() + static_cast<std::ptrdiff_t>(at * keys);
      top.insert(place, {.head = layer.first + i,
                         .strongest = highest_[at],
                         .weights = std::vector<float>(row, row + seen_[r].position + 1)});
      if (top.size() > kTopHeads) top.pop_back();
    }
  }
}

// Two rows and two columns of cells become one.
void LookProbe::widen() {
  constexpr auto kSide = static_cast<size_t>(kThumbnail);
  std::vector<int64_t> wide(cells_.size());
  for (size_t i = 0; i < cells_.size(); ++i) {
    const size_t head = i / (kSide * kSide), row = i / kSide % kSide, column = i % kSide;
    wide[(head * kSide + row / 2) * kSide + column / 2] += cells_[i];
  }
  cells_ = std::move(wide);
  pooled_ *= 2;
}

void LookProbe::pool(const OfLayer& layer, const Tensor& pattern) {
  const std::vector<float> all = host_floats(pattern);
  const auto heads = static_cast<size_t>(pattern.dim(1)), keys = static_cast<size_t>(pattern.dim(2));
  const auto side = static_cast<size_t>(kThumbnail), cell = static_cast<size_t>(pooled_);
  for (size_t r = 0; r < static_cast<size_t>(rows_); ++r) {
    const size_t position = static_cast<size_t>(first_) + r;
    for (size_t i = 0; i < layer.heads.size(); ++i) {
      const float* row = all.data() + (r * heads + layer.heads[i]) * keys;
      int64_t* cells = cells_.data() + ((layer.first + i) * side + position / cell) * side;
      for (size_t k = 0; k <= position; ++k) {
        if (row[k] > 0) cells[k / cell] += static_cast<int64_t>(static_cast<double>(row[k]) * kCellUnit + 0.5);
      }
    }
  }
}

void LookProbe::keep_rows(const OfLayer& layer, const Tensor& pattern) {
  const std::vector<float> all = host_floats(pattern);
  const auto heads = static_cast<size_t>(pattern.dim(1)), keys = static_cast<size_t>(pattern.dim(2));
  for (size_t r = 0; r < static_cast<size_t>(rows_); ++r) {
    const size_t position = static_cast<size_t>(first_) + r;
    std::vector<float>& kept = kept_[position - static_cast<size_t>(first_kept_)];
    for (size_t i = 0; i < layer.heads.size(); ++i) {
      std::copy_n(all.data() + (r * heads + layer.heads[i]) * keys, position + 1,
                  kept.data() + (layer.first + i) * (position + 1));
    }
  }
}

// All levels of a row in one product: the head's weights are read once.
void LookProbe::climb(Context& cx) {
  const auto vocabulary = static_cast<size_t>(model_.spec().vocabulary), width = streams_.front().size() / seen_.size();
  const int64_t levels = std::ssize(streams_);
  for (size_t r = 0; r < seen_.size(); ++r) {
    const Arena::Mark mark = cx.arena.mark();
    std::vector<float> stacked;
    for (const std::vector<float>& stream : streams_) {
      const std::span<const float> row = std::span(stream).subspan(r * width, width);
      stacked.insert(stacked.end(), row.begin(), row.end());
    }
    const Tensor stream = cx.upload(stacked, {levels, static_cast<int64_t>(width)});
    const std::vector<float> logits = host_floats(model_.read_out(cx, stream));
    cx.arena.rewind(mark);
    std::vector<Rung>& ladder = seen_[r].ladder;
    ladder.resize(static_cast<size_t>(levels));
    const auto of_level = [&](size_t level) {
      return log_softmax(std::span(logits).subspan(level * vocabulary, vocabulary));
    };
    const std::vector<double> last = of_level(static_cast<size_t>(levels - 1));
    cx.exec.pool->run(levels, [&](int64_t level, int) {
      const auto at = static_cast<size_t>(level);
      const std::vector<double> own = level + 1 < levels ? of_level(at) : last;
      const bool broken = std::any_of(own.begin(), own.end(), [](double log_p) { return std::isnan(log_p); });
      if (!broken) ladder[at] = rung_of(own, last);
    });
  }
}

std::optional<TokenLook> LookProbe::take(int64_t position) {
  for (TokenLook& look : seen_) {
    if (look.position != position) continue;
    if (request_.maps == LookMaps::full) {
      const int64_t count = std::min(position + 1 - first_kept_, std::ssize(kept_));
      look.first_row = first_kept_;
      std::move(kept_.begin(), kept_.begin() + count, std::back_inserter(look.rows));
      kept_.erase(kept_.begin(), kept_.begin() + count);
      first_kept_ += count;
    }
    return std::move(look);
  }
  return std::nullopt;
}

TextLook LookProbe::finish() {
  TextLook text{.truncated = truncated_};
  if (request_.maps != LookMaps::thumbnails) return text;
  text.rows = pooled_rows_;
  text.pooled = pooled_;
  const auto side = static_cast<size_t>(text.side());
  for (size_t h = 0; h < request_.heads.size(); ++h) {
    for (size_t row = 0; row < side; ++row) {
      const int64_t in_cell = std::min(pooled_, pooled_rows_ - static_cast<int64_t>(row) * pooled_);
      for (size_t column = 0; column < side; ++column) {
        const int64_t sum =
            cells_[(h * static_cast<size_t>(kThumbnail) + row) * static_cast<size_t>(kThumbnail) + column];
        text.thumbnails.push_back(
            static_cast<float>(static_cast<double>(sum) / kCellUnit / static_cast<double>(in_cell)));
      }
    }
  }
  return text;
}

}  // namespace qkv::server
