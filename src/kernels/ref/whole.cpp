// fill, copy, add, sums and checks over whole tensors.
#include <cmath>

#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
void fill(const Split& split, const FillArgs& a) {
  split(a.y.rows(), [&](Range rows) {
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const auto y = Out<double>::row(a.y, r);
      for (int64_t c = 0; c < a.y.cols(); ++c) y.set(c, a.value);
    }
  });
}

void copy(const Split& split, const CopyArgs& a) {
  in_real(a.y, [&]<class R>() {
    const Out<R> y(a.y);
    const In<R> x(a.x);
    const R factor = static_cast<R>(a.factor);
    split(a.y.count(), [&](Range elements) {
      for (int64_t i = elements.begin; i < elements.end; ++i) {
        y.put(a.y.element_offset(i), factor * x[a.x.element_offset(i)], a.add);
      }
    });
  });
}

void add(const Split& split, const AddArgs& args) {
  in_real(args.y, [&]<class R>() {
    split(args.y.rows(), [&](Range rows) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const auto y = Out<R>::row(args.y, r);
        const auto a = In<R>::row(args.a, r), b = In<R>::row(args.b, r);
        for (int64_t c = 0; c < args.y.cols(); ++c) y.set(c, a[c] + b[c]);
      }
    });
  });
}

void pack_tiles(const Split& split, const PackTilesArgs& a) {
  const int64_t outputs = a.x.dim(-2), inner = a.x.dim(-1), panels = a.y.dim(-3), steps = a.y.dim(-2);
  split(a.y.rows(), [&](Range blocks) {
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      const auto y = Out<float>::row(a.y, block);
      const int64_t weight = block / steps / panels, panel = block / steps % panels, step = block % steps;
      for (int64_t i = 0; i < a.y.cols(); ++i) {  // [2][16][16][2]
        const int64_t o = panel * kTileSide + i / 512 * 16 + i / 2 % 16;
        const int64_t k = step * kTileSide + i / 32 % 16 * 2 + i % 2;
        y.set(i, o < outputs && k < inner ? In<float>::row(a.x, weight * outputs + o)[k] : 0);
      }
    }
  });
}

void sum(const Split&, const SumArgs& a) {
  in_real(a.y, [&]<class R>() {
    double total = 0;  // in double whatever R is: many terms
    for (int64_t r = 0; r < a.x.rows(); ++r) {
      const auto x = In<double>::row(a.x, r);
      for (int64_t c = 0; c < a.x.cols(); ++c) total += x[c];
    }
    Out<R>(a.y).set(0, static_cast<R>(total * a.factor));
  });
}

void sum_squares(const Split&, const SumSquaresArgs& a) {
  double total = 0;
  for (int64_t r = 0; r < a.x.rows(); ++r) {
    const auto x = In<double>::row(a.x, r);
    for (int64_t c = 0; c < a.x.cols(); ++c) total += x[c] * x[c];
  }
  Out<double>(a.y).put(0, total, true);
}

void nonfinite(const Split&, const NonfiniteArgs& a) {
  *a.count = 0;
  *a.first = -1;
  for (int64_t r = 0; r < a.x.rows(); ++r) {
    const auto x = In<double>::row(a.x, r);
    for (int64_t c = 0; c < a.x.cols(); ++c) {
      if (std::isfinite(x[c])) continue;
      if (*a.first < 0) *a.first = r * a.x.cols() + c;
      ++*a.count;
    }
  }
}

void outside(const Split&, const OutsideArgs& a) {
  *a.first = -1;
  const auto* ids = a.ids.as<int32_t>();
  const auto* spans = a.spans.defined() ? a.spans.as<int32_t>() : nullptr;
  for (int64_t row = 0; row < (spans != nullptr ? a.ids.dim(0) : 1); ++row) {
    const int64_t before = spans != nullptr ? row * a.ids.dim(1) : 0;
    const int64_t begin = spans != nullptr ? before + spans[2 * row] : 0;
    const int64_t end = spans != nullptr ? before + spans[2 * row + 1] : a.ids.count();
    for (int64_t i = begin; i < end; ++i) {
      if ((ids[i] < 0 || ids[i] >= a.limit) && ids[i] != a.allowed) {
        *a.first = i;
        return;
      }
    }
  }
}

}  // namespace qkv::kernels::ref
