#include "kernels/ref/loops.h"
#include "kernels/tables.h"

namespace qkv::kernels::ref {

void Split::operator()(int64_t count, FunctionRef<void(Range)> f) const {
  if (count <= 0) return;
  if (pool_ == nullptr || pool_->threads() == 1 || count == 1) {
    f({0, count});
    return;
  }
  const int64_t pieces = pool_->threads();
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
