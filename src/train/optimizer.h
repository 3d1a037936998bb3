// AdamW, Muon or SGD over all weights of a model. Weight decay applies to matrices only. Muon updates the matrices
// inside the layers; embeddings, output heads, routers, norms and biases use AdamW.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/weight_list.h"
#include "nn/weights.h"
#include "ops/optim.h"
#include "train/data_parallel.h"

namespace qkv {

struct OptimizerSpec {
  enum class Kind : uint8_t { adamw, muon, sgd } kind = Kind::adamw;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double momentum = 0.95;  // of Muon and SGD
  double decay = 0.1;
  double clip = 1;  // largest norm of all gradients; 0: no clipping
};
const char* name_of(OptimizerSpec::Kind kind);
void validate(const OptimizerSpec& spec);

class Optimizer {
 public:
  // Several ranks: see DataParallel.
  Optimizer(const ModelSpec& model, Weights& weights, const OptimizerSpec& spec, Comm& comm = self_comm(),
            int zero = 0);

  // Updates the weights this rank keeps; gradients are multiplied by `factor` first. It is asked for once, when all else is
  // ready: it may wait for the device, and refuse the step.
  void step(Context& cx, double lr, FunctionRef<double()> factor);
  const DataParallel& data_parallel() const { return data_parallel_; }
  int64_t steps() const { return steps_; }

  // The optimiser's tensors, shaped like the weights ("m.layers.0.attn.q"), zero at the start. With zero > 0 only those
  // this rank owns; gather_states() brings all to rank 0, those of others to its host's memory, until drop_gathered().
  struct State {
    std::string name;
    Tensor tensor;
  };
  std::vector<State> states() const;
  void gather_states();
  void drop_gathered();
  void set_steps(int64_t steps) { steps_ = steps; }                           // when states are restored
  static int64_t bytes(const OptimizerSpec& spec, const WeightSpec& weight);  // of those of one weight

  // The weights it updates, in the order of their names.
  std::vector<Param*> trainable() const { return data_parallel_.weights(); }

 private:
  struct Slot {
    Param* weight = nullptr;
    OptimizerSpec::Kind rule = OptimizerSpec::Kind::adamw;
    bool decays = false;
    Storage first, second;  // m and v, or the momentum
  };

  Storage zeros_like(const Param& weight) const;

  OptimizerSpec spec_;
  DataParallel data_parallel_;
  int64_t steps_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace qkv
