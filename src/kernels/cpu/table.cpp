#include <cstdlib>

#include "base/log.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ref/loops.h"
#include "kernels/tables.h"

namespace qkv::kernels::cpu {
namespace {

template <const IsaKernels& F>
const Kernels& table_of() {
  static const Kernels kernels = [] {
    Kernels t{.name = F.name,
#define QKV_KERNEL(kernel, Args) \
  .kernel = [](const Exec& exec, const Args& a) noexcept { ref::kernel(ref::Split(*exec.pool), a); },
              QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
    };
    t.fill = fill;
    t.wants_tiles = F.pack_weight != nullptr;
    t.linear = linear<F>;
    t.pack_tiles = pack_tiles<F>;
    t.linear_backward = linear_backward<F>;
    t.attention = attention<F>;
    t.attention_backward = attention_backward<F>;
    t.layer_norm = layer_norm<F>;
    t.layer_norm_backward = layer_norm_backward<F>;
    t.rms_norm = rms_norm<F>;
    t.rms_norm_backward = rms_norm_backward<F>;
    t.copy = copy<F>;
    t.add = add<F>;
    t.activation = activation<F>;
    t.activation_backward = activation_backward<F>;
    t.dropout = dropout<F>;
    t.gated = gated<F>;
    t.gated_backward = gated_backward<F>;
    t.rotary = rotary<F>;
    t.softmax = softmax<F>;
    t.softmax_backward = softmax_backward<F>;
    t.embedding = embedding<F>;
    t.embedding_backward = embedding_backward<F>;
    t.scatter_rows = scatter_rows<F>;
    t.dispatch = dispatch<F>;
    t.combine = combine<F>;
    t.combine_backward = combine_backward<F>;
    t.cross_entropy = cross_entropy<F>;
    t.cross_entropy_backward = cross_entropy_backward<F>;
    t.adamw = adamw<F>;
    t.sgd = sgd<F>;
    t.sum_squares = sum_squares<F>;
    return t;
  }();
  return kernels;
}

const Kernels& table_of(const IsaKernels* isa) {
#if defined(__x86_64__)
  if (isa == &amx_isa) return table_of<amx_isa>();
  if (isa == &avx512bf16_isa) return table_of<avx512bf16_isa>();
  if (isa == &avx512_isa) return table_of<avx512_isa>();
  if (isa == &avx2_isa) return table_of<avx2_isa>();
#endif
  (void)isa;
  return table_of<plain_isa>();
}

}  // namespace

std::span<const Kernels* const> tables() {
  static const std::vector<const Kernels*> list = [] {
    std::vector<const Kernels*> all;
    for (const IsaKernels* isa : usable_isas()) all.push_back(&table_of(isa));
    return all;
  }();
  return list;
}

const Kernels& table() {
  static const Kernels& chosen = []() -> const Kernels& {
    const char* wanted = std::getenv("QKV_ISA");
    const Choice choice = choose_isa(wanted != nullptr ? wanted : "");
    if (*choice.note != '\0') log_line(Log::warn, choice.note);
    return table_of(choice.isa);
  }();
  return chosen;
}

}  // namespace qkv::kernels::cpu
