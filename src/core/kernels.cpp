#include "core/kernels.h"

namespace qkv {

Shape tiles_shape(const Shape& weight) {
  const auto blocks = [](int64_t size) { return (size + kTileSide - 1) / kTileSide; };
  const int64_t panels = blocks(weight[-2]), steps = blocks(weight[-1]), numbers = kTileSide * kTileSide;
  return weight.rank() == 2 ? Shape{panels, steps, numbers} : Shape{weight[0], panels, steps, numbers};
}

const Kernels& Kernels::none() {
  static const Kernels table{.name = "none",
#define QKV_KERNEL(kernel, Args) .kernel = [](const Exec&, const Args&) noexcept {},
                             QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
  };
  return table;
}

Kernels Kernels::dry() const {
  Kernels table = none();
  table.rounds_norms = rounds_norms;
  table.drops_sums = drops_sums;
  return table;
}

}  // namespace qkv
