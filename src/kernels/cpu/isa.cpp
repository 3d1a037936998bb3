#include "kernels/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"

namespace qkv::kernels::cpu {
namespace {

#if defined(__x86_64__)
constexpr std::array<const Forms*, 5> kAll{&plain_forms, &avx2_forms, &avx512_forms, &avx512bf16_forms, &amx_forms};

bool has_vnni() {
  return __builtin_cpu_supports("avx512vnni");
}

bool runs(const Forms* forms) {
  if (forms == &avx2_forms) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (forms == &avx512bf16_forms) return runs(&avx512_forms) && __builtin_cpu_supports("avx512bf16");
  if (forms == &avx512_forms) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  if (forms == &amx_forms) return runs(&avx512_forms) && has_vnni() && (tiles_by_hand || has_tiles());
  return true;
}
// On Intel's CPUs vdpbf16ps gives half of what f32 arithmetic gives, on AMD's the double of it.
bool worth_it(const Forms* forms) {
  if (forms == &amx_forms) return has_tiles();
  return forms != &avx512bf16_forms || !__builtin_cpu_is("intel");
}

// The CPU says what it has; the system must agree to save the tiles, once per process.
bool ask_for_tiles() {
  constexpr unsigned kTiles = 1U << 24, kOfBf16 = 1U << 22, kOfBytes = 1U << 25, kWanted = kTiles | kOfBf16 | kOfBytes;
  constexpr long kAskPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kWanted) != kWanted) return false;
  return ::syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
}
#else
constexpr std::array<const Forms*, 1> kAll{&plain_forms};

bool runs(const Forms*) {
  return true;
}
bool worth_it(const Forms*) {
  return true;
}
bool ask_for_tiles() {
  return false;
}
#endif

}  // namespace

bool tiles_by_hand = false;

bool has_tiles() {
  static const bool has = ask_for_tiles();
  return has;
}

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
           kAll.size() == 1 ? "plain" : "plain, avx2, avx512, avx512bf16 and amx",
           Hint("unset QKV_ISA to use the best"));
}

const IntForms& int_forms(const Forms& forms) {
#if defined(__x86_64__)
  if (&forms == &amx_forms) return amx_int_forms;
  if ((&forms == &avx512_forms || &forms == &avx512bf16_forms) && has_vnni()) return avx512vnni_int_forms;
  if (&forms != &plain_forms) return avx2_int_forms;
#endif
  (void)forms;
  return plain_int_forms;
}

}  // namespace qkv::kernels::cpu
