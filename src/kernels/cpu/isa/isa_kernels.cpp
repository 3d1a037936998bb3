// The kernels of one instruction set. QKV_ISA_KERNELS is the name of the table, QKV_ISA_LABEL its printed name.
#include "kernels/cpu/isa/isa_kernels.h"

#include "kernels/cpu/isa/activations.h"
#include "kernels/cpu/isa/attention.h"
#include "kernels/cpu/isa/bytes.h"
#include "kernels/cpu/isa/columns.h"
#include "kernels/cpu/isa/epilogue.h"
#include "kernels/cpu/isa/head.h"
#include "kernels/cpu/isa/matmul.h"
#include "kernels/cpu/isa/norms.h"
#include "kernels/cpu/isa/rows.h"
#include "kernels/cpu/isa/steps.h"

#if defined(__AVX512F__)
#include "kernels/cpu/isa/matmul_blocked.h"
#include "kernels/cpu/isa/matmul_pairs.h"
#endif
#if defined(__AMX_BF16__)
#include "kernels/cpu/isa/tile_pairs.h"
#include "kernels/cpu/isa/tile_product.h"
#elif defined(__AVX512BF16__)
#include "kernels/cpu/isa/pair_product.h"
#endif

namespace qkv::kernels::cpu {
namespace {

// The best products this instruction set has.
#if defined(__AVX512F__)
constexpr auto kMatmulNtF32 = blocked_matmul_nt<F32Step>;
#else
constexpr auto kMatmulNtF32 = matmul_nt<float>;
#endif
#if defined(__AVX512BF16__)
constexpr auto kMatmulNtBf16 = blocked_matmul_nt<PairStep>;
#elif defined(__AVX512F__)
constexpr auto kMatmulNtBf16 = blocked_matmul_nt<WidenedStep>;
#else
constexpr auto kMatmulNtBf16 = matmul_nt<uint16_t>;
#endif

// Pairs of bf16.
#if defined(__AMX_BF16__)
constexpr auto kTileProduct = tile_product;
constexpr auto kPackWeight = pack_weight;
constexpr auto kMatmulColumnsBf16 = tile_matmul_columns;
constexpr auto kMatmulPairs = tile_matmul_pairs;
constexpr auto kWithTiles = with_tiles;
#elif defined(__AVX512BF16__)
constexpr auto kTileProduct = pair_product;
constexpr decltype(IsaKernels::pack_weight) kPackWeight = nullptr;  // matmul_nt is as fast on weights in place
constexpr auto kMatmulColumnsBf16 = matmul_columns<PairsOfBf16>;
constexpr auto kMatmulPairs = matmul_pairs;
constexpr decltype(IsaKernels::with_tiles) kWithTiles = nullptr;
#else
constexpr decltype(IsaKernels::tile_product) kTileProduct = nullptr;
constexpr decltype(IsaKernels::pack_weight) kPackWeight = nullptr;
constexpr decltype(IsaKernels::matmul_columns_bf16) kMatmulColumnsBf16 = nullptr;
constexpr decltype(IsaKernels::matmul_pairs) kMatmulPairs = nullptr;
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
    .matmul_nt_f32 = kMatmulNtF32,
    .matmul_nt_bf16 = kMatmulNtBf16,
    .matmul_nn_f32 = matmul_nn<float>,
    .matmul_nn_bf16 = matmul_nn<uint16_t>,
    .tile_product = kTileProduct,
    .pack_weight = kPackWeight,
    .small_matmul_nn_f32 = small_matmul_nn<float>,
    .small_matmul_nn_bf16 = small_matmul_nn<uint16_t>,
    .widen = widen,
    .narrow = narrow,
    .matmul_columns = matmul_columns<Singles>,
    .matmul_columns_bf16 = kMatmulColumnsBf16,
    .pair_weights = kPairWeights,
    .pair_rows = kPairRows,
    .matmul_pairs = kMatmulPairs,
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
    .activation_row = activation_row,
    .activation_dx_row = activation_dx_row,
    .gated_row = gated_row,
    .gated_dx_row = gated_dx_row,
    .epilogue_row = epilogue_row,
    .adamw_step = adamw_step,
    .sgd_step = sgd_step,
    .squares = squares,
    .head_step = head_step,
    .head_gradient = head_gradient,
};

}  // namespace qkv::kernels::cpu
