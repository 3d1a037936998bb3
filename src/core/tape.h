// What the forward pass did, so that it can be walked backward; and the gradients on the way.
//
// Ops record one step each. The tensors made since the step before are the step's outputs: once the step has run
// backward nobody needs their gradients any more, and their memory is used again. keep() holds a gradient for reading.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/param.h"

namespace qkv {

class Tape;

// What a backward step works with.
class Backward {
 public:
  Backward(Context& cx, Tape& tape);

  Context& cx;
  const Kernels& kernels;
  const Exec& exec;

  Tensor dy(const Tensor& y);  // gradient that reached an output; zeros if only other outputs got one
  Grad grad(const Tensor& x);  // where an input's gradient goes; undefined for constants
  Grad grad(const Param& w);
  Tensor make(const Shape& shape, DType dtype);  // working memory until the step ends
  Arena& gradients();                            // for a tape within the step

 private:
  Tape& tape_;
  std::vector<const Param*> used_;  // weights this step has gradients for
  friend class Tape;
};

class Tape {
 public:
  using Step = std::function<void(Backward&)>;

  explicit Tape(Arena& gradients) : gradients_(gradients) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Tensor track(const Tensor& t);                    // an output of the step about to be recorded; Context::make does it
  Tensor input(const Tensor& t);                    // where gradients are wanted though no step made it; kept
  Tensor input(const Tensor& t, const Grad& into);  // the same, its gradient going where another tape wants it
  void record(const char* op, Step step);
  void keep(const Tensor& t);

  void seed(Context& cx, const Tensor& y, const Tensor& dy);  // dy reaches y, before backward walks
  void backward(Context& cx);                                 // from all that was seeded
  void backward(Context& cx, const Tensor& loss);             // from one number, d loss = 1
  Tensor gradient(const Tensor& t) const;  // after backward, of a kept tensor; undefined if nothing reached it

 private:
  friend class Backward;

  struct Node {
    Tensor value;     // as made: contiguous
    Tensor gradient;  // undefined until the first use
    Tensor reserved;  // what the first use takes, if it is not to be allocated
    bool kept = false;
    bool input = false;
  };
  struct Recorded {
    const char* op;
    Step step;
    size_t first_node, end_node;  // its outputs
  };

  Node& node_of(const Tensor& t);
  Grad use(const Tensor& x, Context& cx);
  void allocate(Node& node);
  void release(Node& node);
  bool reached(const Recorded& step) const;
  void check_passed_on(Backward& bk, const Recorded& step) const;

  Arena& gradients_;
  std::map<int64_t, std::vector<Tensor>> free_;  // buffers by size: layers repeat the same few
  std::vector<Node> nodes_;
  std::vector<Recorded> steps_;
};

}  // namespace qkv
