// The integer kernels of one instruction set. QKV_ISA_KERNELS is the name of the table, QKV_ISA_LABEL its printed name.
#include "kernels/cpu/isa/in_place.h"
#include "kernels/cpu/isa/int_amx.h"
#include "kernels/cpu/isa/int_rows.h"
#include "kernels/cpu/isa/int_tile.h"
#include "kernels/cpu/isa/unpack.h"

namespace qkv::kernels::cpu {

extern const IntIsaKernels QKV_ISA_KERNELS;
const IntIsaKernels QKV_ISA_KERNELS {
  .name = QKV_ISA_LABEL, .quantize_row = quantize_row,
#if defined(__AMX_INT8__)
  .q8 = panels_by_rows<Layout::q8>, .q4 = panels_by_rows<Layout::q4>, .unpacked = unpacked_by_rows,
#else
  .q8 = IntTiles<Layout::q8>::run, .q4 = IntTiles<Layout::q4>::run, .unpacked = unpacked_products,
#endif
  .unpack = {unpack<Q8_0>, unpack<Q4_0>, unpack<Q4_1>, unpack<Q5_0>, unpack<Q5_1>, unpack<Q2K>,
             unpack<Q3K>,  unpack<Q4K>,  unpack<Q5K>,  unpack<Q6K>,  unpack<Mxfp4>},
#if defined(__AVX512VNNI__)
  .in_place = {blocks_of_32<Q8_0, false>, blocks_of_32<Q4_0, false>, blocks_of_32<Q4_1, true>,
               blocks_of_32<Q5_0, false>, blocks_of_32<Q5_1, true>,  blocks_of_256<Q2K, true>,
               blocks_of_256<Q3K, false>, blocks_of_256<Q4K, true>,  blocks_of_256<Q5K, true>,
               blocks_of_256<Q6K, false>, blocks_of_32<Mxfp4, false>},
#else
  .in_place = {},
#endif
};

}  // namespace qkv::kernels::cpu
