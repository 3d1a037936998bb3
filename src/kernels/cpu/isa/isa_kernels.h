// Inner loops on plain pointers, compiled once per instruction set (see CMakeLists.txt). These files include no header
// but <cstdint> and their own: an inline function compiled here for a newer CPU must never be linked into code that an
// older one runs.
//
// One order of additions for every instruction set and any number of rows (AVX-512 has its own, see matmul_blocked.h;
// products of bf16 too, see tile_product.h and pair_product.h):
//   matmul_nt   element k goes to lane k % 16; the lanes are added as a tree, i + (i + 8), then 4, 2, 1
//   matmul_nn   a chain over the inner index, one fused multiply-add after the other
// (`plain` has no fused multiply-add and rounds the product first.)
#pragma once

#include <cstdint>

namespace qkv::kernels::cpu {

constexpr int64_t kMatmulScratch = 256 << 10;  // bytes

// y[m][o] = sum_k x[m][k] w[o][k]. Strides in elements; bf16 operands as their 16 bits.
struct MatmulNtCall {
  const void* x = nullptr;
  const void* w = nullptr;
  float* y = nullptr;
  int64_t x_stride = 0, w_stride = 0, y_stride = 0;
  int64_t rows = 0, outputs = 0, inner = 0;
  void* scratch = nullptr;  // kMatmulScratch bytes, 64-byte aligned, to pack rows of x in; or null
};

// y[m][c] = (add ? y[m][c] : 0) + sum_l a[m a_row + l a_inner] b[l][c]
struct MatmulNnCall {
  const float* a = nullptr;
  const void* b = nullptr;
  float* y = nullptr;
  int64_t a_row = 0, a_inner = 0, b_stride = 0, y_stride = 0;
  int64_t rows = 0, inner = 0, cols = 0;
  bool add = false;
};

// y[i][0 .. 15] = sum_d rows[i][d] columns[d][0 .. 15]: sixteen vectors stored as columns, [inner][16]. Every sum has
// the order of matmul_nt, but no lane is added to another.
constexpr int64_t kColumns = 16;
struct MatmulColumnsCall {
  const void* columns = nullptr;
  const void* rows = nullptr;
  float* y = nullptr;
  int64_t row_stride = 0, y_stride = 0;
  int64_t count = 0, inner = 0;
};

// Keys per block; blocks start at multiples of it, counted from a sequence's first key.
constexpr int64_t kKeyBlock = 64;

struct SoftmaxStep {
  float* scores = nullptr;  // [kKeyBlock], -inf where hidden; multiplied by scale in place
  float* probs = nullptr;   // [kKeyBlock], exp(score - highest)
  float scale = 1;
  float highest = 0, total = 0;  // of all blocks so far
  float rescale = 1;             // factor for the sums of earlier blocks
  float mass = 0;                // sum of this block's probs
};

// The same for sixteen rows stored as columns: scores and probs are [kKeyBlock][kColumns].
struct SoftmaxColumns {
  float* scores = nullptr;  // of keys [from, to), the others are hidden
  float* probs = nullptr;
  int64_t from = 0, to = 0;
  float begin[kColumns] = {}, end[kColumns] = {};  // keys of the block each row sees; none for unused columns
  bool alike = false;                              // all rows see [from, to)
  float scale = 1;
  float highest[kColumns] = {}, total[kColumns] = {}, rescale[kColumns] = {}, mass[kColumns] = {};
};

// Packs attention weights as bf16 pairs along the inner index: y[i / 2][lane] = x[i][lane], x[i + 1][lane] for i from
// first(begin) to end. Elements before begin and at end are zeros.
struct PairWeights {
  // Where sums start: at a multiple of 32, as for tiles.
  static constexpr int64_t first(int64_t begin) { return begin / 32 * 32; }
  uint32_t* y = nullptr;
  const float* x = nullptr;
  int64_t begin = 0, end = 0;
  int64_t lanes = 0;  // a multiple of sixteen
};

// Packs rows of bf16 as pairs: y[i / 2][c] = rows[i][c], rows[i + 1][c]; padding columns are zeros.
struct PairRows {
  static constexpr int64_t wide(int64_t cols) { return (cols + kColumns - 1) / kColumns * kColumns; }
  uint32_t* y = nullptr;                  // [count / 2][wide]
  const uint16_t* const* rows = nullptr;  // null: a row of zeros
  int64_t count = 0, cols = 0;
};

// y[m][c] += sum_p a[m a_lane + p a_pair] . b[p][c], each term the dot product of two pairs. One of a's strides is 1.
struct MatmulPairsCall {
  const uint32_t* a = nullptr;
  const uint32_t* b = nullptr;
  float* y = nullptr;
  int64_t a_lane = 0, a_pair = 0, b_stride = 0, y_stride = 0;
  int64_t rows = 0, pairs = 0, cols = 0;
};

struct WidenBytes {  // y[r] = scales[r] x[r], rows of y one after the other
  float* y = nullptr;
  const int8_t* x = nullptr;
  const float* scales = nullptr;
  int64_t x_stride = 0, scale_stride = 0;
  int64_t rows = 0, cols = 0;
};

// What one block adds to a row's statistics.
struct BlockStats {
  float mass_x = 0, distance = 0;  // sums of p * score, p * (position - j)
  float highest = 0;               // largest score, -inf if all are hidden
};

struct StatsColumns {
  const float* scores = nullptr;
  const float* probs = nullptr;
  float from[kColumns] = {};  // distance from each row's position to the block's first key
  float mass_x[kColumns] = {}, distance[kColumns] = {}, highest[kColumns] = {};
  float where[kColumns] = {};  // the first key of the block with the largest score
};

struct GradientStep {
  const float* scores = nullptr;  // [kKeyBlock], -inf where hidden
  const float* dp = nullptr;      // d loss / d prob
  float* probs = nullptr;
  float* ds = nullptr;  // d loss / d (scale * score); may be dp
  float scale = 1, lse = 0, delta = 0;
};

struct GradientColumns {  // the same for sixteen rows stored as columns
  const float* scores = nullptr;
  const float* dp = nullptr;
  float* ds = nullptr;  // may be dp
  int64_t from = 0, to = 0;
  float begin[kColumns] = {}, end[kColumns] = {};  // what a row does not see gets 0
  float lse[kColumns] = {}, delta[kColumns] = {};
  float scale = 1;
};

// A row of f32, or of bf16 as 16 bits each.
struct FloatRow {
  void* data = nullptr;
  bool bf16 = false;
};

struct NormCall {  // layer_norm where centred, else rms_norm; see norms.h
  FloatRow y, x;
  const float* w = nullptr;
  const float* b = nullptr;
  int64_t count = 0;
  float eps = 0, offset = 0;
  bool centred = false;
  float mean = 0, rstd = 0;  // results
};

struct NormDxCall {
  FloatRow dx, dy, x;
  const float* w = nullptr;
  int64_t count = 0;
  float offset = 0, mean = 0, rstd = 0;
  bool centred = false, add = false;
};

struct NormDwCall {  // adds the rows to dw and db, in order
  static constexpr int kRows = 4;
  float* dw = nullptr;
  float* db = nullptr;  // or null
  FloatRow dy[kRows], x[kRows];
  float mean[kRows] = {}, rstd[kRows] = {};
  int rows = 0;
  int64_t count = 0;
};

// As Activation::Kind.
enum class ActivationKind : uint8_t { identity, relu, gelu_erf, gelu_tanh, silu, tanh, relu_squared };

struct ActivationCall {  // y = act(x), or y = dy act'(x)
  FloatRow y, x, dy;
  int64_t count = 0;
  ActivationKind act = ActivationKind::identity;
  float alpha = 1;
  bool add = false;
};

struct GateCall {  // y = act(min(gate, limit)) (clamp(up, limit) + shift); either gradient may be absent
  FloatRow y, gate, up, dy, dgate, dup;
  int64_t count = 0;
  ActivationKind act = ActivationKind::identity;
  float alpha = 1, limit = 0, shift = 0;
  bool dgate_add = false, dup_add = false;
};

// Rows of f32 or bf16: row r begins at data + r * stride.
struct Matrix {
  void* data = nullptr;
  int64_t stride = 0;  // in elements
  bool bf16 = false;
};

struct EpilogueCall {  // what is done with the f32 sums of a product, see epilogue.h
  enum class Kind : uint8_t { plain, residual, activation, gated, activation_dx, gated_dx } kind = Kind::plain;
  Matrix y;         // the result; of gated_dx the gradient of pre
  FloatRow bias;    // of all columns, or null
  Matrix residual;  // may be y
  Matrix pre;  // activation, gated: receives the sums if not null; activation_dx, gated_dx: input of the activation
  Matrix gate, dgate;
  ActivationKind act = ActivationKind::identity;
  float alpha = 1, limit = 0, shift = 0;
  bool rounded = false;  // sums are rounded to bf16 before the activation
  bool add = false, dgate_add = false;
};

// One operand of a bf16 product: rows with the inner index k contiguous or strided, or (right operand, and only where
// pack_weight is there) a weight packed as tiles, tile_pack.h.
struct TileSide {
  enum class Layout : uint8_t { k_contiguous, k_strided, packed };
  const uint16_t* data = nullptr;
  int64_t stride = 0;
  Layout layout = Layout::k_contiguous;
};

// sum_k a[m][k] b[n][k] for a rectangle of a result. Its first column is a multiple of 64: the order of additions
// depends on the parity of a panel of 32 columns.
constexpr int64_t kTileScratch = 1408 << 10;  // bytes
struct TileCall {
  TileSide a, b;
  int64_t rows = 0, cols = 0, inner = 0;
  EpilogueCall epilogue;
  int64_t row = 0, column = 0;  // of the whole result, where the rectangle begins
  void* scratch = nullptr;      // kTileScratch bytes, 64-byte aligned
};

struct PackWeight {  // panels [first, end) of a weight [rows, inner]
  uint16_t* to = nullptr;
  FloatRow from;
  int64_t stride = 0, rows = 0, inner = 0, first_panel = 0, end_panel = 0;
};

struct RotateCall {  // x and y: the rotated columns
  FloatRow y, x, cosine, sine;
  int64_t pairs = 0;
  bool interleaved = false, inverse = false, add = false;
};

struct AdamWStep {
  float* w = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  const float* g = nullptr;
  int64_t count = 0;
  float beta1 = 0, beta2 = 0, eps = 0, factor = 1, shrink = 1, rate = 0, root2 = 1;
};

struct SgdStep {
  float* w = nullptr;
  float* buffer = nullptr;  // or null
  const float* g = nullptr;
  int64_t count = 0;
  float rate = 0, momentum = 0, decay = 0, factor = 1;
};

struct HeadStep {           // one row, one block of the vocabulary
  float* logits = nullptr;  // in: products; out: logits
  FloatRow bias;            // or null
  int64_t count = 0;
  float cap = 0;
  float highest = 0, total = 0, sum = 0;  // of all blocks so far
};

struct HeadGradient {
  float* logits = nullptr;  // in: products; out: d loss / d product
  FloatRow bias;            // or null
  int64_t count = 0, target = -1;
  float cap = 0, lse = 0;
  float weight = 1;                     // of the probability
  float everywhere = 0, on_target = 0;  // target probability: of every entry, and added at the target
  float scale = 1;
};

struct IsaKernels {
  const char* name;
  void (*matmul_nt_f32)(const MatmulNtCall&) noexcept;
  void (*matmul_nt_bf16)(const MatmulNtCall&) noexcept;
  void (*matmul_nn_f32)(const MatmulNnCall&) noexcept;
  void (*matmul_nn_bf16)(const MatmulNnCall&) noexcept;
  void (*tile_product)(const TileCall&) noexcept;             // or null: no instructions for bf16 pairs
  void (*pack_weight)(const PackWeight&) noexcept;            // or null: weights are read in place
  void (*small_matmul_nn_f32)(const MatmulNnCall&) noexcept;  // with `add`, for few rows and a short inner index
  void (*small_matmul_nn_bf16)(const MatmulNnCall&) noexcept;
  void (*widen)(float* y, const uint16_t* x, int64_t count) noexcept;   // bf16 -> f32
  void (*narrow)(uint16_t* y, const float* x, int64_t count) noexcept;  // f32 -> bf16, to nearest even
  void (*matmul_columns)(const MatmulColumnsCall&) noexcept;
  // In the order of matmul_nt_bf16: columns are pairs, [inner / 2][16]. Null where that is the order of matmul_nt_f32.
  void (*matmul_columns_bf16)(const MatmulColumnsCall&) noexcept;
  // Weighted sums of attention with bf16 pairs; null where matmul_columns_bf16 is.
  void (*pair_weights)(const PairWeights&) noexcept;
  bool (*pair_rows)(const PairRows&) noexcept;  // returns whether all are finite
  void (*matmul_pairs)(const MatmulPairsCall&) noexcept;
  // Calls work(what) with the tiles configured; null where there are no tiles.
  void (*with_tiles)(void (*work)(void*), void* what);
  // y[c][0 .. 15] = x[0 .. 15][c], elements of 32 bits; 0 for missing rows
  void (*to_columns)(uint32_t* y, const uint32_t* x, int64_t stride, int64_t rows, int64_t cols) noexcept;
  void (*softmax_step)(SoftmaxStep&) noexcept;
  void (*softmax_columns)(SoftmaxColumns&) noexcept;
  // of kKeyBlock keys, the first of which is `from` positions before the row
  BlockStats (*block_stats)(const float* scores, const float* probs, float from) noexcept;
  void (*stats_columns)(StatsColumns&) noexcept;
  void (*gradient_step)(const GradientStep&) noexcept;
  void (*gradient_columns)(const GradientColumns&) noexcept;
  void (*scale_row)(float* y, int64_t count, float factor) noexcept;
  void (*divide_row)(float* y, int64_t count, float by) noexcept;
  void (*widen_bytes)(const WidenBytes&) noexcept;
  float (*put_bytes)(int8_t* y, FloatRow x, int64_t count) noexcept;  // returns the scale, see ScatterRowsArgs
  void (*norm_row)(NormCall&) noexcept;
  void (*norm_dx_row)(const NormDxCall&) noexcept;
  void (*norm_dw_rows)(const NormDwCall&) noexcept;
  void (*exp_row)(float* y, const float* x, int64_t count) noexcept;
  void (*scaled_row)(FloatRow y, FloatRow x, float factor, bool add, int64_t count) noexcept;  // y = factor x, or +=
  void (*add_rows)(FloatRow y, FloatRow a, FloatRow b, int64_t count) noexcept;
  void (*softmax_row)(FloatRow y, FloatRow x, int64_t count) noexcept;
  void (*softmax_dx_row)(FloatRow dx, FloatRow dy, FloatRow y, bool add, int64_t count) noexcept;
  void (*rotate_row)(const RotateCall&) noexcept;
  void (*activation_row)(const ActivationCall&) noexcept;
  void (*activation_dx_row)(const ActivationCall&) noexcept;
  void (*gated_row)(const GateCall&) noexcept;
  void (*gated_dx_row)(const GateCall&) noexcept;
  // Columns [column, column + count) of a row, from their sums.
  void (*epilogue_row)(const EpilogueCall&, int64_t row, int64_t column, const float* sums, int64_t count) noexcept;
  void (*adamw_step)(const AdamWStep&) noexcept;
  void (*sgd_step)(const SgdStep&) noexcept;
  double (*squares)(FloatRow x, int64_t count) noexcept;  // their sum
  void (*head_step)(HeadStep&) noexcept;
  void (*head_gradient)(const HeadGradient&) noexcept;
};

extern const IsaKernels plain_isa, avx2_isa, avx512_isa, avx512bf16_isa, amx_isa;

}  // namespace qkv::kernels::cpu
