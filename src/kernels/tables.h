// The kernel tables of this build.
#pragma once

#include <span>

#include "core/kernels.h"

namespace qkv::kernels {

namespace ref {
const Kernels& table();  // reference loops: defines the results, always complete
}
namespace cpu {
const Kernels& table();                    // the fastest instruction set of this CPU, or the one QKV_ISA names
std::span<const Kernels* const> tables();  // one per instruction set this CPU runs: from plain to amx
}  // namespace cpu
namespace cuda {
const Kernels& table();
bool available(const char** why = nullptr);  // whether a GPU this build has kernels for can be used; `why` if not
}  // namespace cuda

std::span<const Kernels* const> all_tables();  // what the tests compare with `ref`
const Kernels& best_table();                   // what a program uses

}  // namespace qkv::kernels
