// Optimiser steps, the norm over all gradients, and clipping. The caller owns the state.
#pragma once

#include <span>
#include <vector>

#include "base/function_ref.h"
#include "core/context.h"

namespace qkv::ops {

struct AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0;
};
struct AdamState {
  Tensor m, v;       // zeros at the start, shape of the weight
  int64_t step = 0;  // steps done
};
void adamw_step(Context& cx, Param& w, AdamState& state, const AdamW& rule, double grad_factor = 1);

// Of many weights: adamw_step for each, in few launches where the kernels can.
struct AdamWStep {
  Param* weight = nullptr;
  AdamState* state = nullptr;
  AdamW rule;
};
// `grad_factor` is asked for when all else is ready: it may wait for the device.
void adamw_steps(Context& cx, std::span<const AdamWStep> all, FunctionRef<double()> grad_factor);

struct Muon {
  double lr = 0.02, momentum = 0.95, decay = 0;
};
// For weights [R, C], or [E, R, C] as E matrices. `buffer`: zeros at the start.
void muon_step(Context& cx, Param& w, const Tensor& buffer, const Muon& rule, double grad_factor = 1);

// Of many weights: muon_step for each, in few launches where the kernels can.
struct MuonStep {
  Param* weight = nullptr;
  Tensor buffer;
  Muon rule;
};
void muon_steps(Context& cx, std::span<const MuonStep> all, FunctionRef<double()> grad_factor);

struct Sgd {
  double lr = 0.1, momentum = 0, decay = 0;
};
void sgd_step(Context& cx, Param& w, const Tensor& buffer, const Sgd& rule, double grad_factor = 1);

// sqrt of the sum of squares over all gradients, in double and in one order. A NaN or Inf is an Error that names the
// weight.
double global_norm(Context& cx, std::span<const Param* const> params);
// The sum of squares of each gradient, 0 where there is none: begun at once, and read from the device with one wait.
class SquareNorms {
 public:
  SquareNorms(Context& cx, std::span<const Param* const> params);
  std::vector<double> read() const;

 private:
  std::vector<const Param*> params_;
  Tensor totals_;  // absent while planning
};

// The factor on gradients of this norm so that it does not exceed max_norm.
double clip_factor(double norm, double max_norm);

}  // namespace qkv::ops
