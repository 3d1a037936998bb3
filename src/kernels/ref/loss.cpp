// Pooling, and the cross-entropy fused with the output projection: logits exist one at a time.
#include <cmath>
#include <limits>

#include "base/buffer.h"
#include "core/rows.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
namespace {

// Rows of segment n that are pooled.
Range pooled_rows(PoolArgs::Kind kind, const Segment& s) {
  const int64_t first = s.first_row, end = first + s.rows;
  if (s.rows == 0 || kind == PoolArgs::Kind::mean) return {first, end};
  return kind == PoolArgs::Kind::first ? Range{first, first + 1} : Range{end - 1, end};
}

// One row's logits against the vocabulary.
template <class R>
class Head {
 public:
  Head(const Tensor& x, const Tensor& w, const Tensor& b, double softcap)
      : x_(x), w_(w), b_(b), cap_(static_cast<R>(softcap)) {}

  R logit(int64_t row, int64_t v) const {
    const auto x = In<R>::row(x_, row);
    const In<R> w(w_, {v});
    R dot = 0;
    for (int64_t c = 0; c < x_.cols(); ++c) dot += x[c] * w[c];
    if (b_) dot += b_[v];
    return cap_ > 0 ? cap_ * std::tanh(dot / cap_) : dot;
  }
  R cap_slope(R logit) const { return cap_ > 0 ? 1 - logit / cap_ * (logit / cap_) : R{1}; }
  int64_t vocabulary() const { return w_.dim(0); }

 private:
  const Tensor& x_;
  const Tensor& w_;
  In<R> b_;
  R cap_;
};

// d loss / d (dot product) of vocabulary entry v in one row; 0 for ignored rows.
template <class R>
R dlogit(const CrossEntropyBackwardArgs& a, const Head<R>& head, int64_t row, int64_t v) {
  const int64_t target = a.targets.as<int32_t>()[row];
  if (target == a.rule.ignore) return 0;
  const R lse = In<R>(a.lse)[row], logit = head.logit(row, v);
  const R smoothing = static_cast<R>(a.rule.smoothing);
  const R p = std::exp(logit - lse) * (1 + 2 * static_cast<R>(a.rule.z_loss) * lse);
  const R wanted = (v == target ? 1 - smoothing : R{0}) + smoothing / static_cast<R>(head.vocabulary());
  return In<R>(a.dloss)[0] * static_cast<R>(a.factor) * (p - wanted) * head.cap_slope(logit);
}

}  // namespace

void pool(const Split& split, const PoolArgs& a) {
  in_real(a.y, [&]<class R>() {
    split(a.y.rows(), [&](Range range) {
      for (int64_t n = range.begin; n < range.end; ++n) {
        const Range rows = pooled_rows(a.kind, a.segments.as<Segment>()[n]);
        for (int64_t c = 0; c < a.y.cols(); ++c) {
          R total = 0;
          for (int64_t r = rows.begin; r < rows.end; ++r) total += In<R>::row(a.x, r)[c];
          Out<R>::row(a.y, n).set(c, rows.end > rows.begin ? total / static_cast<R>(rows.end - rows.begin) : R{0});
        }
      }
    });
  });
}

void pool_backward(const Split& split, const PoolBackwardArgs& a) {
  if (!a.dx) return;
  in_real(a.dy, [&]<class R>() {
    if (!a.dx.add) fill(split, {.y = a.dx.tensor, .value = 0});
    split(a.dy.rows(), [&](Range range) {
      for (int64_t n = range.begin; n < range.end; ++n) {
        const Range rows = pooled_rows(a.kind, a.segments.as<Segment>()[n]);
        const auto dy = In<R>::row(a.dy, n);
        for (int64_t r = rows.begin; r < rows.end; ++r) {
          const auto dx = Out<R>::row(a.dx.tensor, r);
          for (int64_t c = 0; c < a.dy.cols(); ++c) dx.put(c, dy[c] / static_cast<R>(rows.end - rows.begin), true);
        }
      }
    });
  });
}

void cross_entropy(const Split& split, const CrossEntropyArgs& a) {
  in_real(a.losses, [&]<class R>() {
    const Head<R> head(a.x, a.w, a.b, a.rule.softcap);
    const int64_t vocabulary = head.vocabulary();
    const R smoothing = static_cast<R>(a.rule.smoothing);
    split(a.x.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        R highest = -std::numeric_limits<R>::infinity(), total = 0, sum = 0;
        for (int64_t v = 0; v < vocabulary; ++v) {
          const R logit = head.logit(r, v);
          if (logit > highest) {
            total = total * std::exp(highest - logit);
            highest = logit;
          }
          total += std::exp(logit - highest);
          sum += logit;
        }
        const R lse = highest + std::log(total);
        const int64_t target = a.targets.as<int32_t>()[r];
        R loss = 0;
        if (target != a.rule.ignore) {
          loss = (1 - smoothing) * (lse - head.logit(r, target)) + static_cast<R>(a.rule.z_loss) * lse * lse;
          if (smoothing > 0) loss += smoothing * (lse - sum / static_cast<R>(vocabulary));
        }
        Out<R>(a.losses).set(r, loss);
        Out<R>(a.lse).set(r, lse);
      }
    });
  });
}

void cross_entropy_backward(const Split& split, const CrossEntropyBackwardArgs& a) {
  in_real(a.lse, [&]<class R>() {
    const Head<R> head(a.x, a.w, a.b, a.rule.softcap);
    const int64_t width = a.x.cols();
    if (a.dx) {
      split(a.x.rows(), [&](Range rows) {
        Buffer<R> sum(width);
        for (int64_t r = rows.begin; r < rows.end; ++r) {
          sum.fill(0);
          for (int64_t v = 0; v < head.vocabulary(); ++v) {
            const R g = dlogit(a, head, r, v);
            const In<R> w(a.w, {v});
            for (int64_t c = 0; c < width; ++c) sum[c] += g * w[c];
          }
          const auto dx = Out<R>::row(a.dx.tensor, r);
          for (int64_t c = 0; c < width; ++c) dx.put(c, sum[c], a.dx.add);
        }
      });
    }
    if (!a.dw && !a.db) return;
    split(head.vocabulary(), [&](Range range) {
      Buffer<R> sum(width);
      for (int64_t v = range.begin; v < range.end; ++v) {
        sum.fill(0);
        R total = 0;
        for (int64_t r = 0; r < a.x.rows(); ++r) {
          const R g = dlogit(a, head, r, v);
          const auto x = In<R>::row(a.x, r);
          for (int64_t c = 0; c < width; ++c) sum[c] += g * x[c];
          total += g;
        }
        if (a.dw) {
          const Out<R> dw(a.dw.tensor, {v});
          for (int64_t c = 0; c < width; ++c) dw.put(c, sum[c], a.dw.add);
        }
        if (a.db) Out<R>(a.db.tensor).put(v, total, a.db.add);
      }
    });
  });
}

}  // namespace qkv::kernels::ref
