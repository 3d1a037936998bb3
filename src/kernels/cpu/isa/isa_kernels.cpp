// The forms of one instruction set. QKV_ISA_KERNELS names the table, QKV_ISA_LABEL how people call it.
#include "kernels/cpu/isa/isa_kernels.h"

#include "kernels/cpu/isa/attention.h"
#include "kernels/cpu/isa/bytes.h"
#include "kernels/cpu/isa/columns.h"
#include "kernels/cpu/isa/curves.h"
#include "kernels/cpu/isa/epilogue.h"
#include "kernels/cpu/isa/head.h"
#include "kernels/cpu/isa/norms.h"
#include "kernels/cpu/isa/products.h"
#include "kernels/cpu/isa/rows.h"
#include "kernels/cpu/isa/steps.h"

#if defined(__AVX512F__)
#include "kernels/cpu/isa/block_dots.h"
#include "kernels/cpu/isa/pairs.h"
#endif
#if defined(__AMX_BF16__)
#include "kernels/cpu/isa/tile_pairs.h"
#include "kernels/cpu/isa/tile_product.h"
#elif defined(__AVX512BF16__)
#include "kernels/cpu/isa/pair_product.h"
#endif

namespace qkv::kernels::cpu {
namespace {

// Products by what there is for them.
#if defined(__AVX512F__)
constexpr auto kDotsF32 = block_dots<F32Step>;
#else
constexpr auto kDotsF32 = dots<float>;
#endif
#if defined(__AVX512BF16__)
constexpr auto kDotsBf16 = block_dots<PairStep>;
#elif defined(__AVX512F__)
constexpr auto kDotsBf16 = block_dots<WidenedStep>;
#else
constexpr auto kDotsBf16 = dots<uint16_t>;
#endif

// Pairs of bf16.
#if defined(__AMX_BF16__)
constexpr auto kTileProduct = tile_product;
constexpr auto kLayWeight = pack_weight;
constexpr auto kColumnDotsOfBf16 = tile_dots;
constexpr auto kMixIntoPairs = tile_mix;
constexpr auto kWithTiles = with_tiles;
#elif defined(__AVX512BF16__)
constexpr auto kTileProduct = pair_product;
constexpr decltype(IsaKernels::pack_weight) kLayWeight = nullptr;  // dots reads a weight where it lies as fast
constexpr auto kColumnDotsOfBf16 = column_dots<PairsOfBf16>;
constexpr auto kMixIntoPairs = mix_into_pairs;
constexpr decltype(IsaKernels::with_tiles) kWithTiles = nullptr;
#else
constexpr decltype(IsaKernels::tile_product) kTileProduct = nullptr;
constexpr decltype(IsaKernels::pack_weight) kLayWeight = nullptr;
constexpr decltype(IsaKernels::column_dots_bf16) kColumnDotsOfBf16 = nullptr;
constexpr decltype(IsaKernels::mix_into_pairs) kMixIntoPairs = nullptr;
constexpr decltype(IsaKernels::with_tiles) kWithTiles = nullptr;
#endif
#if defined(__AVX512F__)
constexpr auto kPairWeights = pair_weights;
constexpr auto kPairRows = pair_rows;
#else
constexpr decltype(IsaKernels::pair_weights) kPairWeights = nullptr;
constexpr decltype(IsaKernels::pair_rows) kPairRows = nullptr;
#endif

}  // namespace

extern const IsaKernels QKV_ISA_KERNELS;
const IsaKernels QKV_ISA_KERNELS{
    .name = QKV_ISA_LABEL,
    .dots_f32 = kDotsF32,
    .dots_bf16 = kDotsBf16,
    .mix_f32 = mix<float>,
    .mix_bf16 = mix<uint16_t>,
    .tile_product = kTileProduct,
    .pack_weight = kLayWeight,
    .mix_into_f32 = mix_into<float>,
    .mix_into_bf16 = mix_into<uint16_t>,
    .widen = widen,
    .narrow = narrow,
    .column_dots = column_dots<Singles>,
    .column_dots_bf16 = kColumnDotsOfBf16,
    .pair_weights = kPairWeights,
    .pair_rows = kPairRows,
    .mix_into_pairs = kMixIntoPairs,
    .with_tiles = kWithTiles,
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
    .finish_row = finish_row,
    .adamw_step = adamw_step,
    .sgd_step = sgd_step,
    .squares = squares,
    .head_step = head_step,
    .head_gradient = head_gradient,
};

}  // namespace qkv::kernels::cpu
