// Quantisation and dequantisation, and what lookups and products need of them.
#include "kernels/ref/blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/blocks.h"
#include "base/buffer.h"
#include "core/panels.h"
#include "kernels/ref/loops.h"

namespace qkv::kernels::ref {
namespace {

constexpr float kSmallest = 0x1p-100F;

// The panels of q8 and q4 matrices; several matrices are treated as one.
class Panels {
 public:
  explicit Panels(const Tensor& t)
      : tensor_(t),
        layout_(t.format(), t.cols()),
        rows_(t.dim(-2)),
        each_((rows_ + kPanelRows - 1) / kPanelRows),
        count_(rows_ > 0 ? t.rows() / rows_ * each_ : 0) {}

  const PanelLayout& layout() const { return layout_; }
  int64_t count() const { return count_; }
  std::byte* at(int64_t panel) const { return tensor_.data() + panel * layout_.bytes(); }
  int64_t panel_of(int64_t row) const { return row / rows_ * each_ + row % rows_ / kPanelRows; }
  int64_t lane_of(int64_t row) const { return row % rows_ % kPanelRows; }
  // Row of the tensor in a lane; -1 for padding.
  int64_t row_of(int64_t panel, int64_t lane) const {
    const int64_t in_matrix = panel % each_ * kPanelRows + lane;
    return in_matrix < rows_ ? panel / each_ * rows_ + in_matrix : -1;
  }

 private:
  const Tensor& tensor_;
  PanelLayout layout_;
  int64_t rows_, each_, count_;
};

// q8: the largest magnitude becomes 127; rounding the scale moves it by a quarter of a step at most. q4 has one more
// value below zero than above, and the largest magnitude always becomes -8: the scale may be negative.
Bf16 scale_of(const In<float>& x, int64_t first, int64_t count, bool nibbles) {
  float extreme = 0;
  for (int64_t i = first; i < first + count; ++i) {
    if (!(std::abs(x[i]) <= std::abs(extreme))) extreme = x[i];
  }
  if (std::abs(extreme) < kSmallest) return {};
  return to_bf16(nibbles ? extreme / -8 : std::abs(extreme) / 127);
}

void quantize_lane(const PanelLayout& layout, bool nibbles, std::byte* panel, int64_t lane, const In<float>& x) {
  const float low = nibbles ? -8 : -127, high = nibbles ? 7 : 127;
  for (int64_t g = 0; g < layout.groups(); ++g) {
    const int64_t first = g * layout.group();
    const Bf16 scale = x ? scale_of(x, first, layout.group(), nibbles) : Bf16{};
    *reinterpret_cast<Bf16*>(panel + layout.scale_at(g, lane)) = scale;
    const float step = to_float(scale);
    for (int64_t k = first; k < first + layout.group(); ++k) {
      const float q = step == 0 ? 0 : std::clamp(std::nearbyint(x[k] / step), low, high);
      const auto shifted = static_cast<std::byte>(static_cast<int>(q) + static_cast<int>(layout.offset()));
      std::byte& at = panel[layout.value_at(k, lane)];
      at = layout.upper_half(k) ? at | shifted << 4 : shifted;  // columns 0 to 3 come before 4 to 7
    }
  }
}

}  // namespace

void decode_row(const Tensor& t, int64_t row, std::span<float> out) {
  if (!t.format().panels()) {
    const auto bytes = static_cast<size_t>(t.format().bytes_for(t.cols()));
    return decode_blocks(t.format().block, {t.data() + row * static_cast<int64_t>(bytes), bytes}, out);
  }
  const Panels panels(t);
  const std::byte* panel = panels.at(panels.panel_of(row));
  const int64_t lane = panels.lane_of(row);
  for (int64_t k = 0; k < t.cols(); ++k) {
    const float scale = panels.layout().scale(panel, lane, k / panels.layout().group());
    out[static_cast<size_t>(k)] = static_cast<float>(panels.layout().value(panel, lane, k)) * scale;
  }
}

int64_t activation_block(const Tensor& w) {
  if (!w.format().panels()) return w.format().block_elements();
  return w.format().group > 0 ? w.format().group : w.cols();
}

void round_activations(const In<float>& x, int64_t block, std::span<double> out) {
  const auto count = static_cast<int64_t>(out.size());
  for (int64_t first = 0; first < count; first += block) {
    float highest = 0;
    bool finite = true;
    for (int64_t k = first; k < first + block; ++k) {
      highest = std::max(highest, std::abs(x[k]));
      finite = finite && std::isfinite(x[k]);
    }
    for (int64_t k = first; k < first + block; ++k) {
      double& y = out[static_cast<size_t>(k)];
      if (!finite) {
        y = std::numeric_limits<double>::quiet_NaN();
      } else if (highest < kSmallest) {
        y = 0;
      } else {
        y = static_cast<double>(std::nearbyint(x[k] * (127 / highest))) * static_cast<double>(highest / 127);
      }
    }
  }
}

void quantize(const Split& split, const QuantizeArgs& a) {
  const Panels panels(a.y);
  const bool nibbles = a.y.format().block == Block::q4;
  split(panels.count(), [&](Range range) {
    for (int64_t p = range.begin; p < range.end; ++p) {
      std::fill(panels.at(p), panels.at(p) + panels.layout().bytes(), std::byte{});
      for (int64_t lane = 0; lane < kPanelRows; ++lane) {
        const int64_t row = panels.row_of(p, lane);
        quantize_lane(panels.layout(), nibbles, panels.at(p), lane, row >= 0 ? In<float>::row(a.x, row) : In<float>());
      }
    }
  });
}

void dequantize(const Split& split, const DequantizeArgs& a) {
  split(a.y.rows(), [&](Range rows) {
    Buffer<float> numbers(a.y.cols());
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      decode_row(a.x, r, {numbers.data(), static_cast<size_t>(numbers.size())});
      const auto y = Out<float>::row(a.y, r);
      for (int64_t c = 0; c < a.y.cols(); ++c) y.set(c, numbers[c]);
    }
  });
}

}  // namespace qkv::kernels::ref
