// The keys visible to a query row; the same for all heads of an attention.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "inspect/heads/head_roles.h"
#include "inspect/texts/token_kinds.h"

namespace qkv {

struct RoleRow {
  int32_t text = 0, position = 0;
  int64_t begin = 0, end = 0;                 // visible keys
  bool kinds = false;                         // whether token kinds are known
  bool is_mark = false;                       // the query token is punctuation
  std::array<double, kTokenKinds> base = {};  // share of each kind among the visible keys
  std::vector<int32_t> copies;                // earlier positions of the same token

  int64_t count() const { return end - begin; }
  bool sees(int64_t key) const { return key >= begin && key < end; }

  // Punctuation measures from the mass on each token kind.
  template <class Mass>
  void add_kinds(std::span<const Mass> masses, std::span<TextSum, kMeasures> sums) const {
    const auto add = [&](Measure m, double value) { sums[static_cast<size_t>(m)].add(value); };
    constexpr auto kSpecial = static_cast<size_t>(TokenKind::special);
    double marks = 0, marks_base = 0;
    for (size_t k = 1; k < kSpecial; ++k) {  // TokenKind and Measure have the same order
      marks += static_cast<double>(masses[k]);
      marks_base += base[k];
      sums[static_cast<size_t>(Measure::period) + k - 1].add(static_cast<double>(masses[k]) - base[k]);
    }
    add(Measure::punctuation, marks - marks_base);
    add(Measure::punctuation_mass, marks);
    add(Measure::special, static_cast<double>(masses[kSpecial]) - base[kSpecial]);
    add(Measure::special_mass, static_cast<double>(masses[kSpecial]));
    if (is_mark) add(Measure::from_punctuation, marks - marks_base);
  }
};

}  // namespace qkv
