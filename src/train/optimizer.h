// All weights of a model, one step further. Decay pulls at matrices only; Muon turns the matrices inside the layers and
// leaves embeddings, heads, routers, norms and biases to AdamW.
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
  double clip = 1;  // the most the norm of all gradients may be; 0: any
};
const char* name_of(OptimizerSpec::Kind kind);
void validate(const OptimizerSpec& spec);

class Optimizer {
 public:
  // With other ranks the work may be divided; see DataParallel.
  Optimizer(const ModelSpec& model, Weights& weights, const OptimizerSpec& spec, Comm& comm = self_comm(),
            int zero = 0);

  // Gradients must be there for every weight it keeps; they are multiplied by `factor` first.
  void step(Context& cx, double lr, double factor);
  const DataParallel& shares() const { return shares_; }
  int64_t steps() const { return steps_; }

  // What has to be kept to go on: tensors like the weights, by name ("m.layers.0.attn.q"), zeros at the start. Where
  // owners keep them, those of this rank; gather_states() brings all to rank 0, until drop_gathered().
  struct State {
    std::string name;
    Tensor tensor;
  };
  std::vector<State> states() const;
  void gather_states();
  void drop_gathered();
  void set_steps(int64_t steps) { steps_ = steps; }  // after the states were read back
  static int64_t bytes(const ModelSpec& model, const OptimizerSpec& spec);

  // The weights it moves, in the order of their names.
  std::vector<Param*> trainable() const { return shares_.weights(); }

 private:
  struct Slot {
    Param* weight = nullptr;
    OptimizerSpec::Kind rule = OptimizerSpec::Kind::adamw;
    bool decays = false;
    Storage first, second;  // m and v, or the momentum
  };

  Storage zeros_like(const Param& weight) const;

  OptimizerSpec spec_;
  DataParallel shares_;
  int64_t steps_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace qkv
