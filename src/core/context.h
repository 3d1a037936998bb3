// What a pass carries from op to op.
#pragma once

#include <span>

#include "core/kernels.h"
#include "core/precision.h"
#include "core/tape.h"

namespace qkv {

// Randomness of a pass: a counter keyed by these and by layer and site, never a state.
struct Rng {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t first_row = 0;  // global token index of row 0
};

class Context {
 public:
  const Kernels& kernels;
  const Exec& exec;
  Arena& arena;
  Precision precision;
  Tape* tape = nullptr;    // absent: inference
  Probe* probe = nullptr;  // absent: nobody looks
  Rng rng;
  bool training = false;          // dropout is on
  bool recompute_layers = false;  // under a tape, layers of one stack keep only what enters and leaves them
  bool guard_finite = false;      // every op's output is checked: slow, names the op that made the first NaN
  bool replaying = false;         // inside recompute(): taps that only read have been visited already

  Tensor make(const Shape& shape, DType dtype);  // an op's output: memory from the arena, a node on the tape
  Tensor constant(const Shape& shape, DType dtype) { return arena.take(dtype, shape); }  // no gradient wanted
  Tensor upload(std::span<const int32_t> host);                                          // i32 [size]
  Tensor upload(std::span<const float> host, const Shape& shape);                        // in precision.exact

  // The last line of every op: hands the output back, checked if guard_finite.
  Tensor finish(const char* op, const Tensor& y);
  void check_finite(const char* op, const char* what, const Tensor& t);

  // Looking: one predicted branch where nobody does.
  Ask ask(Place place, Site site) const { return probe == nullptr ? Ask::none : probe->ask(place, site); }
  bool watched(Place place, Site site) const { return has(ask(place, site), Ask::read | Ask::edit); }
  void tap(Place place, Site site, Tensor& x, const Rows* rows = nullptr) {
    if (probe != nullptr) [[unlikely]]
      visit(place, site, x, rows);
  }

 private:
  void visit(Place place, Site site, Tensor& x, const Rows* rows);
};

}  // namespace qkv
