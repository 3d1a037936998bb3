#include "inspect/look/head_maps.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/host_values.h"
#include "inspect/texts/edited_reading.h"

namespace qkv {
namespace {

constexpr int64_t kThumbRows = 2;  // of each cell of a thumbnail

int64_t cells_of(int64_t count, int64_t pooled) {
  return (count + pooled - 1) / pooled;
}

void read_with(const Model& model, const Engine& engine, const TokenText& text, ReadingProbe& probe,
               const MapOptions& options) {
  Reader reader(model, engine, {.precision = options.precision});
  if (options.edit == nullptr) return reader.look({&text, 1}, probe);
  EditedReading edited(*options.edit, probe);
  reader.look({&text, 1}, edited);
}

// Rows of a cell that stand for it, from the first on at equal distances.
std::vector<int64_t> rows_of_cell(int64_t cell, int64_t pooled, int64_t count, int64_t most) {
  const int64_t first = cell * pooled, size = std::min(pooled, count - first), taken = std::min(size, most);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < taken; ++i) rows.push_back(first + (2 * i + 1) * size / (2 * taken));
  return rows;
}

class PooledProbe : public ReadingProbe {
 public:
  PooledProbe(const ModelSpec& spec, const TokenText& text, int64_t side) : spec_(spec) {
    const int64_t own = std::ssize(text.ids), source = std::ssize(text.source);
    for (const Place place : all_attentions(spec)) {
      const bool reads = of_source(place), across = place.stack == Stack::cross;
      const int64_t queries = reads ? source : own, keys = reads || across ? source : own;
      const int64_t pooled = cells_of(std::max(queries, keys), side);
      Wanted wanted{.place = place, .pooled = pooled};
      for (int64_t c = 0; c < cells_of(queries, pooled); ++c) {
        for (const int64_t row : rows_of_cell(c, pooled, queries, kThumbRows)) wanted.rows.push_back(row);
      }
      const MapPart empty{
          .rows = cells_of(queries, pooled),
          .columns = cells_of(keys, pooled),
          .pooled = pooled,
          .cells = std::vector<float>(static_cast<size_t>(cells_of(queries, pooled) * cells_of(keys, pooled)), 0.0F)};
      maps.emplace_back(static_cast<size_t>(attention_at(spec, place).heads), empty);
      wanted_.push_back(std::move(wanted));
    }
  }

  void begin(Context&, const PassTexts& pass) override {
    first_ = pass.rows.front().position;
    end_ = first_ + std::ssize(pass.rows);
  }
  Ask ask(Place place, Site site) const override {
    return site == Site::attn_probs && !rows_wanted(place).empty() ? Ask::rows : Ask::none;
  }
  std::vector<int32_t> rows_wanted(Place place) const override {
    std::vector<int32_t> rows;
    const int64_t first = of_source(place) ? 0 : first_, end = of_source(place) ? INT64_MAX : end_;
    for (const int64_t row : at(place).rows) {
      if (row >= first && row < end) rows.push_back(static_cast<int32_t>(row - first));
    }
    return rows;
  }
  void visit(Context&, const Tap& tap, Tensor& x) override {
    const Wanted& wanted = at(tap.place);
    std::vector<MapPart>& heads = maps[static_cast<size_t>(&wanted - wanted_.data())];
    const std::vector<int32_t> rows = rows_wanted(tap.place);
    const std::vector<float> all = host_floats(x);
    const int64_t first = of_source(tap.place) ? 0 : first_, keys = x.dim(2), count = x.dim(1);
    for (size_t r = 0; r < rows.size(); ++r) {
      const int64_t cell = (first + rows[r]) / wanted.pooled;
      const auto same = std::count_if(wanted.rows.begin(), wanted.rows.end(),
                                      [&](int64_t row) { return row / wanted.pooled == cell; });
      for (int64_t h = 0; h < count; ++h) {
        MapPart& map = heads[static_cast<size_t>(h)];
        const float* row = all.data() + (static_cast<int64_t>(r) * count + h) * keys;
        float* to = map.cells.data() + cell * map.columns;
        for (int64_t j = 1; j < keys; ++j) to[j / wanted.pooled] += row[j] / static_cast<float>(same);
      }
    }
  }

  std::vector<std::vector<MapPart>> maps;

 private:
  struct Wanted {
    Place place;
    int64_t pooled = 1;
    std::vector<int64_t> rows = {};
  };
  bool of_source(Place place) const { return spec_.has_source() && place.stack == Stack::encoder; }
  const Wanted& at(Place place) const {
    return *std::find_if(wanted_.begin(), wanted_.end(),
                         [&](const Wanted& w) { return w.place.stack == place.stack && w.place.layer == place.layer; });
  }

  const ModelSpec& spec_;
  std::vector<Wanted> wanted_;
  int64_t first_ = 0, end_ = 0;
};

}  // namespace

Ask MapsReading::ask(Place place, Site site) const {
  const bool mine = to_.contains({place.stack, place.layer});
  return mine && (site == Site::attn_q || site == Site::attn_k || site == Site::attn_lse) ? Ask::read : Ask::none;
}

void MapsReading::visit(Context&, const Tap& tap, Tensor& x) {
  LayerMaps& maps = *to_.at({tap.place.stack, tap.place.layer});
  std::vector<float>& to = tap.site == Site::attn_q ? maps.q_ : tap.site == Site::attn_k ? maps.k_ : maps.lse_;
  const std::vector<float> values = host_floats(x);
  to.insert(to.end(), values.begin(), values.end());
}

MapsReading::MapsReading(const ModelSpec& spec, const TokenText& text) {
  for (const Place place : all_attentions(spec)) {
    if (attention_at(spec, place).relative) continue;
    all.emplace_back(place, std::unique_ptr<LayerMaps>(new LayerMaps(spec, text, place)));
    add(place, *all.back().second);
  }
}

void read_maps(const Model& model, const Engine& engine, const TokenText& text, MapsReading& maps,
               const MapOptions& options) {
  read_with(model, engine, text, maps, options);
}

LayerMaps::LayerMaps(const ModelSpec& spec, const TokenText& text, Place place) : spec_(attention_at(spec, place)) {
  const bool reads = spec.has_source() && place.stack == Stack::encoder, across = place.stack == Stack::cross;
  const int64_t own = std::ssize(text.ids), source = std::ssize(text.source);
  queries_ = reads ? source : own;
  keys_ = reads || across ? source : own;
  square_ = !across;
  if (spec_.alibi != 0) slopes_ = ops::alibi_slopes(spec_.heads);
}

LayerMaps::LayerMaps(const Model& model, const Engine& engine, const TokenText& text, Place place,
                     const MapOptions& options)
    : LayerMaps(model.spec(), text, place) {
  QKV_CHECK(!spec_.relative, "the attention of this ", model.spec().family, " has a bias for every distance",
            Hint("its maps are in the report of a text of up to 512 tokens"));
  MapsReading probe;
  probe.add(place, *this);
  read_with(model, engine, text, probe, options);
}

size_t LayerMaps::bytes_of_all(const ModelSpec& spec, const TokenText& text) {
  int64_t numbers = 0;
  for (const Place place : all_attentions(spec)) {
    const LayerMaps one(spec, text, place);
    const AttentionSpec& a = one.spec_;
    numbers += one.queries_ * a.heads * (a.width + 1) + one.keys_ * a.kv_heads * a.width;
  }
  return static_cast<size_t>(numbers) * sizeof(float);
}

// exp(score - lse) of keys [first, first + to.size()).
void LayerMaps::fill_row(int64_t head, int64_t row, int64_t first, std::span<float> to) const {
  const auto width = static_cast<size_t>(spec_.width);
  const float* q = q_.data() + static_cast<size_t>(row * spec_.heads + head) * width;
  const double lse = static_cast<double>(lse_[static_cast<size_t>(row * spec_.heads + head)]);
  const double scale = spec_.scale.value_or(1 / std::sqrt(static_cast<double>(spec_.width)));
  const int64_t group = kv_head_of(spec_, head);
  const int64_t last = square_ && spec_.causal ? row : keys_ - 1;
  int64_t least = 0;
  if (square_ && spec_.window > 0) least = std::max(least, row - spec_.window + 1);
  if (square_ && spec_.chunk > 0) least = std::max(least, row / spec_.chunk * spec_.chunk);
  std::fill(to.begin(), to.end(), 0.0F);
  const auto end = static_cast<size_t>(std::clamp<int64_t>(last + 1 - first, 0, std::ssize(to)));
  for (auto at = static_cast<size_t>(std::max<int64_t>(least - first, 0)); at < end; ++at) {
    const int64_t j = first + static_cast<int64_t>(at);
    const float* k = k_.data() + static_cast<size_t>(j * spec_.kv_heads + group) * width;
    float dot = 0;
    for (size_t d = 0; d < width; ++d) dot += q[d] * k[d];
    double score = static_cast<double>(dot) * scale;
    if (spec_.softcap != 0) score = spec_.softcap * std::tanh(score / spec_.softcap);
    if (!slopes_.empty()) {
      score += spec_.alibi * static_cast<double>(slopes_[static_cast<size_t>(head)]) * static_cast<double>(j - row);
    }
    to[at] = std::exp(static_cast<float>(score - lse));
  }
}

MapPart LayerMaps::tile(int64_t head, Range range) const {
  const int64_t end_row = std::min(range.end_row, queries_), end_column = std::min(range.end_column, keys_);
  MapPart part{.rows = std::max<int64_t>(end_row - range.first_row, 0),
               .columns = std::max<int64_t>(end_column - range.first_column, 0),
               .first_row = range.first_row,
               .first_column = range.first_column};
  if (part.columns == 0) part.rows = 0;
  part.cells.resize(static_cast<size_t>(part.rows * part.columns));
  for (int64_t r = 0; r < part.rows; ++r) {
    fill_row(head, range.first_row + r, range.first_column,
             std::span(part.cells).subspan(static_cast<size_t>(r * part.columns), static_cast<size_t>(part.columns)));
  }
  return part;
}

MapPart LayerMaps::overview(int64_t head, int64_t side, int64_t rows) const {
  return pooled(head, side, rows, 0);
}

MapPart LayerMaps::thumbnail(int64_t head, int64_t side, int64_t rows) const {
  return pooled(head, side, rows, 1);
}

MapPart LayerMaps::pooled(int64_t head, int64_t side, int64_t rows, int64_t first_key) const {
  const int64_t of_cell = cells_of(std::max(queries_, keys_), side);
  MapPart part{.rows = cells_of(queries_, of_cell), .columns = cells_of(keys_, of_cell), .pooled = of_cell};
  part.cells.resize(static_cast<size_t>(part.rows * part.columns));
  std::vector<float> row(static_cast<size_t>(keys_));
  for (int64_t cell = 0; cell < part.rows; ++cell) {
    const std::vector<int64_t> taken = rows_of_cell(cell, of_cell, queries_, rows);
    for (const int64_t r : taken) {
      fill_row(head, r, 0, row);
      for (int64_t j = first_key; j < keys_; ++j) {
        part.cells[static_cast<size_t>(cell * part.columns + j / of_cell)] +=
            row[static_cast<size_t>(j)] / static_cast<float>(taken.size());
      }
    }
  }
  return part;
}

std::vector<std::vector<MapPart>> pooled_maps(const Model& model, const Engine& engine, const TokenText& text,
                                              int64_t side, const MapOptions& options) {
  PooledProbe probe(model.spec(), text, side);
  read_with(model, engine, text, probe, options);
  return std::move(probe.maps);
}

}  // namespace qkv
