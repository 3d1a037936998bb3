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
constexpr std::array<const IsaKernels*, 5> kAll{&plain_isa, &avx2_isa, &avx512_isa, &avx512bf16_isa, &amx_isa};

bool has_vnni() {
  return __builtin_cpu_supports("avx512vnni");
}

bool runs(const IsaKernels* isa) {
  if (isa == &avx2_isa) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == &avx512bf16_isa) return runs(&avx512_isa) && __builtin_cpu_supports("avx512bf16");
  if (isa == &avx512_isa) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  if (isa == &amx_isa) return runs(&avx512_isa) && has_vnni() && (tiles_by_hand || has_tiles());
  return true;
}
// On Intel's CPUs vdpbf16ps has half the throughput of f32 arithmetic, on AMD's twice.
bool worth_it(const IsaKernels* isa) {
  if (isa == &amx_isa) return has_tiles();
  return isa != &avx512bf16_isa || !__builtin_cpu_is("intel");
}

// CPUID reports the feature; the operating system must grant the tile state, once per process.
bool ask_for_tiles() {
  constexpr unsigned kTiles = 1U << 24, kOfBf16 = 1U << 22, kOfBytes = 1U << 25, kWanted = kTiles | kOfBf16 | kOfBytes;
  constexpr long kAskPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kWanted) != kWanted) return false;
  return ::syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
}
#else
constexpr std::array<const IsaKernels*, 1> kAll{&plain_isa};

bool runs(const IsaKernels*) {
  return true;
}
bool worth_it(const IsaKernels*) {
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

std::span<const IsaKernels* const> usable_isas() {
  static const std::vector<const IsaKernels*> usable = [] {
    std::vector<const IsaKernels*> list;
    for (const IsaKernels* isa : kAll) {
      if (runs(isa)) list.push_back(isa);
    }
    return list;
  }();
  return usable;
}

Choice choose_isa(std::string_view wanted) {
  if (wanted.empty()) {
    const auto usable = usable_isas();
    return {*std::find_if(usable.rbegin(), usable.rend(), worth_it)};
  }
  const IsaKernels* best = usable_isas().front();
  for (const IsaKernels* isa : kAll) {
    if (runs(isa)) best = isa;
    if (wanted == isa->name) {
      return {best, best == isa
                        ? ""
                        : "this CPU cannot run what QKV_ISA asks for; the next instruction set below it is used"};
    }
  }
  QKV_FAIL("QKV_ISA is '", wanted, "' but the instruction sets of this build are ",
           kAll.size() == 1 ? "plain" : "plain, avx2, avx512, avx512bf16 and amx",
           Hint("unset QKV_ISA to use the best"));
}

const IntIsaKernels& int_isa_kernels(const IsaKernels& isa) {
#if defined(__x86_64__)
  if (&isa == &amx_isa) return amx_int_isa;
  if ((&isa == &avx512_isa || &isa == &avx512bf16_isa) && has_vnni()) return avx512vnni_int_isa;
  if (&isa != &plain_isa) return avx2_int_isa;
#endif
  (void)isa;
  return plain_int_isa;
}

}  // namespace qkv::kernels::cpu
