// The integer forms of one instruction set. QKV_FORMS names the table, QKV_FORMS_LABEL how people call it.
#include "kernels/cpu/forms/int_rows.h"
#include "kernels/cpu/forms/int_tile.h"
#include "kernels/cpu/forms/unpack.h"

namespace qkv::kernels::cpu {

extern const IntForms QKV_FORMS;
const IntForms QKV_FORMS{
    .name = QKV_FORMS_LABEL,
    .quantize_row = quantize_row,
    .q8 = IntTiles<Layout::q8>::run,
    .q4 = IntTiles<Layout::q4>::run,
    .unpacked = unpacked_products,
    .unpack = {unpack<Q8_0>, unpack<Q4_0>, unpack<Q4_1>, unpack<Q5_0>, unpack<Q5_1>, unpack<Q2K>, unpack<Q3K>,
               unpack<Q4K>, unpack<Q5K>, unpack<Q6K>, unpack<Mxfp4>},
    .in_place = {},
};

}  // namespace qkv::kernels::cpu
