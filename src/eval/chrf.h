// Corpus chrF and chrF++ (Popovic, WMT 2015 and 2017), as sacreBLEU computes them: character n-grams up to 6, and for
// chrF++ also word n-grams up to 2. Precision and recall of an order are over all lines together; beta = 2 weighs recall.
// Spaces are ignored, and n-grams of an order of which the reference line has none are not counted.
//
//   F = (1 + beta^2) * P * R / (beta^2 * P + R)
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace qkv {

enum class ChrfWords { none, up_to_two };  // chrF2, chrF2++

// Counts of a line; they add up over lines.
struct ChrfCounts {
  static constexpr size_t kCharacterOrders = 6, kWordOrders = 2, kOrders = kCharacterOrders + kWordOrders;
  std::array<int64_t, kOrders> hypothesis{}, reference{}, matching{};

  ChrfCounts& operator+=(const ChrfCounts& other);
};

// effective: F of the mean precision and recall over the orders that both sides have (sacreBLEU's default, eff:yes).
// eps: the mean over all orders of their own F (eff:no).
enum class ChrfSmoothing { effective, eps };

double chrf(const ChrfCounts& counts, ChrfWords words, ChrfSmoothing smoothing = ChrfSmoothing::effective);  // 0 to 100

// Counts against the reference with the best score for this line.
ChrfCounts chrf_counts(std::string_view hypothesis, std::span<const std::string_view> references, ChrfWords words,
                       ChrfSmoothing smoothing = ChrfSmoothing::effective);

}  // namespace qkv
