// Inner loops on plain pointers, compiled once per instruction set (see CMakeLists.txt). These files include no header
// but <cstdint> and their own: an inline function built here for a newer CPU must never end up in code an older one
// runs.
//
// One order of additions for every instruction set and any number of rows (AVX-512 has its own: block_dots.h;
// products of bf16 theirs: tile_product.h, pair_product.h):
//   dots   element k goes to lane k % 16; the lanes are added as a tree, i + (i + 8), then 4, 2, 1
//   mix    a chain over the inner index, one fused multiply-add after the other
// (`plain` has no fused multiply-add and rounds the product first.)
#pragma once

#include <cstdint>

namespace qkv::kernels::cpu {

constexpr int64_t kDotRoom = 256 << 10;  // bytes

// y[m][o] = sum_k x[m][k] w[o][k]. Strides in elements; bf16 operands as their 16 bits.
struct DotCall {
  const void* x = nullptr;
  const void* w = nullptr;
  float* y = nullptr;
  int64_t x_stride = 0, w_stride = 0, y_stride = 0;
  int64_t rows = 0, outputs = 0, inner = 0;
  void* room = nullptr;  // kDotRoom on a cache line where rows of x may be laid side by side, or null
};

// y[m][c] = (add ? y[m][c] : 0) + sum_l a[m a_row + l a_inner] b[l][c]
struct MixCall {
  const float* a = nullptr;
  const void* b = nullptr;
  float* y = nullptr;
  int64_t a_row = 0, a_inner = 0, b_stride = 0, y_stride = 0;
  int64_t rows = 0, inner = 0, cols = 0;
  bool add = false;
};

// Sixteen vectors lie as columns, [inner][16], and meet rows: y[i][0 .. 15] = sum_d columns[d][0 .. 15] rows[i][d].
// Every sum has the order of `dots`, but no lane is ever added to another.
constexpr int64_t kColumns = 16;
struct ColumnDots {
  const void* columns = nullptr;
  const void* rows = nullptr;
  float* y = nullptr;
  int64_t row_stride = 0, y_stride = 0;
  int64_t count = 0, inner = 0;
};

// Keys of one block; blocks start at multiples of it, counted from a sequence's first key.
constexpr int64_t kKeyBlock = 64;

struct SoftmaxStep {
  float* scores = nullptr;  // [kKeyBlock], -inf where hidden; multiplied by scale on the way
  float* probs = nullptr;   // [kKeyBlock], exp(score - highest)
  float scale = 1;
  float highest = 0, total = 0;  // of all blocks so far
  float rescale = 1;             // what sums of earlier blocks are to be multiplied with
  float mass = 0;                // sum of this block's probs
};

// The same for sixteen rows that are columns: scores and probs are [kKeyBlock][kColumns].
struct SoftmaxColumns {
  float* scores = nullptr;  // of keys [from, to), the others are hidden
  float* probs = nullptr;
  int64_t from = 0, to = 0;
  float begin[kColumns] = {}, end[kColumns] = {};  // keys of the block each row sees; nobody's rows see none
  bool alike = false;                              // all rows see [from, to)
  float scale = 1;
  float highest[kColumns] = {}, total[kColumns] = {}, rescale[kColumns] = {}, mass[kColumns] = {};
};

// Weights of attention as pairs along the inner index, rounded to bf16: y[i / 2][lane] = x[i][lane], x[i + 1][lane] for
// i from first(begin) to end; those before begin are zeros, and so is the second of the last two if it is end.
struct PairWeights {
  // Sums start where a tile's do: at a multiple of 32.
  static constexpr int64_t first(int64_t begin) { return begin / 32 * 32; }
  uint32_t* y = nullptr;
  const float* x = nullptr;
  int64_t begin = 0, end = 0;
  int64_t lanes = 0;  // sixteens
};

// Rows of bf16 as pairs: y[i / 2][c] = rows[i][c], rows[i + 1][c]; the columns that do not exist are zeros.
struct PairRows {
  static constexpr int64_t wide(int64_t cols) { return (cols + kColumns - 1) / kColumns * kColumns; }
  uint32_t* y = nullptr;                  // [count / 2][wide]
  const uint16_t* const* rows = nullptr;  // null: a row of zeros
  int64_t count = 0, cols = 0;
};

// y[m][c] += sum over the pairs p of a[m a_lane + p a_pair] . b[p][c], a product of pairs being the sum of two. One of
// a's strides is 1.
struct PairsMix {
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
  float from[kColumns] = {};  // how far before each row the block's first key lies
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

struct GradientColumns {  // the same for sixteen rows that are columns
  const float* scores = nullptr;
  const float* dp = nullptr;
  float* ds = nullptr;  // may be dp
  int64_t from = 0, to = 0;
  float begin[kColumns] = {}, end[kColumns] = {};  // what a row does not see gets 0
  float lse[kColumns] = {}, delta[kColumns] = {};
  float scale = 1;
};

// A row of numbers: f32, or bf16 as its 16 bits.
struct Floats {
  void* data = nullptr;
  bool bf16 = false;
};

struct NormCall {  // layer_norm where centred, else rms_norm; see norms.h
  Floats y, x;
  const float* w = nullptr;
  const float* b = nullptr;
  int64_t count = 0;
  float eps = 0, offset = 0;
  bool centred = false;
  float mean = 0, rstd = 0;  // results
};

struct NormDxCall {
  Floats dx, dy, x;
  const float* w = nullptr;
  int64_t count = 0;
  float offset = 0, mean = 0, rstd = 0;
  bool centred = false, add = false;
};

struct NormDwCall {  // adds the rows to dw and db, in order
  static constexpr int kRows = 4;
  float* dw = nullptr;
  float* db = nullptr;  // or null
  Floats dy[kRows], x[kRows];
  float mean[kRows] = {}, rstd[kRows] = {};
  int rows = 0;
  int64_t count = 0;
};

enum class Curve : uint8_t { identity, relu, gelu_erf, gelu_tanh, silu, tanh };  // as Activation::Kind

struct CurveCall {  // y = curve(x), or y = dy curve'(x)
  Floats y, x, dy;
  int64_t count = 0;
  Curve curve = Curve::identity;
  float alpha = 1;
  bool add = false;
};

struct GateCall {  // y = curve(min(gate, limit)) (clamp(up, limit) + shift); gradients of either may be absent
  Floats y, gate, up, dy, dgate, dup;
  int64_t count = 0;
  Curve curve = Curve::identity;
  float alpha = 1, limit = 0, shift = 0;
  bool dgate_add = false, dup_add = false;
};

// Rows of numbers: row r begins at data + r * stride.
struct Matrix {
  void* data = nullptr;
  int64_t stride = 0;  // in elements
  bool bf16 = false;
};

struct EpilogueCall {  // what becomes of the f32 sums of a product, see finish.h
  enum class Kind : uint8_t { plain, residual, curve, gated, curve_dx, gated_dx } kind = Kind::plain;
  Matrix y;         // the result; of gated_dx the gradient of pre
  Floats bias;      // of all columns, or null
  Matrix residual;  // may be y
  Matrix pre;       // curve, gated: kept where not null; curve_dx, gated_dx: what the curve was applied to
  Matrix gate, dgate;
  Curve curve = Curve::identity;
  float alpha = 1, limit = 0, shift = 0;
  bool rounded = false;  // sums become bf16 before a curve
  bool add = false, dgate_add = false;
};

// One side of a product on tiles: bf16 rows with the inner index along them or across them, or (right side only) a
// weight that was laid as tiles once, tile_product.h.
struct TileSide {
  enum class Lies : uint8_t { along, across, tiles };
  const uint16_t* data = nullptr;
  int64_t stride = 0;
  Lies lies = Lies::along;
};

// sum_k a[m][k] b[n][k] for rows and columns of a result that may be a part of a larger one. Columns start at an even
// panel of 32 of the whole.
constexpr int64_t kTileRoom = 1408 << 10;  // bytes
struct TileCall {
  TileSide a, b;
  int64_t rows = 0, cols = 0, inner = 0;
  EpilogueCall finish;          // what becomes of the sums
  int64_t row = 0, column = 0;  // of the whole, where this part begins
  void* room = nullptr;         // kTileRoom on a cache line
};

struct PackWeight {  // panels [first, end) of a weight [rows, inner]
  uint16_t* to = nullptr;
  Floats from;
  int64_t stride = 0, rows = 0, inner = 0, first_panel = 0, end_panel = 0;
};

struct RotateCall {  // x and y: the turned columns
  Floats y, x, cosine, sine;
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
  float* logits = nullptr;  // products on the way in
  Floats bias;              // or null
  int64_t count = 0;
  float cap = 0;
  float highest = 0, total = 0, sum = 0;  // of all blocks so far
};

struct HeadGradient {
  float* logits = nullptr;  // products on the way in, d loss / d product on the way out
  Floats bias;              // or null
  int64_t count = 0, target = -1;
  float cap = 0, lse = 0;
  float weight = 1;                     // of the probability
  float everywhere = 0, on_target = 0;  // what is taken from it
  float scale = 1;
};

struct IsaKernels {
  const char* name;
  void (*dots_f32)(const DotCall&) noexcept;
  void (*dots_bf16)(const DotCall&) noexcept;
  void (*mix_f32)(const MixCall&) noexcept;
  void (*mix_bf16)(const MixCall&) noexcept;
  void (*tile_product)(const TileCall&) noexcept;   // or null: the CPU multiplies no pairs of bf16
  void (*pack_weight)(const PackWeight&) noexcept;  // or null: it is read as it lies
  void (*mix_into_f32)(const MixCall&) noexcept;    // mix with `add`, for a few rows and a short inner index
  void (*mix_into_bf16)(const MixCall&) noexcept;
  void (*widen)(float* y, const uint16_t* x, int64_t count) noexcept;   // bf16 -> f32
  void (*narrow)(uint16_t* y, const float* x, int64_t count) noexcept;  // f32 -> bf16, to nearest even
  void (*column_dots)(const ColumnDots&) noexcept;
  // The order of dots_bf16 where that is another: columns are pairs, [inner / 2][16]. Null where it is that of
  // dots_f32.
  void (*column_dots_bf16)(const ColumnDots&) noexcept;
  // What is mixed by attention where all is bf16 and column_dots_bf16 is there; else null.
  void (*pair_weights)(const PairWeights&) noexcept;
  bool (*pair_rows)(const PairRows&) noexcept;  // returns whether all are finite
  void (*mix_into_pairs)(const PairsMix&) noexcept;
  // Where tiles make the products of pairs: work(what), which may use them then. Else null.
  void (*with_tiles)(void (*work)(void*), void* what);
  // y[c][0 .. 15] = x[0 .. 15][c], a number or a pair; columns of rows that do not exist are 0
  void (*to_columns)(uint32_t* y, const uint32_t* x, int64_t stride, int64_t rows, int64_t cols) noexcept;
  void (*softmax_step)(SoftmaxStep&) noexcept;
  void (*softmax_columns)(SoftmaxColumns&) noexcept;
  // of kKeyBlock keys, the first of which lies `from` positions before the row
  BlockStats (*block_stats)(const float* scores, const float* probs, float from) noexcept;
  void (*stats_columns)(StatsColumns&) noexcept;
  void (*gradient_step)(const GradientStep&) noexcept;
  void (*gradient_columns)(const GradientColumns&) noexcept;
  void (*scale_row)(float* y, int64_t count, float factor) noexcept;
  void (*divide_row)(float* y, int64_t count, float by) noexcept;
  void (*widen_bytes)(const WidenBytes&) noexcept;
  float (*put_bytes)(int8_t* y, Floats x, int64_t count) noexcept;  // returns the scale, see ScatterRowsArgs
  void (*norm_row)(NormCall&) noexcept;
  void (*norm_dx_row)(const NormDxCall&) noexcept;
  void (*norm_dw_rows)(const NormDwCall&) noexcept;
  void (*exp_row)(float* y, const float* x, int64_t count) noexcept;
  void (*scaled_row)(Floats y, Floats x, float factor, bool add, int64_t count) noexcept;  // y = factor x, or +=
  void (*add_rows)(Floats y, Floats a, Floats b, int64_t count) noexcept;
  void (*softmax_row)(Floats y, Floats x, int64_t count) noexcept;
  void (*softmax_dx_row)(Floats dx, Floats dy, Floats y, bool add, int64_t count) noexcept;
  void (*rotate_row)(const RotateCall&) noexcept;
  void (*curve_row)(const CurveCall&) noexcept;
  void (*curve_dx_row)(const CurveCall&) noexcept;
  void (*gated_row)(const GateCall&) noexcept;
  void (*gated_dx_row)(const GateCall&) noexcept;
  // Columns [column, column + count) of a row from their sums, which are not results themselves.
  void (*finish_row)(const EpilogueCall&, int64_t row, int64_t column, const float* sums, int64_t count) noexcept;
  void (*adamw_step)(const AdamWStep&) noexcept;
  void (*sgd_step)(const SgdStep&) noexcept;
  double (*squares)(Floats x, int64_t count) noexcept;  // their sum
  void (*head_step)(HeadStep&) noexcept;
  void (*head_gradient)(const HeadGradient&) noexcept;
};

extern const IsaKernels plain_isa, avx2_isa, avx512_isa, avx512bf16_isa, amx_isa;

}  // namespace qkv::kernels::cpu
