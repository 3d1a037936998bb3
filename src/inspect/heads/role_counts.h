// What the host knows about the rows of a pass, for all attentions in which a row sees the same keys: which rows count
// in the sums that the device makes of their statistics, and how many do in each.
#pragma once

#include <compare>

#include "base/function_ref.h"
#include "inspect/heads/role_row.h"
#include "inspect/heads/role_sums.h"
#include "inspect/texts/role_texts.h"
#include "ops/ops.h"

namespace qkv {

struct RoleView {
  TextSide queries = TextSide::own, keys = TextSide::own;
  bool causal = true;
  int64_t window = 0, chunk = 0;
  auto operator<=>(const RoleView&) const = default;
};

class RoleCounts {
 public:
  static constexpr int32_t kFirstCounted = 2;  // earlier rows have too few keys

  static StatsColumns columns(const RoleTexts& texts, const AttentionSpec& spec, TextSide keys);

  RoleCounts(Context& cx, const RoleTexts& texts, const RoleView& view, std::span<const PassTexts::At> rows,
             FunctionRef<RoleRow(const PassTexts::At&)> row_of);

  const StatsRows& rows() const { return rows_; }
  int64_t groups() const { return std::ssize(groups_); }
  // The sums of one attention, [group, head, column].
  void add(const AttentionSpec& spec, const StatsColumns& at, size_t first_head, std::span<const double> sums,
           RoleSums& to) const;

 private:
  struct Counted {  // of one group
    int32_t text = 0;
    int64_t rows = 0, marks = 0, rare = 0;
    std::array<int64_t, 6> offsets = {};  // rows that see the key at offset 0 ... 4, -1
    double even = 0;                      // sum of 1 / keys: uniform attention
    std::array<double, kTokenKinds> base = {}, marks_base = {};
  };
  void count(Counted& group, const RoleRow& row, const std::optional<RoleTexts::Rare>& rare) const;
  void add_chance(const AttentionSpec& spec, const Counted& group, std::span<TextSum, kMeasures> chance) const;
  void add_kinds(const Counted& group, const double* in_class, const double* again,
                 std::span<TextSum, kMeasures> sums) const;

  bool kinds_;  // known
  StatsRows rows_;
  std::vector<Counted> groups_;
};

}  // namespace qkv
