// log(sum of exp) of a row of logits, and what follows from it.
#pragma once

#include <span>
#include <vector>

namespace qkv {

// In double, in order of ids.
double log_sum_exp(std::span<const float> logits);

// log p_v = x_v - log_sum_exp(x).
std::vector<double> log_softmax(std::span<const float> logits);

// KL(p || q) = sum_v p_v (log p_v - log q_v) of log-probabilities, in nats.
double kl_divergence(std::span<const double> log_p, std::span<const double> log_q);

}  // namespace qkv
