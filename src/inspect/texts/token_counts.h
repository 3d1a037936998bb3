// Unigram and bigram counts, and the distance of a model's predictions from them.
//
//   unigram(b)   = (c(b) + 1/2) / (n + V/2)
//   bigram(b|a)  = (c(a,b) + k unigram(b)) / (c(a) + k)         k = kBackoff: unseen pairs back off to the unigram
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

  // Bigrams are counted after the tokens of `before` only: those of the measured texts.
  TokenCounts(int64_t vocabulary, std::span<const int32_t> before);

  void add(int32_t before, int32_t token);  // before may be kNone
  // Tokens and their targets; negative targets are skipped. Empty `before`: no bigrams.
  void add(std::span<const int32_t> before, std::span<const int32_t> targets);
  void finish();  // after the last add()

  int64_t counted() const { return counted_; }
  int64_t count(int32_t token) const { return counts_[static_cast<size_t>(token)]; }
  std::vector<int32_t> most_frequent(size_t most) const;  // that occur; ties by lower id
  double unigram(int32_t token) const;
  double bigram(int32_t before, int32_t token) const;  // the unigram if nothing was counted after `before`

  struct Distance {
    double loss = 0;     // -log p(target)
    double unigram = 0;  // KL(p || unigram)
    double bigram = 0;   // KL(p || bigram(. | before))
  };
  // For p = softmax(logits).
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
