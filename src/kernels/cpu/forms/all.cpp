// The forms of one instruction set. QKV_FORMS names the table, QKV_FORMS_LABEL how people call it.
#include "kernels/cpu/forms/attention.h"
#include "kernels/cpu/forms/forms.h"
#include "kernels/cpu/forms/products.h"
#include "kernels/cpu/forms/rows.h"

namespace qkv::kernels::cpu {

extern const Forms QKV_FORMS;
const Forms QKV_FORMS{
    .name = QKV_FORMS_LABEL,
    .dots_f32 = dots<float>,
    .dots_bf16 = dots<uint16_t>,
    .mix_f32 = mix<float>,
    .mix_bf16 = mix<uint16_t>,
    .widen = widen,
    .narrow = narrow,
    .softmax_step = softmax_step,
    .gradient_step = gradient_step,
    .scale_row = scale_row,
};

}  // namespace qkv::kernels::cpu
