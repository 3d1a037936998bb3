// Log-probabilities of given tokens, for perplexity and for comparing sentences.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "data/token_text.h"
#include "infer/runner.h"

namespace qkv {

// log p(ids[i] | ids[0 .. i-1], source) of ids[first], ids[first + 1], ... of each text, in nats. Short texts share a
// pass, long ones take several; no pass has more rows than the runner's chunk. A value never depends on the other
// texts. `finished` is called with the number of texts done; false ends it.
std::vector<std::vector<double>> log_probabilities(Runner& runner, std::span<const TokenText> texts,
                                                   const std::function<bool(size_t)>& finished = {});

}  // namespace qkv
