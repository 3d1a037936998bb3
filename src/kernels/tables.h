// The kernel tables of this build.
#pragma once

#include <span>
#include <string>

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
// Whether this build has kernels for a GPU that is there; `why` not.
bool available(const char** why = nullptr);
std::string gpu_name();  // NVIDIA H200
std::string gpu_id();    // no two GPUs of the world have the same
}  // namespace cuda

// What the tests compare with `ref`: ref, those of the CPU, and that of a GPU. QKV_TABLES=cuda: the last alone.
std::span<const Kernels* const> all_tables();
const Kernels& best_table();  // the fastest of the CPU

// Where a program computes.
enum class DeviceChoice : uint8_t { automatic, cpu, cuda };
// automatic: the GPU if it can be used and so many bytes are free on it, unless QKV_ISA names a table of the CPU. A GPU
// that is chosen is named on stderr, once; so is what kept one that is there from being used.
const Kernels& table_for(DeviceChoice choice, int64_t bytes);
// What automatic takes where there is a GPU: the CPU's if too few bytes are free on it, or if it fails (another process
// has filled it, or has it to itself).
const Kernels& usable_table(const Kernels& gpu, int64_t bytes);

}  // namespace qkv::kernels
