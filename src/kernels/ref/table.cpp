#include <algorithm>

#include "kernels/ref/loops.h"
#include "kernels/tables.h"

namespace qkv::kernels::ref {

void Split::operator()(int64_t count, FunctionRef<void(Range)> f) const {
  if (count <= 0) return;
  if (pool_ == nullptr) return f({0, count});
  const int64_t pieces = std::min<int64_t>(count, pool_->threads());
  pool_->run(pieces, [&](int64_t piece, int) {
    const Range range{piece * count / pieces, (piece + 1) * count / pieces};
    if (range.begin < range.end) f(range);
  });
}

const Kernels& table() {
  static const Kernels kernels{.name = "ref",
#define QKV_KERNEL(kernel, Args) .kernel = [](const Exec&, const Args& a) noexcept { ref::kernel(Split(), a); },
                               QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
  };
  return kernels;
}

}  // namespace qkv::kernels::ref
