#include "kernels/cpu/isa.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"

namespace qkv::kernels::cpu {
namespace {

#if defined(__x86_64__)
constexpr std::array<const Forms*, 4> kAll{&plain_forms, &avx2_forms, &avx512_forms, &avx512bf16_forms};

bool runs(const Forms* forms) {
  if (forms == &avx2_forms) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (forms == &avx512bf16_forms) return runs(&avx512_forms) && __builtin_cpu_supports("avx512bf16");
  if (forms == &avx512_forms) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return true;
}
bool has_vnni() {
  static const bool has = runs(&avx512_forms) && __builtin_cpu_supports("avx512vnni");
  return has;
}
// On Intel's CPUs vdpbf16ps gives half of what f32 arithmetic gives, on AMD's the double of it.
bool worth_it(const Forms* forms) {
  return forms != &avx512bf16_forms || !__builtin_cpu_is("intel");
}
#else
constexpr std::array<const Forms*, 1> kAll{&plain_forms};

bool runs(const Forms*) {
  return true;
}
bool worth_it(const Forms*) {
  return true;
}
#endif

}  // namespace

std::span<const Forms* const> usable_forms() {
  static const std::vector<const Forms*> usable = [] {
    std::vector<const Forms*> list;
    for (const Forms* forms : kAll) {
      if (runs(forms)) list.push_back(forms);
    }
    return list;
  }();
  return usable;
}

Choice choose_forms(std::string_view wanted) {
  if (wanted.empty()) {
    const auto usable = usable_forms();
    return {*std::find_if(usable.rbegin(), usable.rend(), worth_it)};
  }
  const Forms* best = usable_forms().front();
  for (const Forms* forms : kAll) {
    if (runs(forms)) best = forms;
    if (wanted == forms->name) {
      return {best, best == forms ? "" : "this CPU cannot run what QKV_ISA asks for; the next form below it is used"};
    }
  }
  QKV_FAIL("QKV_ISA is '", wanted, "' but the forms of this build are ",
           kAll.size() == 1 ? "plain" : "plain, avx2, avx512 and avx512bf16", Hint("unset QKV_ISA to use the best"));
}

const IntForms& int_forms(const Forms& forms) {
#if defined(__x86_64__)
  if ((&forms == &avx512_forms || &forms == &avx512bf16_forms) && has_vnni()) return avx512vnni_int_forms;
  if (&forms != &plain_forms) return avx2_int_forms;
#endif
  (void)forms;
  return plain_int_forms;
}

}  // namespace qkv::kernels::cpu
