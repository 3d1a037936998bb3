// Looks at one text while it is written, in the passes it shares with others. Used by the engine's thread alone.
//
// Position p of a text is the row that chose the token at p + 1. Each such row has its own TokenLook.
#pragma once

#include <map>
#include <optional>

#include "infer/session_probe.h"
#include "inspect/lens/ladder.h"
#include "model/model.h"
#include "server/look/look_request.h"

namespace qkv::server {

struct TokenLook {
  int64_t position = 0;
  std::vector<std::vector<float>> statistics = {};  // as LookRequest::statistics lists them, [heads]
  struct HeadRow {
    size_t head = 0;             // of LookRequest::heads
    float strongest = 0;         // weight of its strongest key
    std::vector<float> weights;  // [position + 1]
  };
  std::vector<HeadRow> top = {};  // strongest first
  // LookMaps::full: rows up to `position` that no earlier token has; each [heads, its position + 1].
  int64_t first_row = 0;
  std::vector<std::vector<float>> rows = {};
  std::vector<Rung> ladder = {};  // the embedding, then after each layer
};

// Of a whole text, at its end.
struct TextLook {
  int64_t rows = 0, pooled = 1;   // rows it has seen; rows and keys in one cell of a thumbnail
  std::vector<float> thumbnails;  // [heads, side, side]: mean over a cell's rows of the sum over its keys
  bool truncated = false;         // the bytes were used up: later tokens are missing
  int64_t side() const { return (rows + pooled - 1) / pooled; }
};

class LookProbe : public SessionProbe {
 public:
  LookProbe(const Model& model, LookRequest request, int64_t prompt_tokens);

  // The row that chose token `position + 1`, if it was seen.
  std::optional<TokenLook> take(int64_t position);
  TextLook finish();

  bool begin(int64_t first, int64_t rows) override;
  Ask ask(Place place, Site site) const override;
  StatsWanted stats_wanted(Place place) const override;
  std::vector<int32_t> rows_wanted(Place place) const override;
  void visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) override;
  void visit(Context& cx, const Tap& tap, Tensor& x) override;

 private:
  // The chosen heads of one attention: numbers [first, first + heads.size()) of LookRequest::heads.
  struct OfLayer {
    size_t first = 0;
    std::vector<size_t> heads;
  };
  bool wants(LookStatistic statistic) const;
  void take_statistic(LookStatistic statistic, const OfLayer& layer, const Tensor& values);
  void take_top(const OfLayer& layer, const Tensor& pattern);
  void pool(const OfLayer& layer, const Tensor& pattern);
  void keep_rows(const OfLayer& layer, const Tensor& pattern);
  void widen();
  void climb(Context& cx);
  int64_t cost() const;  // bytes of the numbers of this pass

  const Model& model_;
  LookRequest request_;
  int64_t prompt_;
  std::map<int16_t, OfLayer> layers_;
  int64_t left_;  // bytes
  bool truncated_ = false;

  // Of the pass.
  int64_t first_ = 0, rows_ = 0;
  int64_t chosen_ = 0;           // the first row that chooses a token; rows_ if none does
  std::vector<TokenLook> seen_;  // by row from chosen_
  std::vector<float> highest_;   // [rows from chosen_, H] of the layer in progress
  std::vector<int32_t> argmax_;
  std::vector<std::vector<float>> streams_;  // [rows from chosen_, C] of each level

  // Of the text.
  std::vector<std::vector<float>> kept_;  // LookMaps::full: rows that no token took yet
  int64_t first_kept_ = 0;
  int64_t pooled_rows_ = 0, pooled_ = 1;
  // [heads, kThumbnail, kThumbnail]: sums in units of 2^-40, so that their order does not matter.
  std::vector<int64_t> cells_;
};

}  // namespace qkv::server
