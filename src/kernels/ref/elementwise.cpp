// Activations, gated activations, dropout, rotary and softmax.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/philox.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
namespace {

template <class R>
R sigmoid(R x) {
  return 1 / (1 + std::exp(-x));
}

template <class R>
struct ValueAndSlope {
  R value, slope;
};

template <class R>
ValueAndSlope<R> apply(Activation act, R x) {
  const R alpha = static_cast<R>(act.alpha);
  switch (act.kind) {
    case Activation::Kind::identity:
      return {x, 1};
    case Activation::Kind::relu:
      return {x <= 0 ? 0 : x, x > 0 ? R{1} : R{0}};  // NaN stays NaN
    case Activation::Kind::relu_squared: {
      const R positive = x <= 0 ? R{0} : x;
      return {positive * positive, 2 * positive};
    }
    case Activation::Kind::gelu_erf: {
      const R cdf = (1 + std::erf(x / std::numbers::sqrt2_v<R>)) / 2;
      const R pdf = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<R> / std::numbers::sqrt2_v<R>;
      return {x * cdf, cdf + x * pdf};
    }
    case Activation::Kind::gelu_tanh: {
      const R k = std::numbers::sqrt2_v<R> * std::numbers::inv_sqrtpi_v<R>, cubic = static_cast<R>(0.044715);
      const R t = std::tanh(k * (x + cubic * x * x * x));
      return {x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) * k * (1 + 3 * cubic * x * x) / 2};
    }
    case Activation::Kind::silu: {
      const R s = sigmoid(alpha * x);
      return {x * s, s + alpha * x * s * (1 - s)};
    }
    case Activation::Kind::tanh: {
      const R t = std::tanh(x / alpha);
      return {alpha * t, 1 - t * t};
    }
  }
  return {0, 0};
}

// The two factors of a gated activation, and their derivatives (0 where clamped).
template <class R>
struct GateParts {
  R act, act_slope, up, up_slope;

  GateParts(const Gating& form, R gate, R up_in) {
    const R limit = form.limit > 0 ? static_cast<R>(form.limit) : std::numeric_limits<R>::infinity();
    const auto a = apply(form.act, std::min(gate, limit));
    act = a.value;
    act_slope = gate <= limit ? a.slope : R{0};
    up = std::clamp(up_in, -limit, limit) + static_cast<R>(form.shift);
    up_slope = std::abs(up_in) <= limit ? R{1} : R{0};
  }
};

}  // namespace

void activation(const Split& split, const ActivationArgs& a) {
  in_real(a.y, [&]<class R>() {
    split(a.y.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto y = Out<R>::row(a.y, r);
        const auto x = In<R>::row(a.x, r);
        for (int64_t c = 0; c < a.y.cols(); ++c) y.set(c, apply(a.act, x[c]).value);
      }
    });
  });
}

void activation_backward(const Split& split, const ActivationBackwardArgs& a) {
  if (!a.dx) return;
  in_real(a.dy, [&]<class R>() {
    split(a.dy.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto dx = Out<R>::row(a.dx.tensor, r);
        const auto x = In<R>::row(a.x, r), dy = In<R>::row(a.dy, r);
        for (int64_t c = 0; c < a.dy.cols(); ++c) dx.put(c, dy[c] * apply(a.act, x[c]).slope, a.dx.add);
      }
    });
  });
}

void gated(const Split& split, const GatedArgs& a) {
  in_real(a.y, [&]<class R>() {
    split(a.y.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto y = Out<R>::row(a.y, r);
        const auto gate = In<R>::row(a.gate, r), up = In<R>::row(a.up, r);
        for (int64_t c = 0; c < a.y.cols(); ++c) {
          const GateParts<R> parts(a.form, gate[c], up[c]);
          y.set(c, parts.act * parts.up);
        }
      }
    });
  });
}

void gated_backward(const Split& split, const GatedBackwardArgs& a) {
  in_real(a.dy, [&]<class R>() {
    split(a.dy.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto dy = In<R>::row(a.dy, r), gate = In<R>::row(a.gate, r), up = In<R>::row(a.up, r);
        for (int64_t c = 0; c < a.dy.cols(); ++c) {
          const GateParts<R> parts(a.form, gate[c], up[c]);
          if (a.dgate) Out<R>::row(a.dgate.tensor, r).put(c, dy[c] * parts.act_slope * parts.up, a.dgate.add);
          if (a.dup) Out<R>::row(a.dup.tensor, r).put(c, dy[c] * parts.act * parts.up_slope, a.dup.add);
        }
      }
    });
  });
}

void dropout(const Split& split, const DropoutArgs& a) {
  in_real(a.y, [&]<class R>() {
    const R factor = 1 / (1 - static_cast<R>(a.dropout.p));
    split(a.y.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto y = Out<R>::row(a.y, r);
        const auto x = In<R>::row(a.x, r), residual = In<R>::row(a.residual.defined() ? a.residual : a.x, r);
        const uint64_t row = a.dropout.first_row + static_cast<uint64_t>(r);
        for (int64_t c = 0; c < a.y.cols(); ++c) {
          const bool keep = uniform01(random_u32(a.dropout.key, row, static_cast<uint64_t>(c))) >= a.dropout.p;
          const R kept = keep ? x[c] * factor : R{0};
          y.put(c, a.residual.defined() ? residual[c] + kept : kept, false);
        }
      }
    });
  });
}

void rotary(const Split& split, const RotaryArgs& a) {
  in_real(a.y, [&]<class R>() {
    const auto* positions = a.positions.as<int32_t>();
    const int64_t pairs = a.cos.cols(), heads = a.x.dim(1), width = a.x.dim(2);
    split(a.x.dim(0) * heads, [&](Range tasks) {
      for (int64_t task = tasks.begin; task < tasks.end; ++task) {
        const int64_t n = task / heads, h = task % heads;
        const In<R> x(a.x, {n, h}), cos(a.cos, {positions[n]}), sin(a.sin, {positions[n]});
        const Out<R> y(a.y, {n, h});
        for (int64_t c = 0; c < width; ++c) {
          if (c < a.first || c >= a.first + 2 * pairs) y.put(c, x[c], a.add);
        }
        for (int64_t i = 0; i < pairs; ++i) {
          const int64_t one = a.first + (a.interleaved ? 2 * i : i), two = one + (a.interleaved ? 1 : pairs);
          const R s = a.inverse ? -sin[i] : sin[i];
          const R x1 = x[one], x2 = x[two];
          y.put(one, x1 * cos[i] - x2 * s, a.add);
          y.put(two, x2 * cos[i] + x1 * s, a.add);
        }
      }
    });
  });
}

void softmax(const Split& split, const SoftmaxArgs& a) {
  in_real(a.y, [&]<class R>() {
    split(a.y.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto x = In<R>::row(a.x, r);
        R highest = -std::numeric_limits<R>::infinity(), total = 0;
        for (int64_t c = 0; c < a.x.cols(); ++c) highest = std::max(highest, x[c]);
        const bool empty = highest == -std::numeric_limits<R>::infinity();  // all hidden: zeros, never NaN
        for (int64_t c = 0; c < a.x.cols() && !empty; ++c) total += std::exp(x[c] - highest);
        const auto y = Out<R>::row(a.y, r);
        for (int64_t c = 0; c < a.x.cols(); ++c) y.set(c, empty ? R{0} : std::exp(x[c] - highest) / total);
      }
    });
  });
}

void softmax_backward(const Split& split, const SoftmaxBackwardArgs& a) {
  if (!a.dx) return;
  in_real(a.dy, [&]<class R>() {
    split(a.dy.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto y = In<R>::row(a.y, r), dy = In<R>::row(a.dy, r);
        R dot = 0;
        for (int64_t c = 0; c < a.dy.cols(); ++c) dot += y[c] * dy[c];
        const auto dx = Out<R>::row(a.dx.tensor, r);
        for (int64_t c = 0; c < a.dy.cols(); ++c) dx.put(c, y[c] * (dy[c] - dot), a.dx.add);
      }
    });
  });
}

}  // namespace qkv::kernels::ref
