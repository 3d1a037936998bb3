// Direct logit attribution: the contribution of each head and feed-forward to a logit difference. The final residual
// stream is a sum of component outputs c. With the scale of the final norm fixed to its value in this run, norm and
// head are linear, so the difference of two logits is a sum with one term per component.
//
//   term(c) = ((c - mean c) o gamma / sigma) . (W_U[target] - W_U[against])      rms norms: without the mean
//
// A head contributes z_h W_O^h. A norm on a branch is applied to its terms, a norm on the stream to all terms so far,
// each with the scale it had. This is exact for norms before or on branches, and a linearisation for norms on the
// stream (and for BERT's head, where each activation becomes a factor). The terms sum to the difference in every case.
#pragma once

#include <string>
#include <vector>

#include "core/engine.h"
#include "inspect/heads/head_id.h"
#include "inspect/texts/reading.h"

namespace qkv {

struct AttributedPart {
  enum class Kind : uint8_t { embed, head, feed, biases } kind = Kind::embed;
  std::string name;  // "embed", "L3H7", "L3 mlp", "biases": of W_O, norms and logits
  double share = 0;  // its term of the difference
};

struct Attribution {
  std::vector<AttributedPart> parts;  // in the order of the pass
  double sum = 0;                     // of them
  double difference = 0;              // logit of the target less logit of the other, as the model computed them
};

class Attributor {
 public:
  // One pass over the text, then the parts of row `row`. An Error if there is no such row.
  Attributor(const Model& model, const Engine& engine, Precision precision, const TokenText& text, int64_t row);

  const std::vector<float>& logits() const { return logits_; }  // of the row, before a soft cap
  bool linearised() const { return linearised_; }
  Attribution of(int32_t target, int32_t against) const;

 private:
  using Vector = std::vector<double>;
  struct Part {
    AttributedPart::Kind kind;
    std::string name;
    Vector writes;  // input of the unembedding
  };
  struct Run;

  const Model& model_;
  const Engine& engine_;
  Precision precision_;
  std::vector<Part> parts_;
  std::vector<float> logits_;
  bool linearised_ = false;
};

}  // namespace qkv
