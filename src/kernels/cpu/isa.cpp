#include "kernels/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/isa_list.h"

namespace qkv::kernels::cpu {
namespace {

#define QKV_ADDRESS(name) &name##_isa,
constexpr const IsaKernels* kIsas[] = {QKV_ISA_LIST(QKV_ADDRESS)};
#undef QKV_ADDRESS
#define QKV_ADDRESS(name) &name##_int_isa,
constexpr const IntIsaKernels* kIntIsas[] = {QKV_INT_ISA_LIST(QKV_ADDRESS)};
#undef QKV_ADDRESS

#if defined(__x86_64__)
bool runs(std::string_view isa) {
  if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "avx512") {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  if (isa == "avx512bf16") return runs("avx512") && __builtin_cpu_supports("avx512bf16");
  if (isa == "avx512vnni") return runs("avx512") && __builtin_cpu_supports("avx512vnni");
  if (isa == "amx") return runs("avx512vnni") && (tiles_by_hand || has_tiles());
  return true;
}

// On Intel's CPUs vdpbf16ps has half the throughput of f32 arithmetic, on AMD's twice.
bool worth_it(const IsaKernels* isa) {
  const std::string_view name = isa->name;
  if (name == "amx") return has_tiles();
  return name != "avx512bf16" || !__builtin_cpu_is("intel");
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
bool runs(std::string_view) {
  return true;
}
bool worth_it(const IsaKernels*) {
  return true;
}
bool ask_for_tiles() {
  return false;
}
#endif

// The names in this build, "plain, avx2 and avx512".
std::string built_isas() {
  std::string text;
  for (const IsaKernels* isa : kIsas) {
    if (isa != *std::begin(kIsas)) text += isa == *std::rbegin(kIsas) ? " and " : ", ";
    text += isa->name;
  }
  return text;
}

}  // namespace

bool tiles_by_hand = false;

bool has_tiles() {
  static const bool has = ask_for_tiles();
  return has;
}

std::span<const IsaKernels* const> usable_isas() {
  static const std::vector<const IsaKernels*> usable = [] {
    std::vector<const IsaKernels*> list;
    std::copy_if(std::begin(kIsas), std::end(kIsas), std::back_inserter(list),
                 [](const IsaKernels* isa) { return runs(isa->name); });
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
  for (const IsaKernels* isa : kIsas) {
    if (runs(isa->name)) best = isa;
    if (wanted != isa->name) continue;
    return {best,
            best == isa ? "" : "this CPU cannot run what QKV_ISA asks for; the next instruction set below it is used"};
  }
  QKV_FAIL("QKV_ISA is '", wanted, "' but the instruction sets of this build are ", built_isas(),
           Hint("unset QKV_ISA to use the best; ./qkv test builds all of them"));
}

// Of those in this build that the CPU runs, the last that is not above `isa`.
const IntIsaKernels& int_isa_kernels(const IsaKernels& isa) {
  const std::string_view name = isa.name;
  const IntIsaKernels* best = *std::begin(kIntIsas);
  for (const IntIsaKernels* ints : kIntIsas) {
    const std::string_view of = ints->name;
    const bool above = name == "plain" ? of != "plain" : name == "avx2" ? of != "plain" && of != "avx2" : false;
    if (!above && (of != "amx" || name == "amx") && runs(of)) best = ints;
  }
  return *best;
}

}  // namespace qkv::kernels::cpu
