#include "core/gradient_watch.h"

#include "core/context.h"

namespace qkv {

void GradientWatch::reads(const Param& weight) {
  if (backward_ || !weight.trainable || !known_.insert(&weight).second) return;
  reads_.emplace_back(tape_.steps(), &weight);
}

void GradientWatch::adds(const Param& weight) {
  backward_ = true;
  if (begun_.insert(&weight).second) begun(weight);
}

void GradientWatch::step_done(Context& cx, const Tape& of_step) {
  if (&of_step != &tape_) return;
  backward_ = true;
  for (; !reads_.empty() && reads_.back().first >= tape_.steps(); reads_.pop_back()) {
    if (begun_.contains(reads_.back().second)) complete(cx, *reads_.back().second);
  }
}

}  // namespace qkv
