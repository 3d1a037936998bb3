// Every operation a Transformer needs, forward and backward. One file per op; the formulas stand at its head.
//
// An op checks what it is given, takes its output from the context, calls kernels through the table and, under a tape,
// records how to go backward. Tensors that hold one vector per row may have any leading axes; the last is the vector.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>

#include "core/context.h"

namespace qkv::ops {

// --- plain arithmetic ------------------------------------------------------------------------------------------------

Tensor add(Context& cx, const Tensor& a, const Tensor& b);  // same shape; dtype of a
// A result is added to x; the sum has the shape and dtype of x.
struct Residual {
  Tensor x;               // absent: nothing is added
  bool in_place = false;  // the sum overwrites x. Not under a tape
};
Tensor add_residual(Context& cx, const Residual& residual, const Tensor& b);  // x + b; b itself where x is absent
Tensor scale(Context& cx, const Tensor& x, double factor);
Tensor cast(Context& cx, const Tensor& x, DType dtype);        // also makes a strided view contiguous
Tensor concat(Context& cx, const Tensor& a, const Tensor& b);  // [N, H, A], [N, H or 1, B] -> [N, H, A + B]
Tensor softmax(Context& cx, const Tensor& x);                  // over the last axis

// Views: [..., H D] -> [..., H, D] and back.
Tensor split_heads(const Tensor& x, int64_t heads);
Tensor merge_heads(const Tensor& x);

// --- products and lookups --------------------------------------------------------------------------------------------

// Consecutive rows in groups, one weight each. Made only where the sizes are known, so that they add up.
class RowGroups {
 public:
  RowGroups() = default;
  static RowGroups of_sizes(Context& cx, std::span<const int32_t> sizes);

  bool defined() const { return starts_.defined(); }
  const Tensor& starts() const { return starts_; }  // i32 [E + 1]: first row of each group, and the end
  int64_t count() const { return starts_.count() - 1; }
  int64_t rows() const { return rows_; }

 private:
  RowGroups(const Tensor& starts, int64_t rows) : starts_(starts), rows_(rows) {}
  friend struct Dispatch plan_dispatch(Context& cx, const Tensor& ids, int64_t experts);

  Tensor starts_;
  int64_t rows_ = 0;
};

struct LinearOptions {
  const Param* bias = nullptr;
  RowGroups groups;            // group e uses weight e of [E, O, K]
  std::optional<DType> dtype;  // of weight and output; the pass' compute dtype if not said (routers say exact)
  std::optional<DType> out;    // of the output alone (logits say exact)
  Residual residual = {};      // the product is added to it unrounded; its dtype is the output's
};
// w [O, K]: every row. w [E, O, K] with groups: rows sorted by group. w [B, O, K] and x [B, M, K]: one weight per
// batch.
Tensor linear(Context& cx, const Tensor& x, const Param& w, const LinearOptions& options = {});

// down(act(up x)), or with a gate down(gated(gate x, up x)): the ops one after the other give the same bits, but here
// sums become what they are to be while they are at hand. For where nobody looks between.
struct Affine {  // x w^T + b
  const Param* weight = nullptr;
  const Param* bias = nullptr;
};
struct FeedForwardOptions {
  Affine up, gate, down;     // a gate without weight is absent
  Gating form = {};          // without a gate its activation alone
  RowGroups groups = {};     // experts: group e uses the weights e
  std::optional<DType> out;  // of the output; the pass' compute dtype if not said
  Residual residual = {};    // as in linear
};
Tensor feed_forward(Context& cx, const Tensor& x, const FeedForwardOptions& options);

// A weight in fewer bits: w is q8 or q4 and takes the numbers of x, which has its shape and is finite.
void quantize(Context& cx, Param& w, const Tensor& x);
Tensor dequantize(Context& cx, const Param& w, DType dtype);  // of any block format

struct Lookup {
  Tensor ids;  // i32 [...]
  const Param* table;
  double factor = 1;
};
Tensor embedding(Context& cx, std::initializer_list<Lookup> lookups);  // the sum of them: token, position, type

// Some rows of x, [R] of [N, C] -> [R, C]. Not under a tape.
Tensor gather_rows(Context& cx, const Tensor& x, const Tensor& rows);

// Rows of x into slots of a cache, which may be of another float dtype, or i8 with one scale for each row of x
// (scales f32 [P, G] beside [P, G, D]). Not under a tape: a cache carries no gradient.
void scatter_rows(Context& cx, const Tensor& cache, const Tensor& x, const Tensor& slots, const Tensor& scales = {});

// --- norms and elementwise -------------------------------------------------------------------------------------------

struct NormOptions {
  const Param* weight = nullptr;
  const Param* bias = nullptr;  // layer_norm only
  double eps = 1e-5;
  double offset = 0;           // rms_norm only: multiplies by (weight + offset); Gemma says 1
  std::optional<DType> dtype;  // of the output; the pass' compute dtype if not said (post-norm streams say exact)
};
Tensor layer_norm(Context& cx, const Tensor& x, const NormOptions& options);
Tensor rms_norm(Context& cx, const Tensor& x, const NormOptions& options);

struct DropoutOptions {
  float p = 0;
  Place place;
  Site site = Site::embed;
};
Tensor dropout(Context& cx, const Tensor& x, const DropoutOptions& options);  // x itself unless cx.training

namespace act {
inline constexpr Activation identity{Activation::Kind::identity};
inline constexpr Activation relu{Activation::Kind::relu};
inline constexpr Activation gelu_erf{Activation::Kind::gelu_erf};
inline constexpr Activation gelu_tanh{Activation::Kind::gelu_tanh};
inline constexpr Activation silu{Activation::Kind::silu};
inline constexpr Activation quick_gelu{Activation::Kind::silu, 1.702F};
inline constexpr Activation tanh{Activation::Kind::tanh};
constexpr Activation softcap(float cap) {
  return {Activation::Kind::tanh, cap};
}
}  // namespace act

namespace gate {
inline constexpr Gating swiglu{act::silu};
inline constexpr Gating geglu_erf{act::gelu_erf};
inline constexpr Gating geglu_tanh{act::gelu_tanh};
inline constexpr Gating clamped_swiglu{act::quick_gelu, 7.0F, 1.0F};  // gpt-oss
}  // namespace gate

Tensor activation(Context& cx, const Tensor& x, Activation act);
Tensor gated(Context& cx, const Tensor& gate, const Tensor& up, Gating form);

struct RotaryOptions {
  Tensor cos, sin;    // [P, R], see positions.h
  int64_t first = 0;  // columns [first, first + 2 R) turn, the others pass through
  bool interleaved = false;
};
Tensor rotary(Context& cx, const Tensor& x, const Tensor& positions, const RotaryOptions& options);  // x [..., H, D]

// --- attention -------------------------------------------------------------------------------------------------------

struct AttentionOptions {
  Place place;
  Tensor kv_map;                // i32 [H], key/value head of each query head; head h reads h / (H / G) if not said
  std::optional<double> scale;  // 1 / sqrt(D) if not said
  double softcap = 0;
  bool causal = false;
  int64_t window = 0;            // 0: all keys
  const Param* sinks = nullptr;  // [H]
  Tensor slopes;                 // [H], ALiBi
  const Param* bias = nullptr;   // [H, buckets], with
  Tensor buckets;                // i32 [2 R + 1], see relative_buckets()
  Tensor mask;                   // [n or 1, H or 1, T, S], added to the scores; no gradient
  float dropout = 0;             // on the probabilities, if cx.training
  Tensor table;                  // i32 [n, pages]: k and v are pages [P, page, G, D], of any float dtype, or i8 with
  Tensor k_scales, v_scales;     // f32 [P, page, G]
  Tensor importance;             // [N, H] or absent: backward leaves dz . z here, each head's gradient importance
};
struct Attended {
  Tensor z;    // [N, H, E]
  Tensor lse;  // [N, H]
};
// q [..., H, D], k [..., G, D], v [..., G, E]: leading axes are rows, as `rows` says.
Attended attention(Context& cx, Tensor q, Tensor k, Tensor v, const Rows& rows, const AttentionOptions& options);

struct PatternOptions {
  AttentionPatternArgs::Stage stage = AttentionPatternArgs::Stage::probs;
  Tensor which;  // i32 [R]: rows of q to show; all if absent
};
// The pattern of a finished attention, exact from q, k and LSE. [R, H, S]; no gradient.
Tensor attention_pattern(Context& cx, const Tensor& q, const Tensor& k, const Tensor& lse, const Rows& rows,
                         const AttentionOptions& options, const PatternOptions& pattern = {});

// --- experts ---------------------------------------------------------------------------------------------------------

struct Routed {
  Tensor ids;      // i32 [N, k]
  Tensor weights;  // [N, k]
};
Routed route(Context& cx, const Tensor& logits, const RouteRule& rule, const Param* correction = nullptr);

struct Dispatch {  // rows sorted by expert; every chosen (row, expert) pair is there, none is dropped
  Tensor order, slots;
  RowGroups groups;
  int64_t top_k = 1;
};
Dispatch plan_dispatch(Context& cx, const Tensor& ids, int64_t experts);
Tensor dispatch(Context& cx, const Tensor& x, const Dispatch& plan);                        // [N, C] -> [N k, C]
Tensor combine(Context& cx, const Tensor& z, const Tensor& weights, const Dispatch& plan);  // [N k, C] -> [N, C]

struct RouterUse {
  Tensor logits, ids;
};
// coefficient * E * sum_e f_e P_e over the rows of all given layers joined; uniform routing gives coefficient * k.
Tensor balance_loss(Context& cx, std::span<const RouterUse> layers, double coefficient);

// --- ends of a model -------------------------------------------------------------------------------------------------

using Pooling = PoolArgs::Kind;
Tensor pool(Context& cx, const Tensor& x, const Rows& rows, Pooling kind);  // one vector per segment

struct CrossEntropyOptions {
  const Param* bias = nullptr;
  CrossEntropyRule rule;
  double divisor = 1;  // the loss is the sum over rows divided by this: the global number of counted tokens
};
struct Loss {
  Tensor loss;    // [1]
  Tensor losses;  // [N], 0 where ignored; for looking, without gradient
};
Loss cross_entropy(Context& cx, const Tensor& x, const Param& w, const Tensor& targets,
                   const CrossEntropyOptions& options);

}  // namespace qkv::ops
