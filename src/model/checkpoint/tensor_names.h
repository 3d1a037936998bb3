// The map between tensors of a file and weights of a model: names and layouts. Used for reading and writing.
#pragma once

#include <string>
#include <vector>

#include "model/weight_list.h"

namespace qkv {

// One weight of a tensor: a whole weight, or one expert of a weight [E, ...].
struct NamedPart {
  std::string weight;
  int64_t expert = -1;
};

// One tensor of the file. Several parts are concatenated along the outputs.
struct NamedTensor {
  enum class Layout : uint8_t {
    plain,        // as the weights are, [.., O, K]
    transposed,   // [.., K, O]
    by_head,      // outputs of the first head of every part, then of the second, ...
    interleaved,  // transposed, and outputs alternate between the parts: gpt-oss
    rope_pairs,   // within a head, outputs i and i + D / 2 are adjacent: GGUF's Llama
  };
  std::string name;
  std::vector<NamedPart> parts;
  Layout layout = Layout::plain;
  int64_t heads = 1;           // by_head, rope_pairs
  std::vector<int64_t> shape;  // in the file
  double shift = 0;            // the file holds weight + shift
  Format panels;               // q8 or q4: the file holds the bytes of core/panels.h, of one whole weight
};

// Whether a name matches a pattern, in which '*' matches anything.
bool matches(std::string_view pattern, std::string_view name);

class TensorNames {
 public:
  explicit TensorNames(ModelSpec spec);

  const ModelSpec& spec() const { return spec_; }
  bool has(const std::string& weight) const { return find(weight) != nullptr; }
  const WeightSpec& weight(const std::string& name) const;

  // Each adds tensors for the weights the model has, and skips the others.
  void tensor(const std::string& name, const std::string& weight);  // a bare name
  void linear(const std::string& name, const std::string& weight);  // NAME.weight, NAME.bias
  void fused(const std::string& name, std::vector<std::string> weights,
             NamedTensor::Layout layout = NamedTensor::Layout::plain, int64_t heads = 1);  // NAME.weight, NAME.bias
  void transposed(const std::string& name, const std::string& weight);  // NAME.weight [K, O], NAME.bias
  void tensor_as(NamedTensor stored);                                   // anything else
  // PREFIX0SUFFIX, PREFIX1SUFFIX, ...: one tensor per expert.
  void experts(const std::string& prefix, const std::string& suffix, const std::string& weight);

  // Norms multiply by weight + offset (NormSpec). For a file whose norms multiply by its stored value + `offset`.
  void norms_stored_for(double offset);

  // Tensors to skip: buffers, copies of tied weights. '*' matches anything.
  void ignore(std::string pattern);
  bool ignores(const std::string& name) const;

  const std::vector<NamedTensor>& tensors() const { return list_; }
  // An internal Error unless every weight is named exactly once.
  void check_complete() const;

 private:
  const WeightSpec* find(const std::string& weight) const;
  void add(NamedTensor stored);

  ModelSpec spec_;
  std::vector<WeightSpec> weights_;  // sorted by name
  std::vector<NamedTensor> list_;
  std::vector<std::string> ignored_;
};

}  // namespace qkv
