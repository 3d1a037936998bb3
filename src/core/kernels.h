// The kernel table: one function pointer per kernel, one table per backend and instruction set.
//
// Rules for a kernel
//   - takes Exec and one argument struct, returns nothing, never throws; ops check everything before;
//   - the last axis of every tensor is contiguous; leading axes may be strided;
//   - the bits of a row depend neither on other rows nor on the number of threads; sums over rows have one fixed order;
//   - a Grad is written or added to, as its flag says, and skipped where its tensor is undefined;
//   - an undefined tensor is an absent option.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/exec.h"
#include "core/formulas.h"
#include "core/probe.h"

namespace qkv {

// Where to write a gradient: the first use writes, later ones add.
struct Grad {
  Tensor tensor;
  bool add = false;
  explicit operator bool() const { return tensor.defined(); }
};

// --- whole tensors ---------------------------------------------------------------------------------------------------

struct FillArgs {
  Tensor y;
  double value = 0;
};
struct CopyArgs {  // y = factor * x, or y += factor * x; casts, any strides (also on the last axis)
  Tensor y, x;
  double factor = 1;
  bool add = false;
};
struct AddArgs {  // y = a + b
  Tensor y, a, b;
};
struct SumArgs {  // y = factor * sum(x)
  Tensor y, x;
  double factor = 1;
};
struct SumSquaresArgs {  // y += sum(x^2), y is f64 [1]
  Tensor y, x;
};
struct NonfiniteArgs {  // how many NaN or Inf, and the index of the first; results on the host
  Tensor x;
  int64_t* count = nullptr;
  int64_t* first = nullptr;
};
constexpr int64_t kNoException = INT64_MIN;
struct OutsideArgs {  // index of the first id that is neither in [0, limit) nor `allowed`, else -1; result on the host
  Tensor ids;
  int64_t limit = 0;
  int64_t allowed = kNoException;
  Tensor spans;  // i32 [n, 2] or absent: of row i of ids [n, m], only the columns [first, end) count
  int64_t* first = nullptr;
};

// --- products --------------------------------------------------------------------------------------------------------

struct Dropout {
  float p = 0;
  std::array<uint32_t, 2> key{};  // of seed, step, layer and site
  uint64_t first_row = 0;         // global index of row 0, so that the mask does not depend on how rows are batched
};
// A mask as bits, i32: word w of a row has the columns from 32 w on, the first of them lowest.
inline Shape kept_shape(int64_t rows, int64_t columns) {
  return {rows, (columns + 31) / 32};
}

// What a product does with its sums s before it writes y. The same bits as separate kernels: s is rounded to y's dtype
// before an activation or a gate, and not rounded before it is added to a residual.
struct Epilogue {
  Gating form = {};  // y = act(s); with a gate, y = gated(gate, s)
  Tensor gate;       // [N, O] or absent
  Tensor pre;        // [N, O] of y's dtype or absent: keeps s
  Tensor residual;   // [N, O] or absent: y = residual + s, and none of the above. May be y itself
  Dropout dropout;   // of s before it is added to the residual; none but for tables with drops_sums
  Tensor kept;       // with dropout: receives which numbers are kept, see kept_shape
};
struct LinearArgs {  // y = x w^T + b; where w is in blocks, x is rounded to int8 (docs/kernels.md)
  Tensor y;          // [N, O]
  Tensor x;          // [N, K]
  Tensor w;          // [O, K], grouped [E, O, K]; plain or any block format
  Tensor tiles;      // w as tiles, or absent; with tiles, w may be a shape without memory
  Tensor b;          // [O] or absent, grouped [E, O]
  Tensor groups;     // i32 [E + 1] or absent: rows groups[e] .. groups[e + 1] use w[e]
  Epilogue epilogue = {};
};

constexpr size_t kMostInSet = 3;

// The activation a product's input came from, x = act(pre) or x = gated(gate, pre): backward computes the gradients of
// pre and gate directly. dx is rounded to x's dtype as if it had been stored.
struct InputActivation {
  Gating form = {};
  Tensor pre, gate;
  Grad dpre, dgate;
};
struct LinearBackwardArgs {
  Grad dx, dw, db;
  Tensor dy, x, w, groups;
  InputActivation input_act = {};  // if pre is given, dx is not
};

// A weight [.., O, K] as bf16 tiles for AMX products: [.., O / 32, K / 32, 1024], blocks of 32 outputs by 32 inputs,
// each block [2][16][16][2]: sixteen outputs, pairs of inputs. Padded with zeros.
constexpr int64_t kTileSide = 32;
Shape tiles_shape(const Shape& weight);
struct PackTilesArgs {
  Tensor y;  // bf16
  Tensor x;  // f32 or bf16 [.., O, K]
};

struct QuantizeArgs {  // y = x quantised
  Tensor y;            // q8 or q4 [O, K] or [E, O, K]
  Tensor x;            // the same shape, plain
};
struct DequantizeArgs {
  Tensor y;  // plain
  Tensor x;  // of any block format, the same shape
};

// --- lookup ----------------------------------------------------------------------------------------------------------

struct EmbeddingArgs {  // y[r] = factor * table[ids[r]], or +=
  Tensor y;             // [N, C]
  Tensor table;         // [V, C]; plain, or of any block format
  Tensor ids;           // i32 [N]
  double factor = 1;
  bool add = false;
};
struct EmbeddingBackwardArgs {
  Grad dtable;
  Tensor dy, ids;
  double factor = 1;
};
struct ScatterRowsArgs {  // y[slots[r]] = x[r]: keys and values into the pages of a KV cache
  Tensor y;               // [P, ...], of another float dtype if wanted; i8 with scales
  Tensor x;               // [N, ...]
  Tensor slots;           // i32 [N]
  Tensor scales;  // f32 [P, ...] without the last axis, or absent: s = max |x| / 127, y = round to even (x / s);
                  // s = 0 where max < kSmallestScaled, NaN where x is not finite, y = 0 in both
};
constexpr float kSmallestScaled = 0x1p-100F;

// --- norms and elementwise -------------------------------------------------------------------------------------------

struct LayerNormArgs {   // y = (x - mean) rstd (w + offset) + b
  Tensor y, mean, rstd;  // mean and rstd: [N]
  Tensor x, w, b;
  double eps = 0, offset = 0;
  Tensor rounded;  // y once more in another dtype; absent but for tables with rounds_norms
};
struct LayerNormBackwardArgs {
  Grad dx, dw, db;
  Tensor dy, x, w, mean, rstd;
  double offset = 0;
  // Absent but for tables with rounds_norms:
  Tensor also;      // the gradient of LayerNormArgs::rounded, which is added to dy
  Tensor rounded;   // dx once more, as it is then, in another dtype
  Dropout dropout;  // of `rounded`; none but for tables with drops_sums
  Tensor kept;      // with dropout: Epilogue::kept
};
struct RmsNormArgs {  // y = x r (w + offset)
  Tensor y, r;        // r: [N]
  Tensor x, w;
  double eps = 0, offset = 0;
};
struct RmsNormBackwardArgs {
  Grad dx, dw;
  Tensor dy, x, w, r;
  double offset = 0;
  Tensor rounded;  // as for layer_norm
  Dropout dropout;
  Tensor kept;
};
struct DropoutArgs {  // y = residual + x * keep / (1 - p); the backward is the same call on dy
  Tensor y, x;
  Tensor residual;  // or absent; may be y
  Dropout dropout;
};
struct ActivationArgs {
  Tensor y, x;
  Activation act;
};
struct ActivationBackwardArgs {
  Grad dx;
  Tensor dy, x;
  Activation act;
};
struct GatedArgs {
  Tensor y, gate, up;
  Gating form;
};
struct GatedBackwardArgs {
  Grad dgate, dup;
  Tensor dy, gate, up;
  Gating form;
};
struct RotaryArgs {  // rotates the pairs of columns [first, first + 2 R) by the angle of the row's position
  Tensor y, x;       // [N, H, D]
  Tensor cos, sin;   // [P, R]
  Tensor positions;  // i32 [N]
  int64_t first = 0;
  bool interleaved = false;  // pairs (2i, 2i + 1) instead of (i, i + R)
  bool inverse = false;      // the backward: the transposed rotation
  bool add = false;
};
struct FirstHighestArgs {
  Tensor ids, x;
};
struct CacheHeadsArgs {        // turns queries and keys, writes keys and values to a cache
  RotaryArgs q, k;             // of one table, the same columns and positions
  ScatterRowsArgs to_k, to_v;  // to_k.x is k.y, which need not be written; one list of slots
};
struct SoftmaxArgs {
  Tensor y, x;
};
struct SoftmaxBackwardArgs {
  Grad dx;
  Tensor dy, y;
};

// --- attention -------------------------------------------------------------------------------------------------------

struct AttentionInput {
  Tensor q;         // [N, H, D]
  Tensor k, v;      // [M, G, D], [M, G, E]; with pages [P, page, G, D], [P, page, G, E], of any float dtype or i8
  Tensor k_scales;  // f32 [P, page, G] where k is i8: the number is scale * byte
  Tensor v_scales;  // the same of v
  Tensor segments;  // i32 [n, 6], see Segment
  Tensor table;     // i32 [n, most pages] or absent: key j of a segment is slot j % page of page table[n][j / page]
  Tensor kv_map;    // i32 [H]: the key/value head each query head reads
  double scale = 1;
  double softcap = 0;   // 0: none; cap tanh(s / cap) otherwise
  bool causal = false;  // key j is seen from position i only if j <= i
  int64_t window = 0;   // 0: all; else only |i - j| < window
  int64_t chunk = 0;    // 0: all; else only keys of the same chunk, floor(i / chunk) = floor(j / chunk)
  Tensor sinks;         // [H] or absent: one more logit per row that carries no value
  Tensor slopes;        // [H] or absent: ALiBi, + slope (j - i)
  Tensor bias;          // [H, buckets] or absent: T5, + bias[h, buckets[clamp(j - i, -R, R) + R]]
  Tensor buckets;       // i32 [2 R + 1]
  Tensor mask;          // [n or 1, H or 1, T, S] or absent: added; -inf hides a key
  Dropout dropout;
  int64_t longest_keys = 0, longest_rows = 0;  // the most that a segment has
  bool packed = false;                         // segments follow each other in rows and in keys, and leave none over
};
struct AttentionArgs {
  AttentionInput in;
  Tensor z;    // [N, H, E]
  Tensor lse;  // [N, H], -inf where a row sees nothing
  AttentionStats stats;
};
struct AttentionBackwardArgs {
  AttentionInput in;
  Grad dq, dk, dv, dsinks, dbias;
  Tensor dz, z, lse;
  Tensor delta;  // [N, H]: dz . z, which is also each head's gradient importance
};
struct AttentionPatternArgs {
  enum class Stage : uint8_t { raw, capped, biased, probs } stage = Stage::probs;
  AttentionInput in;
  Tensor lse;   // [N, H], for probs
  Tensor rows;  // i32 [R] or absent: which rows of q; all N
  Tensor out;   // [R or N, H, S]; keys a row does not see, or a segment does not have: 0 as probs, -inf as biased
};

// Sums of the statistics of an attention over groups of rows, one of each for every head: so the rows stay on the
// device. Numbers of a group and head, in this order:
struct StatsColumns {
  int64_t offsets = 0, classes = 0, wanted = 0;

  static constexpr int64_t entropy = 0, distance = 1, first = 2;
  constexpr int64_t at_offset(int64_t o = 0) const { return 3 + o; }
  constexpr int64_t strongest(int64_t o = 0) const { return 3 + offsets + o; }  // rows whose argmax is at the offset
  constexpr int64_t in_class(int64_t k = 0) const { return 3 + 2 * offsets + k; }
  constexpr int64_t again(int64_t k = 0) const { return 3 + 2 * offsets + classes + k; }
  constexpr int64_t labelled(int64_t w = 0) const { return 3 + 2 * offsets + 2 * classes + w; }
  constexpr int64_t count() const { return 3 + 2 * offsets + 2 * classes + wanted; }
};
struct StatsRows {
  Tensor groups;   // i32 [n, 4]: first row, rows, position of the first, index of the label of key 0
  Tensor weights;  // f64 [N, 3]: of a row in every sum; in that of the entropy instead; in the second one of classes
  Tensor labels;   // i32 [L] or absent: of keys
  Tensor wanted;   // i32 [N, W], W at most kMostWanted, or absent: `labelled` counts rows whose argmax has this label
};
constexpr int64_t kMostWanted = 2;
struct AttentionSumsArgs {
  AttentionStats stats;  // contiguous, of one dtype
  StatsRows rows;
  Tensor y;  // f64 [n, H, StatsColumns::count()]
  StatsColumns columns() const {
    return {.offsets = stats.at_offset.defined() ? stats.at_offset.dim(2) : 0,
            .classes = stats.in_class.defined() ? stats.in_class.dim(2) : 0,
            .wanted = rows.wanted.defined() ? rows.wanted.dim(1) : 0};
  }
};

// --- experts ---------------------------------------------------------------------------------------------------------

struct RouteArgs {
  Tensor ids;      // i32 [N, k]; ties go to the lower id
  Tensor weights;  // [N, k]
  Tensor logits;   // [N, E]
  Tensor bias;     // [E] or absent: added to the scores for choosing only
  RouteRule rule;
};
struct RouteBackwardArgs {
  Grad dlogits;
  Tensor dweights, logits, ids;
  RouteRule rule;
};
struct DispatchPlanArgs {  // rows in order of expert: sorted row i is slot order[i] % k of row order[i] / k
  Tensor order;            // i32 [N k]
  Tensor slots;            // i32 [N, k]: where slot s of row r went; the inverse of order
  Tensor groups;           // i32 [E + 1]: first sorted row of each expert
  Tensor ids;              // i32 [N, k]
};
struct DispatchArgs {  // y[i] = x[order[i] / k]
  Tensor y, x, order;
  int64_t top_k = 1;
};
struct CombineArgs {  // y[r] = sum_s weights[r, s] z[slots[r, s]], or +=
  Tensor y, z, slots;
  Tensor weights;  // absent: all 1
  bool add = false;
};
struct CombineBackwardArgs {
  Grad dz, dweights;
  Tensor dy, z, slots, weights;
};
struct RouterLoadArgs {  // counts[e] += chosen, mass[e] += sum over rows of softmax(logits)[e]
  Tensor counts, mass;   // [E]
  Tensor logits, ids;
};
struct RouterLoadBackwardArgs {
  Grad dlogits;
  Tensor dmass, logits;
};
struct BalanceArgs {  // loss = factor * sum_e counts[e] mass[e]
  Tensor loss, counts, mass;
  double factor = 1;
};
struct BalanceBackwardArgs {  // dmass[e] = dloss * factor * counts[e]
  Tensor dmass, dloss, counts;
  double factor = 1;
};

// --- ends of a model -------------------------------------------------------------------------------------------------

struct PoolArgs {
  enum class Kind : uint8_t { first, last, mean } kind = Kind::first;
  Tensor y;         // [n, C]
  Tensor x;         // [N, C]
  Tensor segments;  // i32 [n, 6]
};
struct PoolBackwardArgs {
  PoolArgs::Kind kind = PoolArgs::Kind::first;
  Grad dx;
  Tensor dy, segments;
};
struct CrossEntropyRule {
  double smoothing = 0;  // (1 - s) nll + s * mean over V of -log p
  double z_loss = 0;     // + z_loss * lse^2
  double softcap = 0;    // logits = cap tanh(logits / cap)
  int64_t ignore = -100;
};
struct CrossEntropyArgs {
  Tensor losses, lse;  // [N]
  Tensor x;            // [N, C]
  Tensor w;            // [V, C]
  Tensor tiles;        // w as tiles, or absent, as LinearArgs says
  Tensor b;            // [V] or absent
  Tensor targets;      // i32 [N]
  CrossEntropyRule rule;
  Tensor logits;  // [N, V or more] or absent: where the logits stay for backward, if the device keeps them
};
constexpr int64_t kLogitRows = 32768;  // devices that keep logits add up dw over so many rows at a time, kept or not
struct CrossEntropyBackwardArgs {      // of factor * sum(losses)
  Grad dx, dw, db;
  Tensor dloss;  // [1]
  double factor = 1;
  Tensor x, w, b, targets, lse;
  Tensor tiles;  // w as tiles beside w, or absent
  CrossEntropyRule rule;
  Tensor logits;  // absent; or kept: as forward left them, and overwritten; or memory for some rows of them
  bool kept = false;
};

// --- optimisers ------------------------------------------------------------------------------------------------------

struct AdamWArgs {  // decoupled decay; g is multiplied by grad_factor first
  Tensor w, g, m, v;
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, decay = 0, grad_factor = 1;
  int64_t step = 1;  // counts from 1
  Tensor copy;       // w in another dtype, or absent; of adamw_set alone
};
struct MuonArgs {  // of matrices [R, C] or [E, R, C]; the formula is in ops/optim.cpp
  Tensor w, g, buffer;
  double momentum = 0, grad_factor = 1;
  double shrink = 1, step = 0;  // w = shrink w + step orthogonal(u)
  Tensor copy;                  // w in another dtype, or absent
  bool done = false;            // set where the kernel has taken them
};
// X = a X + b (X X^T) X + c (X X^T)^2 X, so many times.
struct NewtonSchulz {
  static constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  static constexpr int kSteps = 5;
};
struct SgdArgs {  // buffer = momentum * buffer + g;  w -= lr * (buffer + decay * w)
  Tensor w, g, buffer;
  double lr = 0, momentum = 0, decay = 0, grad_factor = 1;
};

// --- the table -------------------------------------------------------------------------------------------------------

#define QKV_KERNELS(X)                                \
  X(fill, FillArgs)                                   \
  X(copy, CopyArgs)                                   \
  X(add, AddArgs)                                     \
  X(sum, SumArgs)                                     \
  X(sum_squares, SumSquaresArgs)                      \
  X(nonfinite, NonfiniteArgs)                         \
  X(outside, OutsideArgs)                             \
  X(linear, LinearArgs)                               \
  X(linear_backward, LinearBackwardArgs)              \
  X(pack_tiles, PackTilesArgs)                        \
  X(quantize, QuantizeArgs)                           \
  X(dequantize, DequantizeArgs)                       \
  X(embedding, EmbeddingArgs)                         \
  X(embedding_backward, EmbeddingBackwardArgs)        \
  X(scatter_rows, ScatterRowsArgs)                    \
  X(layer_norm, LayerNormArgs)                        \
  X(layer_norm_backward, LayerNormBackwardArgs)       \
  X(rms_norm, RmsNormArgs)                            \
  X(rms_norm_backward, RmsNormBackwardArgs)           \
  X(dropout, DropoutArgs)                             \
  X(activation, ActivationArgs)                       \
  X(activation_backward, ActivationBackwardArgs)      \
  X(gated, GatedArgs)                                 \
  X(gated_backward, GatedBackwardArgs)                \
  X(rotary, RotaryArgs)                               \
  X(softmax, SoftmaxArgs)                             \
  X(softmax_backward, SoftmaxBackwardArgs)            \
  X(attention, AttentionArgs)                         \
  X(attention_backward, AttentionBackwardArgs)        \
  X(attention_pattern, AttentionPatternArgs)          \
  X(attention_sums, AttentionSumsArgs)                \
  X(route, RouteArgs)                                 \
  X(route_backward, RouteBackwardArgs)                \
  X(dispatch_plan, DispatchPlanArgs)                  \
  X(dispatch, DispatchArgs)                           \
  X(combine, CombineArgs)                             \
  X(combine_backward, CombineBackwardArgs)            \
  X(router_load, RouterLoadArgs)                      \
  X(router_load_backward, RouterLoadBackwardArgs)     \
  X(balance, BalanceArgs)                             \
  X(balance_backward, BalanceBackwardArgs)            \
  X(pool, PoolArgs)                                   \
  X(pool_backward, PoolBackwardArgs)                  \
  X(cross_entropy, CrossEntropyArgs)                  \
  X(cross_entropy_backward, CrossEntropyBackwardArgs) \
  X(adamw, AdamWArgs)                                 \
  X(sgd, SgdArgs)

struct Kernels {
  const char* name = "";
  bool wants_tiles = false;           // products of bf16 take weights as tiles
  bool rounds_norms = false;          // norms can write their results, y and dx, rounded beside them
  bool drops_sums = false;            // products can drop what they add to a residual, and norms what they round of dx
  Device& (*device)() = &cpu_device;  // where their tensors are
#define QKV_KERNEL(kernel, Args) void (*kernel)(const Exec&, const Args&) noexcept = nullptr;
  QKV_KERNELS(QKV_KERNEL)
#undef QKV_KERNEL
  // Up to kMostInSet products of one x in one launch, where a table has it: the bits of linear for each, in order. The
  // second of two may take the first one's y as its gate.
  void (*linear_set)(const Exec&, std::span<const LinearArgs>) noexcept = nullptr;
  // sum_squares and adamw for each, in few launches, where a table has it: the same bits. adamw_set also writes copies of w,
  // as the kernel `copy` does.
  void (*sum_squares_set)(const Exec&, std::span<const SumSquaresArgs>) noexcept = nullptr;
  void (*adamw_set)(const Exec&, std::span<const AdamWArgs>) noexcept = nullptr;
  // Of each row the first highest number: ids i32 [N] of x f32 [N, V], -1 where one is not finite. Where a table has
  // it; elsewhere the host looks at the numbers.
  void (*first_highest)(const Exec&, const FirstHighestArgs&) noexcept = nullptr;
  // Two rotary and two scatter_rows in one launch, where a table has it.
  void (*cache_heads)(const Exec&, const CacheHeadsArgs&) noexcept = nullptr;
  // The gradients of up to kMostInSet products of one x: dw and db of each, and dx, where it is asked for, as one product with
  // their outputs side by side. False where a table does not take these, and nothing is done.
  bool (*linear_backward_set)(const Exec&, const Grad& dx, std::span<const LinearBackwardArgs>) noexcept = nullptr;
  // Muon for each, where a table has it and takes the matrices; others are left for products one by one.
  void (*muon_set)(const Exec&, std::span<MuonArgs>) noexcept = nullptr;

  static const Kernels& none();  // kernels that do nothing, for planning memory
  Kernels dry() const;           // the same, and a pass with gradients takes as much as with this table
};

}  // namespace qkv
