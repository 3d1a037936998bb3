// Reverse-mode autodiff: the steps of a forward pass, and the gradients while backward runs them in reverse.
//
// Each op records one step. Its outputs are the tensors made since the step before. Once a step has run backward, the
// gradients of its outputs are free and their memory is reused; keep() keeps one for reading.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/arena.h"
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

  Tensor dy(const Tensor& y);         // gradient of an output; zeros if only other outputs have one
  Tensor dy_if_any(const Tensor& y);  // the same, absent if it has none
  // The same, rounded to this dtype if it is there so already; what a product dropped before it was added to y is dropped.
  Tensor dy(const Tensor& y, DType wanted, const Dropout& dropout);
  Grad grad(const Tensor& x);  // where an input's gradient goes; undefined for constants
  Grad grad(const Param& w);
  // Where the kernel that completes x's gradient in this step may write it once more, rounded for the step that made x.
  // Absent where kernels do not round, or that step does not read it so.
  Tensor rounded(const Tensor& x);
  struct Dropped {
    Dropout dropout;
    Tensor kept;  // Epilogue::kept
  };
  Dropped dropped(const Tensor& x);  // which numbers are zeros there
  // The same where this step makes all of x's gradient, and writes nothing else. Absent where another has made a part.
  Tensor only_rounded(const Tensor& x);
  // dx = dy, written or added. Where that is all of both, x takes the memory of y's gradient when the step ends.
  void pass_on(const Tensor& y, const Tensor& x);
  Tensor make(const Shape& shape, DType dtype);  // working memory until the step ends
  Arena& gradients();                            // for a nested tape

 private:
  struct Handed {
    int32_t y, x;  // nodes
  };

  bool can_hand_over(const Tensor& y, const Tensor& x) const;
  void copy_handed(const Tensor& x);  // x is to be added to within the step: it needs memory of its own
  void hand_over();

  Tape& tape_;
  std::vector<const Param*> used_;  // weights this step has gradients for
  std::vector<Handed> handed_;      // x is to take the gradient of y
  friend class Tape;
};

class Tape {
 public:
  using Step = std::function<void(Backward&)>;

  explicit Tape(Arena& gradients) : gradients_(gradients) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Tensor track(const Tensor& t);                    // an output of the step about to be recorded; Context::make does it
  Tensor input(const Tensor& t);                    // a leaf with a gradient, which is kept
  Tensor input(const Tensor& t, const Grad& into);  // the same, with another tape's gradient as its own
  void record(const char* op, Step step);
  size_t steps() const { return steps_.size(); }  // recorded, and not yet run backward
  void keep(const Tensor& t);
  // The step that made y takes its gradient in this dtype, dropped.
  void reads_rounded(const Tensor& y, DType dtype, const Backward::Dropped& dropped);
  // y once more, rounded for the products that read it.
  void set_operand(const Tensor& y, const Tensor& rounded);
  Tensor operand(const Tensor& y) const;  // or absent

  void seed(Context& cx, const Tensor& y, const Tensor& dy);  // adds dy to y's gradient, before backward()
  void backward(Context& cx);                                 // from everything seeded
  void backward(Context& cx, const Tensor& loss);             // from a scalar, d loss = 1
  Tensor gradient(const Tensor& t) const;  // after backward, of a kept tensor; undefined if nothing reached it

 private:
  friend class Backward;

  struct Node {
    Tensor value;                // as made: contiguous
    Tensor gradient;             // undefined until the first use
    Tensor reserved;             // memory for the first use, instead of an allocation
    Tensor operand;              // the value, rounded for products
    std::optional<DType> reads;  // in which the step that made it takes the gradient, if not as it is
    Backward::Dropped dropped;   // of what that step reads
    Tensor rounded;              // the gradient in another dtype, beside it or alone; gone when it changes
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
  bool find(Node& node,
            Context& cx);  // the gradient of a node that has one in another dtype alone; false if it has none
  Tensor take(Format format, const Shape& shape);
  void give_back(Tensor& t);
  void release(Node& node);
  bool reached(const Recorded& step) const;
  void check_passed_on(Backward& bk, const Recorded& step) const;

  Arena& gradients_;
  std::map<int64_t, std::vector<Tensor>> free_;  // buffers by size; layers reuse a few sizes
  std::vector<Node> nodes_;
  std::vector<Recorded> steps_;
};

}  // namespace qkv
