// Direct logit attribution: which head and which feed-forward says what. The last stream is a sum of what everything
// before wrote to it; the last norm, its scale kept as it was in this run, and the head are linear, so a difference of
// two logits is a sum too, with one term for each writer.
//
//   term(c) = ((c - mean c) o gamma / sigma) . (W_U[target] - W_U[against])      rms norms: without the mean
//
// A head writes z W_O of its own rows. Norms on a branch map what stands in the branch, norms on the stream all that is
// in it so far, each with the scale it had: exact where norms stand before branches or on them, a linearisation where
// they stand on the stream (and in BERT's head, each number's activation kept as a factor). The terms add up in every
// case.
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
  double share = 0;  // of the difference, in logits
};

struct Attribution {
  std::vector<AttributedPart> parts;  // in the order they write
  double sum = 0;                     // of them
  double difference = 0;              // logit of the target less logit of the other, as the model computed them
};

class Attributor {
 public:
  // One pass over the text, then what row `row` is made of. An Error if there is no such row.
  Attributor(const Model& model, const Engine& engine, Precision precision, const TokenText& text, int64_t row);

  const std::vector<float>& logits() const { return logits_; }  // of the row, before a soft cap
  bool linearised() const { return linearised_; }
  Attribution of(int32_t target, int32_t against) const;

 private:
  using Vector = std::vector<double>;
  struct Part {
    AttributedPart::Kind kind;
    std::string name;
    Vector writes;  // as it enters the last product
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
