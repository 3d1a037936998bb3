#include "base/log_sum_exp.h"

#include <algorithm>
#include <cmath>

namespace qkv {

double log_sum_exp(std::span<const float> logits) {
  const auto most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  return most + std::log(sum);
}

std::vector<double> log_softmax(std::span<const float> logits) {
  const double total = log_sum_exp(logits);
  std::vector<double> out;
  out.reserve(logits.size());
  for (const float x : logits) out.push_back(static_cast<double>(x) - total);
  return out;
}

double kl_divergence(std::span<const double> log_p, std::span<const double> log_q) {
  double kl = 0;
  for (size_t v = 0; v < log_p.size(); ++v) kl += std::exp(log_p[v]) * (log_p[v] - log_q[v]);
  return kl;
}

}  // namespace qkv
