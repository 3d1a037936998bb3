// The forms of one instruction set. QKV_FORMS names the table, QKV_FORMS_LABEL how people call it.
#include "kernels/cpu/forms/forms.h"

#include "kernels/cpu/forms/attention.h"
#include "kernels/cpu/forms/bytes.h"
#include "kernels/cpu/forms/columns.h"
#include "kernels/cpu/forms/curves.h"
#include "kernels/cpu/forms/head.h"
#include "kernels/cpu/forms/norms.h"
#include "kernels/cpu/forms/products.h"
#include "kernels/cpu/forms/rows.h"
#include "kernels/cpu/forms/steps.h"

#if defined(__AVX512BF16__)
#include "kernels/cpu/forms/bf16_products.h"
#endif

namespace qkv::kernels::cpu {
namespace {

#if defined(__AVX512BF16__)
constexpr auto kDotsOfBf16 = pair_dots;
constexpr auto kColumnDotsOfBf16 = column_dots<PairsOfBf16>;
#else
constexpr auto kDotsOfBf16 = dots<uint16_t>;
constexpr void (*kColumnDotsOfBf16)(const ColumnDots&) noexcept = nullptr;
#endif

}  // namespace

extern const Forms QKV_FORMS;
const Forms QKV_FORMS{
    .name = QKV_FORMS_LABEL,
    .dots_f32 = dots<float>,
    .dots_bf16 = kDotsOfBf16,
    .mix_f32 = mix<float>,
    .mix_bf16 = mix<uint16_t>,
    .mix_into_f32 = mix_into<float>,
    .mix_into_bf16 = mix_into<uint16_t>,
    .widen = widen,
    .narrow = narrow,
    .column_dots = column_dots<Singles>,
    .column_dots_bf16 = kColumnDotsOfBf16,
    .to_columns = to_columns,
    .softmax_step = softmax_step,
    .softmax_columns = softmax_columns,
    .block_stats = block_stats,
    .stats_columns = stats_columns,
    .gradient_step = gradient_step,
    .gradient_columns = gradient_columns,
    .scale_row = scale_row,
    .divide_row = divide_row,
    .widen_bytes = widen_bytes,
    .put_bytes = put_bytes,
    .norm_row = norm_row,
    .norm_dx_row = norm_dx_row,
    .norm_dw_rows = norm_dw_rows,
    .exp_row = exp_row,
    .scaled_row = scaled_row,
    .add_rows = add_rows,
    .softmax_row = softmax_row,
    .softmax_dx_row = softmax_dx_row,
    .rotate_row = rotate_row,
    .curve_row = curve_row,
    .curve_dx_row = curve_dx_row,
    .gated_row = gated_row,
    .gated_dx_row = gated_dx_row,
    .adamw_step = adamw_step,
    .sgd_step = sgd_step,
    .head_step = head_step,
    .head_gradient = head_gradient,
};

}  // namespace qkv::kernels::cpu
