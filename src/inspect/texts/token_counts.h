// How often tokens stand in a text, and after which other: what a model learns first, and how far it is from that.
//
//   unigram(b)   = (c(b) + 1/2) / (n + V/2)
//   bigram(b|a)  = (c(a,b) + k unigram(b)) / (c(a) + k)         k = kBackoff: pairs never seen go by the unigram
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace qkv {

class TokenCounts {
 public:
  static constexpr double kBackoff = 10;
  static constexpr int32_t kNone = -1;

  // Pairs are counted after the tokens of `before` only: what the measured texts have.
  TokenCounts(int64_t vocabulary, std::span<const int32_t> before);

  void add(int32_t before, int32_t token);  // before: or kNone
  // What rows stand at, and what they should say; negative targets count nothing. Empty: nothing is before them.
  void add(std::span<const int32_t> before, std::span<const int32_t> targets);
  void finish();  // all is counted

  int64_t counted() const { return counted_; }
  int64_t count(int32_t token) const { return counts_[static_cast<size_t>(token)]; }
  std::vector<int32_t> most_frequent(size_t most) const;  // that occur at all; the smaller id first among equals
  double unigram(int32_t token) const;
  double bigram(int32_t before, int32_t token) const;  // the unigram where nothing was counted after `before`

  struct Distance {
    double loss = 0;     // -log p(target)
    double unigram = 0;  // KL(p || unigram)
    double bigram = 0;   // KL(p || bigram(. | before))
  };
  // Of the distribution these logits are.
  Distance distance(std::span<const float> logits, int32_t before, int32_t target) const;

 private:
  struct After {
    int64_t total = 0;
    std::unordered_map<int32_t, int64_t> counts;
    std::vector<std::pair<int32_t, double>> more;  // log bigram - log of the backed-off unigram, of pairs seen
  };
  std::vector<int64_t> counts_;
  std::vector<double> logs_;
  std::unordered_map<int32_t, After> after_;
  int64_t counted_ = 0;
};

}  // namespace qkv
