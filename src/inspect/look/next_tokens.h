// What a model would write after a text: the likeliest tokens with their logits, from which any sampling can be worked
// out: p at temperature t is exp(logit / t) over the sum.
#pragma once

#include "inspect/look/looking.h"

namespace qkv {

struct NextTokens {
  struct Candidate {
    int32_t id = 0;
    double logit = 0;
  };
  int64_t token = 0;                  // the row it is read at
  double lse = 0;                     // of all logits: p = exp(logit - lse)
  std::vector<Candidate> candidates;  // likeliest first
  double rest = 0;                    // probability of all other tokens
};

// At the last row that was kept.
NextTokens next_tokens(const Model& model, const Engine& engine, const Looked& seen, Precision precision,
                       size_t most = 256);

}  // namespace qkv
