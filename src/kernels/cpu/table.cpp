#include <cstdlib>

#include "base/log.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa_list.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ref/loops.h"
#include "kernels/tables.h"

namespace qkv::kernels::cpu {
namespace {

// A kernel as an entry of the table of one instruction set.
template <const IsaKernels& isa, auto kernel, class Args>
void entry(const Exec& exec, const Args& a) noexcept {
  kernel(exec, a, isa);
}

template <const IsaKernels& isa>
const Kernels& table_of() {
  static const Kernels kernels = [] {
    Kernels t{.name = isa.name,
#define QKV_KERNEL(kernel, Args) \
  .kernel = [](const Exec& exec, const Args& a) noexcept { ref::kernel(ref::Split(*exec.pool), a); },
              QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
    };
    t.fill = fill;
    t.wants_tiles = isa.pack_weight != nullptr;
    t.linear = entry<isa, linear>;
    t.pack_tiles = entry<isa, pack_tiles>;
    t.linear_backward = entry<isa, linear_backward>;
    t.attention = entry<isa, attention>;
    t.attention_backward = entry<isa, attention_backward>;
    t.attention_pattern = entry<isa, attention_pattern>;
    t.layer_norm = entry<isa, layer_norm>;
    t.layer_norm_backward = entry<isa, layer_norm_backward>;
    t.rms_norm = entry<isa, rms_norm>;
    t.rms_norm_backward = entry<isa, rms_norm_backward>;
    t.copy = entry<isa, copy>;
    t.add = entry<isa, add>;
    t.activation = entry<isa, activation>;
    t.activation_backward = entry<isa, activation_backward>;
    t.dropout = entry<isa, dropout>;
    t.gated = entry<isa, gated>;
    t.gated_backward = entry<isa, gated_backward>;
    t.rotary = entry<isa, rotary>;
    t.softmax = entry<isa, softmax>;
    t.softmax_backward = entry<isa, softmax_backward>;
    t.embedding = entry<isa, embedding>;
    t.embedding_backward = entry<isa, embedding_backward>;
    t.scatter_rows = entry<isa, scatter_rows>;
    t.dispatch = entry<isa, dispatch>;
    t.combine = entry<isa, combine>;
    t.combine_backward = entry<isa, combine_backward>;
    t.cross_entropy = entry<isa, cross_entropy>;
    t.cross_entropy_backward = entry<isa, cross_entropy_backward>;
    t.adamw = entry<isa, adamw>;
    t.sgd = entry<isa, sgd>;
    t.sum_squares = entry<isa, sum_squares>;
    return t;
  }();
  return kernels;
}

const Kernels& table_of(const IsaKernels* isa) {
#define QKV_TABLE(name) \
  if (isa == &name##_isa) return table_of<name##_isa>();
  QKV_ISA_LIST(QKV_TABLE)
#undef QKV_TABLE
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
  static const Kernels* const chosen = [] {
    const char* wanted = std::getenv("QKV_ISA");
    const Choice choice = choose_isa(wanted != nullptr ? wanted : "");
    if (*choice.note != '\0') log_line(Log::warn, choice.note);
    return &table_of(choice.isa);
  }();
  return *chosen;
}

}  // namespace qkv::kernels::cpu
