// y = x w^T + b, with one weight for all rows or one per group of rows.
#include "base/buffer.h"
#include "kernels/ref/blocks.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
namespace {

// Which weight a row uses, and which rows a weight is used by.
class Groups {
 public:
  Groups(const Tensor& groups, int64_t rows) : rows_(rows) {
    if (groups.defined()) {
      starts_ = groups.as<int32_t>();
      count_ = groups.count() - 1;
    }
  }
  int64_t count() const { return count_; }
  Range rows_of(int64_t g) const { return starts_ != nullptr ? Range{starts_[g], starts_[g + 1]} : Range{0, rows_}; }
  int64_t group_of(int64_t row) const {
    int64_t g = 0;
    while (g + 1 < count_ && row >= starts_[g + 1]) ++g;
    return g;
  }

 private:
  const int32_t* starts_ = nullptr;
  int64_t count_ = 1, rows_;
};

// Row `o` of the weight of group g; both [O, K] and [E, O, K].
template <class R>
In<R> weight_row(const Tensor& w, int64_t g, int64_t o) {
  return w.rank() == 3 ? In<R>(w, {g, o}) : In<R>(w, {o});
}

template <class R>
R bias_at(const Tensor& b, int64_t g, int64_t o) {
  if (!b.defined()) return 0;
  return b.rank() == 2 ? In<R>(b, {g})[o] : In<R>(b)[o];
}

// The sum, or the sum plus a residual.
template <class R>
void put(const LinearArgs& a, const Tensor& y, int64_t n, int64_t o, R sum) {
  const auto residual = In<R>::row(a.epilogue.residual, n);
  Out<R>::row(y, n).set(o, residual ? residual[o] + sum : sum);
}

// With a weight of a block format: activations are quantised as the format requires, all else is exact in double.
void multiply_blocks(const Split& split, const LinearArgs& a, const Tensor& y) {
  const int64_t outputs = y.cols(), inner = a.x.cols(), rows = y.rows();
  const auto width = static_cast<size_t>(inner);
  const Groups groups(a.groups, rows);
  Buffer<double> x(rows * inner);
  split(rows, [&](Range some) {
    for (int64_t n = some.begin; n < some.end; ++n) {
      round_activations(In<float>::row(a.x, n), activation_block(a.w), {x.data() + n * inner, width});
    }
  });
  split(groups.count() * outputs, [&](Range tasks) {
    Buffer<float> w(inner);
    for (int64_t task = tasks.begin; task < tasks.end; ++task) {
      const int64_t g = task / outputs, o = task % outputs;
      const Range members = groups.rows_of(g);
      if (members.begin == members.end) continue;
      decode_row(a.w, task, {w.data(), width});
      for (int64_t n = members.begin; n < members.end; ++n) {
        double total = 0;
        for (int64_t k = 0; k < inner; ++k) total += x[n * inner + k] * static_cast<double>(w[k]);
        in_real(y, [&]<class R>() { put(a, y, n, o, static_cast<R>(total + bias_at<double>(a.b, g, o))); });
      }
    }
  });
}

void multiply(const Split& split, const LinearArgs& a, const Tensor& y) {
  in_real(y, [&]<class R>() {
    const int64_t outputs = y.cols(), inner = a.x.cols();
    const Groups groups(a.groups, y.rows());
    split(y.rows() * outputs, [&](Range elements) {
      for (int64_t i = elements.begin; i < elements.end; ++i) {
        const int64_t n = i / outputs, o = i % outputs, g = groups.group_of(n);
        const auto x = In<R>::row(a.x, n);
        const auto w = weight_row<R>(a.w, g, o);
        R total = 0;
        for (int64_t k = 0; k < inner; ++k) total += x[k] * w[k];
        put(a, y, n, o, total + bias_at<R>(a.b, g, o));
      }
    });
  });
}

}  // namespace

void linear(const Split& split, const LinearArgs& a) {
  const Epilogue& f = a.epilogue;
  const Tensor& sums = f.pre.defined() ? f.pre : a.y;  // rounded there, before the activation
  a.w.format().plain() ? multiply(split, a, sums) : multiply_blocks(split, a, sums);
  if (f.residual.defined()) return;
  if (f.gate.defined()) return gated(split, {.y = a.y, .gate = f.gate, .up = sums, .form = f.form});
  if (f.pre.defined() || f.form.act.kind != Activation::Kind::identity) {
    activation(split, {.y = a.y, .x = sums, .act = f.form.act});
  }
}

void linear_backward(const Split& split, const LinearBackwardArgs& a) {
  if (const InputActivation& o = a.input_act; o.pre.defined()) {
    Buffer<std::byte> memory(a.x.count() * size_of(a.x.dtype()));
    LinearBackwardArgs product = a;
    product.input_act = {};
    product.dx = {Tensor(a.x.device(), memory.data(), a.x.dtype(), a.x.shape())};
    linear_backward(split, product);
    const Tensor& dx = product.dx.tensor;
    if (!o.gate.defined()) {
      return activation_backward(split, {.dx = o.dpre, .dy = dx, .x = o.pre, .act = o.form.act});
    }
    return gated_backward(split,
                          {.dgate = o.dgate, .dup = o.dpre, .dy = dx, .gate = o.gate, .up = o.pre, .form = o.form});
  }
  in_real(a.dy, [&]<class R>() {
    const int64_t outputs = a.dy.cols(), inner = a.x.cols(), rows = a.dy.rows();
    const Groups groups(a.groups, rows);
    if (a.dx) {
      split(rows * inner, [&](Range elements) {
        for (int64_t i = elements.begin; i < elements.end; ++i) {
          const int64_t n = i / inner, k = i % inner, g = groups.group_of(n);
          const auto dy = In<R>::row(a.dy, n);
          R total = 0;
          for (int64_t o = 0; o < outputs; ++o) total += dy[o] * weight_row<R>(a.w, g, o)[k];
          Out<R>::row(a.dx.tensor, n).put(k, total, a.dx.add);
        }
      });
    }
    // Weight gradients: each output row of each group is one task that adds its rows in order.
    if (!a.dw && !a.db) return;
    split(groups.count() * outputs, [&](Range tasks) {
      for (int64_t task = tasks.begin; task < tasks.end; ++task) {
        const int64_t g = task / outputs, o = task % outputs;
        const Range members = groups.rows_of(g);
        if (a.dw) {
          const Tensor& t = a.dw.tensor;
          const Out<R> dw = t.rank() == 3 ? Out<R>(t, {g, o}) : Out<R>(t, {o});
          for (int64_t k = 0; k < inner; ++k) {
            R total = 0;
            for (int64_t n = members.begin; n < members.end; ++n) {
              total += In<R>::row(a.dy, n)[o] * In<R>::row(a.x, n)[k];
            }
            dw.put(k, total, a.dw.add);
          }
        }
        if (a.db) {
          R total = 0;
          for (int64_t n = members.begin; n < members.end; ++n) total += In<R>::row(a.dy, n)[o];
          const Tensor& t = a.db.tensor;
          (t.rank() == 2 ? Out<R>(t, {g}) : Out<R>(t)).put(o, total, a.db.add);
        }
      }
    });
  });
}

}  // namespace qkv::kernels::ref
