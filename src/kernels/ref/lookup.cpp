// Rows of a table by index: embeddings, and the scatter of keys and values into pages.
#include <cmath>
#include <limits>

#include "base/buffer.h"
#include "kernels/ref/blocks.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {

void embedding(const Split& split, const EmbeddingArgs& a) {
  in_real(a.y, [&]<class R>() {
    const auto* ids = a.ids.as<int32_t>();
    const R factor = static_cast<R>(a.factor);
    const bool plain = a.table.format().plain();
    split(a.y.rows(), [&](Range rows) {
      Buffer<float> decoded(plain ? 0 : a.y.cols());
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto y = Out<R>::row(a.y, r);
        if (!plain) decode_row(a.table, ids[r], {decoded.data(), static_cast<size_t>(decoded.size())});
        const In<R> table =
            plain ? In<R>(a.table, {ids[r]}) : In<R>(reinterpret_cast<const std::byte*>(decoded.data()), DType::f32);
        for (int64_t c = 0; c < a.y.cols(); ++c) y.put(c, factor * table[c], a.add);
      }
    });
  });
}

// Each column is one task that adds the rows in order, so repeated ids add up in the same order every time.
void embedding_backward(const Split& split, const EmbeddingBackwardArgs& a) {
  in_real(a.dtable.tensor, [&]<class R>() {
    const auto* ids = a.ids.as<int32_t>();
    const Tensor& dtable = a.dtable.tensor;
    const R factor = static_cast<R>(a.factor);
    split(dtable.cols(), [&](Range columns) {
      for (int64_t c = columns.begin; c < columns.end; ++c) {
        if (!a.dtable.add) {
          for (int64_t v = 0; v < dtable.dim(0); ++v) Out<R>(dtable, {v}).set(c, 0);
        }
        for (int64_t r = 0; r < a.dy.rows(); ++r) {
          Out<R>(dtable, {ids[r]}).put(c, factor * In<R>::row(a.dy, r)[c], true);
        }
      }
    });
  });
}

namespace {

// Returns the scale.
float put_bytes(const Out<float>& y, const In<float>& x, int64_t count) {
  float highest = 0;
  bool finite = true;
  for (int64_t c = 0; c < count; ++c) {
    finite = finite && std::isfinite(x[c]);
    highest = std::max(highest, std::abs(x[c]));
  }
  const bool zero = !finite || highest < kSmallestScaled;
  const float scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0 : highest / 127;
  for (int64_t c = 0; c < count; ++c) y.set(c, zero ? 0 : std::nearbyint(x[c] / scale));
  return scale;
}

}  // namespace

void scatter_rows(const Split& split, const ScatterRowsArgs& a) {
  in_real(a.y, [&]<class R>() {
    const auto* slots = a.slots.as<int32_t>();
    const int64_t rows_each = a.x.dim(0) > 0 ? a.x.rows() / a.x.dim(0) : 0;  // a key is G rows of D
    split(a.x.dim(0), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        for (int64_t i = 0; i < rows_each; ++i) {
          const int64_t to = slots[r] * rows_each + i, from = r * rows_each + i;
          if (a.scales.defined()) {
            a.scales.as<float>()[to] = put_bytes(Out<float>::row(a.y, to), In<float>::row(a.x, from), a.x.cols());
            continue;
          }
          const auto y = Out<R>::row(a.y, to);
          const auto x = In<R>::row(a.x, from);
          for (int64_t c = 0; c < a.x.cols(); ++c) y.set(c, x[c]);
        }
      }
    });
  });
}

}  // namespace qkv::kernels::ref
