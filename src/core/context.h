// The state of a pass: what every op takes as its first argument.
#pragma once

#include <memory>
#include <span>

#include "core/constants.h"
#include "core/kernels.h"
#include "core/precision.h"
#include "core/tape.h"

namespace qkv {

// Random numbers of a pass are a function of these, layer, site and index (Philox); there is no generator state.
struct Rng {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t first_row = 0;  // global token index of row 0
};

class GradientWatch;

class Context {
 public:
  const Kernels& kernels;
  const Exec& exec;
  Arena& arena;
  Precision precision;
  Tape* tape = nullptr;                     // absent: inference
  Probe* probe = nullptr;                   // absent: no taps
  GradientWatch* gradient_watch = nullptr;  // hears when the gradient of a weight is complete
  Rng rng;
  bool training = false;          // dropout is on
  bool recompute_layers = false;  // under a tape, only the input and output of a layer are kept
  bool guard_finite = false;      // check every op's output and name the op of the first NaN; slow
  bool replaying = false;         // inside recompute(): taps that only read are skipped
  bool indices_checked = false;   // by the caller, on the host: nothing is read back from a device to check them
  // The pass may be recorded (core/pass_recorder.h): indices are checked, and page tables come in few widths.
  bool recordable = false;
  Constants* constants = nullptr;   // of devices that record
  std::shared_ptr<void> turn = {};  // of the device

  Tensor make(const Shape& shape, DType dtype);  // an op's output: memory from the arena, a node on the tape
  Tensor constant(const Shape& shape, DType dtype) { return arena.take(dtype, shape); }  // without a gradient
  Tensor upload(std::span<const int32_t> host);                                          // i32 [size]
  Tensor upload(std::span<const float> host, const Shape& shape);                        // in precision.exact

  // The same for what is equal in every pass.
  Tensor lasting(std::span<const int32_t> host);
  Tensor lasting(std::span<const float> host, const Shape& shape);

  // The last line of every op: returns the output, checked if guard_finite.
  Tensor finish(const char* op, const Tensor& y);
  void check_finite(const char* op, const char* what, const Tensor& t);

  // Taps: one predicted branch without a probe.
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
