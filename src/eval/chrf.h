// chrF and chrF++ (Popovic, WMT 2015 and 2017): F-scores of character n-grams up to 6, and for chrF++ of word n-grams
// up to 2, of a corpus. An order's precision and recall are those of all lines together, beta = 2 weighs recall, and
// the score is the mean of the orders' F-scores: sacreBLEU's eps smoothing (its signature eff:no). Spaces do not count.
//
//   F_n = (1 + beta^2) * P_n * R_n / (beta^2 * P_n + R_n)
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace qkv {

enum class ChrfWords { none, up_to_two };  // chrF2, chrF2++

// Adds up over lines.
struct ChrfCounts {
  static constexpr size_t kCharacterOrders = 6, kWordOrders = 2, kOrders = kCharacterOrders + kWordOrders;
  std::array<int64_t, kOrders> hypothesis{}, reference{}, matching{};

  ChrfCounts& operator+=(const ChrfCounts& other);
};

// Against the reference under which this line scores best.
ChrfCounts chrf_counts(std::string_view hypothesis, std::span<const std::string_view> references, ChrfWords words);

double chrf(const ChrfCounts& counts, ChrfWords words);  // 0 to 100

}  // namespace qkv
