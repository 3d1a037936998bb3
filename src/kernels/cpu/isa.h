// Which instruction set the inner loops use: the best this CPU has, or what QKV_ISA asks for.
#pragma once

#include <span>
#include <string_view>

#include "kernels/cpu/isa/int_isa_kernels.h"

namespace qkv::kernels::cpu {

// From plain to best, only those this CPU runs.
std::span<const IsaKernels* const> usable_isas();

// The fastest, or the one named. A name this CPU cannot run falls back to the best below it; `note` then says so.
struct Choice {
  const IsaKernels* isa;
  const char* note = "";
};
Choice choose_isa(std::string_view wanted);

// Whether AMX tiles can be used: the CPU has them, and the kernel granted this process permission.
bool has_tiles();
// Set by tests that emulate the tile instructions, before anything asks: the AMX kernels are usable then, but never
// chosen as the best.
extern bool tiles_by_hand;

// The integer kernels that go with an instruction set: those of the same name; avx512 and avx512bf16 take the VNNI ones
// if the CPU has VNNI, else avx2's.
const IntIsaKernels& int_isa_kernels(const IsaKernels& isa);

}  // namespace qkv::kernels::cpu
