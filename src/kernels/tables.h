// The kernel tables of this build.
#pragma once

#include <span>

#include "core/kernels.h"

namespace qkv::kernels {

namespace ref {
const Kernels& table();  // plain loops: the truth, always complete
}
namespace cpu {
const Kernels& table();  // the same on every thread of the pool, with faster forms where they exist
}

std::span<const Kernels* const> all_tables();  // what the harness holds against `ref`
const Kernels& best_table();                   // what a program uses

}  // namespace qkv::kernels
