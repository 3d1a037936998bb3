// The limits of the GPU, for benchmarks: what no kernel can pass. One reading each; read them beside what is compared.
#pragma once

#include "kernels/tables.h"  // gpu_name()

namespace qkv::kernels::cuda {

double copy_bytes_per_second();       // read and written bytes of copies within its memory
double bf16_operations_per_second();  // products of the tensor cores with operands in shared memory
double f32_operations_per_second();   // fused multiply-adds in registers

}  // namespace qkv::kernels::cuda
