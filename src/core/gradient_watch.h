// When is the gradient of a weight complete? Backward runs the steps of a tape in reverse, so nothing more is added to it
// once the first step that read the weight is done.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/param.h"

namespace qkv {

class Context;
class Tape;

// Of one forward and backward pass, in its Context. Weights are the trainable ones.
class GradientWatch {
 public:
  // `tape`: the outermost one of the pass.
  explicit GradientWatch(const Tape& tape) : tape_(tape) {}
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;
  virtual ~GradientWatch() = default;

  void reads(const Param& weight);                   // called by Param, which a forward pass reads
  void adds(const Param& weight);                    // called by Backward, which is about to add to a gradient
  void step_done(Context& cx, const Tape& of_step);  // called by Tape, after each step of backward

 protected:
  virtual void begun(const Param& weight) = 0;                  // before the first contribution
  virtual void complete(Context& cx, const Param& weight) = 0;  // once; not of a weight whose reading was not seen

 private:
  const Tape& tape_;
  std::vector<std::pair<size_t, const Param*>> reads_;  // by the first step that read it, in the order of steps
  std::set<const Param*> known_, begun_;
  bool backward_ = false;
};

}  // namespace qkv
