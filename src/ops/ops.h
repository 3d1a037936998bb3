// Every operation a Transformer needs, forward and backward. One file per op, with its formulas at the top.
//
// An op checks its arguments, allocates its output in the context's arena, calls kernels through the table and, under
// a tape, records its backward step. A tensor with one vector per row may have any leading axes; the last is the
// vector.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "core/context.h"
#include "ops/activations.h"

namespace qkv::ops {

// --- plain arithmetic ------------------------------------------------------------------------------------------------

Tensor add(Context& cx, const Tensor& a, const Tensor& b);  // same shape; dtype of a
// A result is added to x; the sum has the shape and dtype of x.
struct Residual {
  Tensor x;               // absent: nothing is added
  bool in_place = false;  // the sum overwrites x. Not under a tape
  Dropout dropout = {};   // of the result before it is added; in ops with weights only for tables with drops_sums
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

// Consecutive rows in groups, one weight per group. Only of_sizes and plan_dispatch make them, so sizes always add up.
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
  std::optional<DType> dtype;  // of weight and output; default the pass' compute dtype (routers: exact)
  std::optional<DType> out;    // of the output alone (logits: exact)
  Residual residual = {};      // the product is added to it unrounded; its dtype is the output's
};
// w [O, K]: every row. w [E, O, K] with groups: rows sorted by group. w [B, O, K] and x [B, M, K]: one weight per
// batch.
Tensor linear(Context& cx, const Tensor& x, const Param& w, const LinearOptions& options = {});

struct Affine {  // x w^T + b
  const Param* weight = nullptr;
  const Param* bias = nullptr;
};
// Several products of one x without groups, as linear makes each; in one launch where the kernels can.
std::vector<Tensor> linear_set(Context& cx, const Tensor& x, std::span<const Affine> weights);

// down(act(up x)), or with a gate down(gated(gate x, up x)), fused: the activation runs inside the product. The same
// bits as the separate ops. For passes that do not read the hidden layer.
struct FeedForwardOptions {
  Affine up, gate, down;     // gate.weight null: no gate
  Gating form = {};          // without a gate, only its activation
  RowGroups groups = {};     // experts: group e uses weights e
  std::optional<DType> out;  // of the output; default the pass' compute dtype
  Residual residual = {};    // as in linear
};
Tensor feed_forward(Context& cx, const Tensor& x, const FeedForwardOptions& options);

// w, of format q8 or q4, = quantised x. x has the shape of w and is finite.
void quantize(Context& cx, Param& w, const Tensor& x);
Tensor dequantize(Context& cx, const Param& w, DType dtype);  // of any block format

struct Lookup {
  Tensor ids;  // i32 [...]
  const Param* table = nullptr;
  double factor = 1;
  Tensor numbers = {};  // [V, C] instead of a table, not trained
};
Tensor embedding(Context& cx, std::initializer_list<Lookup> lookups);  // the sum of them: token, position, type

// Some rows of x, [R] of [N, C] -> [R, C]. Not under a tape.
Tensor gather_rows(Context& cx, const Tensor& x, const Tensor& rows);

// Writes rows of x into slots of a cache, which may have another float dtype, or i8 with one scale per row of x
// (scales f32 [P, G] beside [P, G, D]). Not under a tape: a cache has no gradient.
void scatter_rows(Context& cx, const Tensor& cache, const Tensor& x, const Tensor& slots, const Tensor& scales = {});

// --- norms and elementwise -------------------------------------------------------------------------------------------

struct NormOptions {
  const Param* weight = nullptr;
  const Param* bias = nullptr;  // layer_norm only
  double eps = 1e-5;
  double offset = 0;           // multiplies by (weight + offset): 1 in Gemma and Nemotron
  std::optional<DType> dtype;  // of the output; default the pass' compute dtype (post-norm streams: exact)
};
Tensor layer_norm(Context& cx, const Tensor& x, const NormOptions& options);
Tensor rms_norm(Context& cx, const Tensor& x, const NormOptions& options);

struct DropoutOptions {
  float p = 0;
  Place place;
  Site site = Site::embed;
};
Tensor dropout(Context& cx, const Tensor& x, const DropoutOptions& options);  // x as it is unless cx.training

Tensor activation(Context& cx, const Tensor& x, Activation act);
Tensor gated(Context& cx, const Tensor& gate, const Tensor& up, Gating form);

struct RotaryOptions {
  Tensor cos, sin;    // [P, R], see positions.h
  int64_t first = 0;  // columns [first, first + 2 R) are rotated, the others copied
  bool interleaved = false;
};
Tensor rotary(Context& cx, const Tensor& x, const Tensor& positions, const RotaryOptions& options);  // x [..., H, D]

// Turns q and k, writes k and v to a cache and returns q: the bits of rotary and scatter_rows, in one launch where the
// kernels can. Not under a tape.
struct CacheHeads {
  Tensor q, k, v;                                      // [N, H, D], [N, G, D], [N, G, E]
  Tensor cache_k, cache_v, k_scales, v_scales, slots;  // as scatter_rows takes them
};
Tensor cache_heads(Context& cx, const CacheHeads& heads, const Tensor& positions, const RotaryOptions& options);

// --- attention -------------------------------------------------------------------------------------------------------

struct AttentionOptions {
  Place place;
  Tensor kv_map;                // i32 [H], key/value head of each query head; default h / (H / G)
  std::optional<double> scale;  // default 1 / sqrt(D)
  double softcap = 0;
  bool causal = false;
  int64_t window = 0;            // 0: all keys
  int64_t chunk = 0;             // 0: all keys; else only those of the row's own chunk of so many positions
  const Param* sinks = nullptr;  // [H]
  Tensor slopes;                 // [H], ALiBi
  const Param* bias = nullptr;   // [H, buckets], with
  Tensor buckets;                // i32 [2 R + 1], see relative_buckets()
  Tensor mask;                   // [n or 1, H or 1, T, S], added to the scores; no gradient
  float dropout = 0;             // on the probabilities, if cx.training
  Tensor table;                  // i32 [n, pages]: k and v are pages [P, page, G, D], of any float dtype, or i8 with
  Tensor k_scales, v_scales;     // f32 [P, page, G]
  Tensor importance;             // [N, H] or absent: backward writes dz . z, each head's gradient importance
};
struct Attended {
  Tensor z;    // [N, H, E]
  Tensor lse;  // [N, H]
};
// q [..., H, D], k [..., G, D], v [..., G, E]; the leading axes are the rows of `rows`.
Attended attention(Context& cx, Tensor q, Tensor k, Tensor v, const Rows& rows, const AttentionOptions& options);

struct PatternOptions {
  AttentionPatternArgs::Stage stage = AttentionPatternArgs::Stage::probs;
  Tensor which;  // i32 [R]: rows of q; all if absent
};
// The attention pattern, computed again from q, k and LSE. [R, H, S]; no gradient.
Tensor attention_pattern(Context& cx, const Tensor& q, const Tensor& k, const Tensor& lse, const Rows& rows,
                         const AttentionOptions& options, const PatternOptions& pattern = {});

// StatsRows, uploaded. One group: rows of one sequence, in order.
struct StatsRowsOnHost {
  struct Group {
    int32_t first_row = 0, rows = 0, position = 0, first_label = 0;
  };
  std::vector<Group> groups;
  std::vector<std::array<double, 3>> weights;            // of every row of the pass
  std::vector<int32_t> labels;                           // of keys
  std::vector<std::array<int32_t, kMostWanted>> wanted;  // of every row, or empty
};
StatsRows stats_rows(Context& cx, const StatsRowsOnHost& host);
// Sums of statistics over groups of rows into y, f64 [n, H, columns]: see StatsColumns.
void attention_sums(Context& cx, const AttentionStats& stats, const StatsRows& rows, const Tensor& y);

// --- experts ---------------------------------------------------------------------------------------------------------

struct Routed {
  Tensor ids;      // i32 [N, k]
  Tensor weights;  // [N, k]
};
Routed route(Context& cx, const Tensor& logits, const RouteRule& rule, const Param* correction = nullptr);

struct Dispatch {  // rows sorted by expert; no (row, expert) pair is dropped
  Tensor order, slots;
  RowGroups groups;
  int64_t top_k = 1;
};
Dispatch plan_dispatch(Context& cx, const Tensor& ids, int64_t experts);
Tensor dispatch(Context& cx, const Tensor& x, const Dispatch& plan);                        // [N, C] -> [N k, C]
Tensor combine(Context& cx, const Tensor& z, const Tensor& weights, const Dispatch& plan);  // [N k, C] -> [N, C]

// y[r] = factors[r] x[r]: the gate of a shared expert, the weights of rows before they are dispatched. [N, C], [N, 1].
Tensor scale_rows(Context& cx, const Tensor& x, const Tensor& factors);

struct RouterUse {
  Tensor logits, ids;
};
// coefficient * E * sum_e f_e P_e over the rows of all given layers; uniform routing gives coefficient * k.
Tensor balance_loss(Context& cx, std::span<const RouterUse> layers, double coefficient);

// --- ends of a model -------------------------------------------------------------------------------------------------

using Pooling = PoolArgs::Kind;
Tensor pool(Context& cx, const Tensor& x, const Rows& rows, Pooling kind);  // one vector per segment

struct CrossEntropyOptions {
  const Param* bias = nullptr;
  CrossEntropyRule rule;
  double divisor = 1;  // the loss is the sum over rows divided by this, usually the global number of target tokens
};
struct Loss {
  Tensor loss;    // [1]
  Tensor losses;  // [N], 0 where ignored; no gradient
};
Loss cross_entropy(Context& cx, const Tensor& x, const Param& w, const Tensor& targets,
                   const CrossEntropyOptions& options);

}  // namespace qkv::ops
