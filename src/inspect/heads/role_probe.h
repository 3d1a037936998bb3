// The probe behind head_roles(): statistics from the kernel for every row, summed over each text on the device, and
// recomputed rows of the attention map for measures that need single keys.
#pragma once

#include <map>
#include <memory>

#include "inspect/heads/head_roles.h"
#include "inspect/heads/head_writes.h"
#include "inspect/heads/role_counts.h"
#include "inspect/heads/role_row.h"
#include "inspect/heads/role_sums.h"
#include "inspect/texts/role_texts.h"

namespace qkv {

class RoleProbe : public ReadingProbe {
 public:
  RoleProbe(const Model& model, RoleTexts& texts, RoleSums& sums, const RoleOptions& options);

  void begin(Context& cx, const PassTexts& pass) override;
  Ask ask(Place place, Site site) const override;
  StatsWanted stats_wanted(Place place) const override;
  std::vector<int32_t> rows_wanted(Place place) const override { return shown_[at(query_side(place))]; }
  void visit_stats(Context& cx, const Tap& tap, const AttentionStats& stats) override;
  void visit(Context& cx, const Tap& tap, Tensor& x) override;
  void end() override;

  int64_t rows_shown() const { return rows_shown_; }

 private:
  static constexpr int32_t kFirstCounted = RoleCounts::kFirstCounted;
  static size_t at(TextSide side) { return static_cast<size_t>(side); }

  // State of one attention.
  struct OfAttention {
    const AttentionSpec* spec = nullptr;
    size_t first_head = 0;  // in all_heads()
    StatsColumns columns = {};
    Tensor sums;        // of the statistics of this pass, [group, head, column]
    bool seen = false;  // in this pass
    std::unique_ptr<HeadWrites> writes;
    std::map<int32_t, std::vector<float>> lengths;  // |v W_O| of each text, [position, head]
    std::vector<float> written;                     // |z W_O| of shown rows, [row, head]
    std::vector<int32_t> strongest;                 // most attended key, [row, head]
    std::vector<double> raised;                     // logit contributions of copied_ rows, [row, head]
  };
  OfAttention& attention(Place place) { return attentions_.at({place.stack, place.layer}); }
  TextSide query_side(Place place) const {
    return has_source_ && place.stack == Stack::encoder ? TextSide::source : TextSide::own;
  }
  TextSide key_side(Place place) const {
    return has_source_ && place.stack != Stack::decoder ? TextSide::source : TextSide::own;
  }
  const std::vector<PassTexts::At>& rows_of(TextSide side) const {
    return side == TextSide::own ? pass_->rows : pass_->source_rows;
  }
  RoleRow row_of(const RoleView& view, const PassTexts::At& row);
  void choose_rows(TextSide side);
  Tensor shown_rows(Context& cx, TextSide side, const Tensor& x) const;

  RoleView view_of(Place place) const;
  void prepare_sums(Context& cx);
  void read_pattern(Place place, const std::vector<float>& pattern, int64_t keys);
  void weigh_row(Place place, const RoleRow& row, std::span<const float> weights,
                 std::span<TextSum, kMeasures> sums) const;
  void rest_of_texts(Place place);
  void read_written(Context& cx, Place place, const Tensor& z);
  void raise_logits(Context& cx, Place place, const Tensor& z);
  void finish_written(Place place, std::span<const double> scales);
  void finish_logits(const std::vector<float>& stream);

  const Model& model_;
  RoleTexts& texts_;
  RoleSums& sums_;
  const RoleOptions& options_;
  bool has_source_;
  bool copies_;  // whether logits can be attributed to heads
  std::map<std::pair<Stack, int16_t>, OfAttention> attentions_;
  std::unique_ptr<LogitDirections> directions_;

  const PassTexts* pass_ = nullptr;
  std::map<RoleView, RoleCounts> counts_;      // of this pass
  Tensor all_sums_;                            // of all attentions, one after the other
  std::array<Tensor, 2> kinds_;                // of the keys of each side
  std::array<std::vector<int32_t>, 2> shown_;  // rows whose attention map is recomputed
  std::vector<size_t> copied_;                 // which of shown_[own] are measured for copying
  std::vector<float> stream_;                  // norm of the residual stream before the layer, per shown row
  int64_t rows_shown_ = 0;
};

}  // namespace qkv
