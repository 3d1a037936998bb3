// Attention maps of long texts, part by part: q, k and log-sum-exp of one attention are kept, and any cell is
// exp(score - lse). A map of 4096 tokens has 67 MB; a tile or an overview of it has at most 256 KB.
#pragma once

#include <map>
#include <memory>

#include "inspect/look/looking.h"

namespace qkv {

struct MapOptions {
  Precision precision = Precision::f32();
  ReadingProbe* edit = nullptr;
};

// A part of a map: weights [rows, columns]; pooled, the mean over a cell's rows of the sum over its keys.
struct MapPart {
  int64_t rows = 0, columns = 0, first_row = 0, first_column = 0, pooled = 1;
  std::vector<float> cells;
};

class LayerMaps {
 public:
  // One pass over the text. An Error for an attention whose scores have more in them than q, k, a soft cap and ALiBi.
  LayerMaps(const Model& model, const Engine& engine, const TokenText& text, Place place, const MapOptions& options);

  // Bytes that a MapsReading keeps.
  static size_t bytes_of_all(const ModelSpec& spec, const TokenText& text);

  int64_t queries() const { return queries_; }
  int64_t keys() const { return keys_; }
  size_t bytes() const { return (q_.size() + k_.size() + lse_.size()) * sizeof(float); }

  // Rows [first_row, end_row), columns [first_column, end_column), cut to the map.
  struct Range {
    int64_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
  };
  MapPart tile(int64_t head, Range range) const;
  // At most `side` cells a side, from at most `rows` rows of each cell.
  MapPart overview(int64_t head, int64_t side, int64_t rows) const;
  // The same without the first key, as in thumbnails.
  MapPart thumbnail(int64_t head, int64_t side, int64_t rows) const;

 private:
  friend class MapsReading;
  LayerMaps(const ModelSpec& spec, const TokenText& text, Place place);
  void fill_row(int64_t head, int64_t row, int64_t first, std::span<float> to) const;
  MapPart pooled(int64_t head, int64_t side, int64_t rows, int64_t first_key) const;

  AttentionSpec spec_;
  int64_t queries_ = 0, keys_ = 0;
  bool square_ = true;              // queries and keys are the same tokens
  std::vector<float> q_, k_, lse_;  // [queries, H, D], [keys, G, D], [queries, H]
  std::vector<float> slopes_;       // ALiBi
};

// Keeps the maps of every attention that has such maps, or of some, in whatever pass reads with it.
class MapsReading : public ReadingProbe {
 public:
  MapsReading() = default;
  MapsReading(const ModelSpec& spec, const TokenText& text);
  void add(Place place, LayerMaps& to) { to_[{place.stack, place.layer}] = &to; }

  void begin(Context&, const PassTexts&) override {}
  Ask ask(Place place, Site site) const override;
  void visit(Context& cx, const Tap& tap, Tensor& x) override;

  std::vector<std::pair<Place, std::unique_ptr<LayerMaps>>> all;  // of a text that was given

 private:
  std::map<std::pair<Stack, int16_t>, LayerMaps*> to_;
};

// One pass over a text.
void read_maps(const Model& model, const Engine& engine, const TokenText& text, MapsReading& maps,
               const MapOptions& options);

// Pooled maps of all heads, of every attention in the order of all_attentions(), from a few rows of each cell in one
// pass: thumbnails of a text that is too long for its patterns to be kept. The first key is left out.
std::vector<std::vector<MapPart>> pooled_maps(const Model& model, const Engine& engine, const TokenText& text,
                                              int64_t side, const MapOptions& options);

}  // namespace qkv
