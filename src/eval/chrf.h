// Corpus chrF and chrF++ (Popovic, WMT 2015 and 2017): F-scores of character n-grams up to 6, and for chrF++ also of
// word n-grams up to 2. Precision and recall of an order are over all lines together; beta = 2 weighs recall; the score
// is the mean of the F-scores of the orders: sacreBLEU's eps smoothing (signature eff:no). Spaces are ignored. As in
// sacreBLEU, n-grams of an order of which the reference line has none are not counted.
//
//   F_n = (1 + beta^2) * P_n * R_n / (beta^2 * P_n + R_n)
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

// Counts against the reference with the best score for this line.
ChrfCounts chrf_counts(std::string_view hypothesis, std::span<const std::string_view> references, ChrfWords words);

double chrf(const ChrfCounts& counts, ChrfWords words);  // 0 to 100

}  // namespace qkv
