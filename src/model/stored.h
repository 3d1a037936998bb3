// How a file holds the weights of a model: which of its tensors is which weight, and how the numbers lie in it.
// The same list reads and writes.
#pragma once

#include <string>
#include <vector>

#include "model/weight_list.h"

namespace qkv {

// One weight of a tensor: a whole weight, or one expert of a weight [E, ...].
struct StoredPart {
  std::string weight;
  int64_t expert = -1;
};

// One tensor of the file. Several parts lie one after the other along the outputs.
struct StoredTensor {
  enum class Layout : uint8_t {
    plain,    // as the weights are, [.., O, K]
    swapped,  // the last two axes changed, [.., K, O]
    by_head,  // outputs of the first head of every part, then of the second, ...
    in_turn,  // swapped, and outputs alternate between the parts: gpt-oss
  };
  std::string name;
  std::vector<StoredPart> parts;
  Layout layout = Layout::plain;
  int64_t heads = 1;           // by_head
  std::vector<int64_t> shape;  // as the file has it
};

class StoredList {
 public:
  explicit StoredList(const ModelSpec& spec);

  const ModelSpec& spec() const { return spec_; }
  bool has(const std::string& weight) const { return find(weight) != nullptr; }

  // Each adds tensors for the weights that the model has, and nothing for those it has not.
  void tensor(const std::string& name, const std::string& weight);  // a bare name
  void linear(const std::string& name, const std::string& weight);  // NAME.weight, NAME.bias
  void fused(const std::string& name, std::vector<std::string> weights,
             StoredTensor::Layout layout = StoredTensor::Layout::plain, int64_t heads = 1);  // NAME.weight, NAME.bias
  void swapped(const std::string& name, const std::string& weight);  // NAME.weight [K, O], NAME.bias
  void tensor_as(StoredTensor stored);                               // anything else
  // PREFIX0SUFFIX, PREFIX1SUFFIX, ...: one tensor per expert.
  void experts(const std::string& prefix, const std::string& suffix, const std::string& weight);

  // Tensors that may be in a file and say nothing new: buffers, copies of tied weights. '*' stands for anything.
  void ignore(std::string pattern) { ignored_.push_back(std::move(pattern)); }
  bool ignores(const std::string& name) const;

  // Every weight must be named exactly once.
  std::vector<StoredTensor> take();

 private:
  const WeightSpec* find(const std::string& weight) const;
  void add(StoredTensor stored);

  const ModelSpec& spec_;
  std::vector<WeightSpec> weights_;  // sorted by name
  std::vector<StoredTensor> list_;
  std::vector<std::string> ignored_;
};

}  // namespace qkv
