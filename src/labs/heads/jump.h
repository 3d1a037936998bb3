// How sudden a curve over training steps rises.
#pragma once

#include <span>

#include "labs/lab.h"

namespace qkv {

// From the last point at 10 % of the rise to the first one at 90 % (both between points, on a straight line), in
// log(steps), over the log of all steps. 0: at once; 1: as long as the training. x: steps, from 0 on.
double jump_in_log_steps(std::span<const LabPoint> points);

}  // namespace qkv
