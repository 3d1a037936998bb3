#include "kernels/cpu/kernels.h"
#include "kernels/ref/loops.h"
#include "kernels/tables.h"

namespace qkv::kernels::cpu {

const Kernels& table() {
  static const Kernels kernels = [] {
    Kernels t{.name = "cpu",
#define QKV_KERNEL(kernel, Args) \
  .kernel = [](const Exec& exec, const Args& a) noexcept { ref::kernel(ref::Split(*exec.pool), a); },
              QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
    };
    t.linear = linear;
    return t;
  }();
  return kernels;
}

}  // namespace qkv::kernels::cpu
