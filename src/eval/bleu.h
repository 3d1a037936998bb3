// BLEU (Papineni et al., ACL 2002) as sacreBLEU computes it for a corpus: n-grams up to 4, clipped by the references,
// exponential smoothing where an order has no match, brevity penalty against the closest reference length.
//
//   BLEU = BP * exp(sum_n log(p_n) / 4),   BP = exp(1 - r / c) if c < r, else 1
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

enum class BleuTokenizer {
  mteval_13a,  // WMT's tokenizer for languages with spaces
  chinese,     // Chinese characters separately, the rest as above
};

std::vector<std::string> bleu_tokens(std::string_view line, BleuTokenizer tokenizer);

// Counts of a line; they add up over lines.
struct BleuCounts {
  static constexpr size_t kOrders = 4;
  std::array<int64_t, kOrders> correct{}, total{};
  int64_t length = 0, reference_length = 0;  // tokens

  BleuCounts& operator+=(const BleuCounts& other);
};

BleuCounts bleu_counts(std::string_view hypothesis, std::span<const std::string_view> references, BleuTokenizer);

struct Bleu {
  double score = 0;  // 0 to 100
  std::array<double, BleuCounts::kOrders> precisions{};
  double brevity_penalty = 0;
};

Bleu bleu(const BleuCounts& counts);

}  // namespace qkv
