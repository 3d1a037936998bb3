// Facts to be learnt by heart: what a pair of words stands for, drawn at random, so that nothing but memory helps.
#pragma once

#include "labs/small_model.h"

namespace qkv {

// A fact: subject and relation, two tokens, have one of 64 values, the target of the second. Subjects and relations
// occur in many facts, so embeddings cannot hold them; what remains are the weights of the feed-forward.
struct FactTable {
  static constexpr int32_t kSubjects = 64, kRelations = 64, kValues = 64;
  static constexpr int64_t kVocabulary = kSubjects + kRelations;  // values are the tokens 0 to 63, targets alone

  FactTable(int64_t facts, uint64_t seed);
  TrainBatch texts(uint64_t seed, int64_t step, int64_t count) const;  // facts drawn with repetition
  TrainBatch all() const;                                              // each once: the exam

 private:
  void add(TrainBatch& batch, int32_t pair) const;
  std::vector<int32_t> pairs_, values_;  // those that are facts; by pair
};

// A Llama-style layer of width 32 whose feed-forward is one dense block or experts.
struct FactMemory {
  enum class Form : uint8_t {
    dense,    // as many multiplications for a token as the experts and their router, or more
    experts,  // a token visits 2 of 16
    tied,     // the same, but all experts are one and the same
    large,    // dense, with as many weights as all experts have
  };
  Form form = Form::dense;
  int64_t facts = 0, steps = 0;
};
// Multiplications of the feed-forward and its router for one token.
double feed_forward_products(FactMemory::Form form);
// Share of all facts known after training.
double facts_known(const LabContext& lab, const FactMemory& memory, uint64_t seed);

}  // namespace qkv
