#include "op_cases.h"

#include <limits>

#include "ops/ops.h"
#include "ops/positions.h"

namespace qkv::test {
namespace {

using Kind = OpInput::Kind;
using Cases = std::vector<OpCase>;
using Outputs = std::vector<Tensor>;

OpInput rows(std::string name, Shape one) {
  return {.name = std::move(name), .kind = Kind::rows, .shape = one};
}
OpInput fixed(std::string name, Shape shape) {
  return {.name = std::move(name), .kind = Kind::fixed, .shape = shape};
}
OpInput weight(std::string name, Shape shape) {
  return {.name = std::move(name), .kind = Kind::weight, .shape = shape};
}
OpInput ids(std::string name, Shape one, int32_t limit) {
  return {.name = std::move(name), .kind = Kind::ids, .shape = one, .limit = limit};
}

std::string named(const char* base, const char* variant) {
  return std::string(base) + "_" + variant;
}

void add_products(Cases& all) {
  all.push_back({.name = "linear",
                 .inputs = {rows("x", {33}), weight("w", {17, 33}), weight("b", {17})},
                 .run = [](OpIo& io) -> Outputs {
                   return {ops::linear(io.cx, io["x"], io.weight("w"), {.bias = &io.weight("b")})};
                 }});
  all.push_back({.name = "linear_one_column",
                 .inputs = {rows("x", {1}), weight("w", {1, 1})},
                 .run = [](OpIo& io) -> Outputs { return {ops::linear(io.cx, io["x"], io.weight("w"))}; }});
  all.push_back(
      {.name = "linear_strided",  // x is the middle of wider rows, as after a fused projection
       .inputs = {rows("x", {40}), weight("w", {6, 16})},
       .run = [](OpIo& io) -> Outputs { return {ops::linear(io.cx, io["x"].slice(1, 8, 16), io.weight("w"))}; }});
  all.push_back({.name = "linear_exact",  // as a router's
                 .inputs = {rows("x", {24}), weight("w", {8, 24})},
                 .run = [](OpIo& io) -> Outputs {
                   return {ops::linear(io.cx, io["x"], io.weight("w"), {.dtype = io.cx.precision.exact})};
                 }});
  all.push_back({.name = "linear_batched",
                 .inputs = {fixed("x", {3, 4, 7}), weight("w", {3, 5, 7}), weight("b", {3, 5})},
                 .run = [](OpIo& io) -> Outputs {
                   return {ops::linear(io.cx, io["x"], io.weight("w"), {.bias = &io.weight("b")})};
                 },
                 .row_wise = false});
  all.push_back({.name = "linear_grouped",  // one group is empty
                 .inputs = {fixed("x", {9, 7}), weight("w", {4, 5, 7}), weight("b", {4, 5})},
                 .run = [](OpIo& io) -> Outputs {
                   const auto groups = ops::RowGroups::of_sizes(io.cx, std::vector<int32_t>{4, 0, 3, 2});
                   return {ops::linear(io.cx, io["x"], io.weight("w"), {.bias = &io.weight("b"), .groups = groups})};
                 },
                 .row_wise = false});
  all.push_back({.name = "linear_tied",  // one weight used twice gets both gradients
                 .inputs = {rows("x", {12}), weight("w", {12, 12})},
                 .run = [](OpIo& io) -> Outputs {
                   return {ops::linear(io.cx, ops::linear(io.cx, io["x"], io.weight("w")), io.weight("w"))};
                 },
                 .bf16_roundings = 8});
}

// Fused products.
void add_fused(Cases& all) {
  OpInput residual = rows("residual", {17});
  residual.exact = true;
  all.push_back(
      {.name = "linear_residual",
       .inputs = {rows("x", {33}), residual, weight("w", {17, 33}), weight("b", {17})},
       .run = [](OpIo& io) -> Outputs {
         return {ops::linear(io.cx, io["x"], io.weight("w"), {.bias = &io.weight("b"), .residual = {io["residual"]}})};
       }});
  const auto shared = [](OpIo& io) {
    return ops::FeedForwardOptions{.up = {&io.weight("up"), &io.weight("up_bias")},
                                   .down = {&io.weight("down"), &io.weight("down_bias")},
                                   .out = io.cx.precision.exact};
  };
  const std::vector<OpInput> plain{rows("x", {12}),          residual,
                                   weight("up", {37, 12}),   weight("up_bias", {37}),
                                   weight("down", {17, 37}), weight("down_bias", {17})};
  std::vector<OpInput> gated = plain;
  gated.push_back(weight("gate", {37, 12}));
  all.push_back({.name = "feed_forward_gelu",
                 .inputs = plain,
                 .run = [shared](OpIo& io) -> Outputs {
                   ops::FeedForwardOptions options = shared(io);
                   options.form = {ops::act::gelu_tanh};
                   options.residual = {io["residual"]};
                   return {ops::feed_forward(io.cx, io["x"], options)};
                 },
                 .bf16_roundings = 12});
  all.push_back({.name = "feed_forward_swiglu",
                 .inputs = gated,
                 .run = [shared](OpIo& io) -> Outputs {
                   ops::FeedForwardOptions options = shared(io);
                   options.gate = {&io.weight("gate")};
                   options.form = ops::gate::swiglu;
                   options.residual = {io["residual"]};
                   return {ops::feed_forward(io.cx, io["x"], options)};
                 },
                 .bf16_roundings = 16});
  all.push_back({.name = "feed_forward_experts",  // one expert gets no rows
                 .inputs = {fixed("x", {9, 7}), weight("up", {4, 21, 7}), weight("up_bias", {4, 21}),
                            weight("gate", {4, 21, 7}), weight("down", {4, 5, 21}), weight("down_bias", {4, 5})},
                 .run = [shared](OpIo& io) -> Outputs {
                   ops::FeedForwardOptions options = shared(io);
                   options.gate = {&io.weight("gate")};
                   options.form = ops::gate::swiglu;
                   options.groups = ops::RowGroups::of_sizes(io.cx, std::vector<int32_t>{4, 0, 3, 2});
                   return {ops::feed_forward(io.cx, io["x"], options)};
                 },
                 .row_wise = false,
                 .bf16_roundings = 16});
}

void add_lookups(Cases& all) {
  all.push_back({.name = "embedding",
                 .inputs = {ids("token", {}, 11), ids("position", {}, 7), ids("type", {}, 2), weight("tokens", {11, 9}),
                            weight("positions", {7, 9}), weight("types", {2, 9})},
                 .run = [](OpIo& io) -> Outputs {
                   return {ops::embedding(io.cx, {{io["token"], &io.weight("tokens"), 3.0},
                                                  {io["position"], &io.weight("positions")},
                                                  {io["type"], &io.weight("types")}})};
                 }});
}

void add_elementwise(Cases& all) {
  all.push_back({.name = "add", .inputs = {rows("a", {13}), rows("b", {13})}, .run = [](OpIo& io) -> Outputs {
                   return {ops::add(io.cx, io["a"], io["b"])};
                 }});
  all.push_back({.name = "add_twice",  // x + x: both gradients arrive
                 .inputs = {rows("x", {5})},
                 .run = [](OpIo& io) -> Outputs { return {ops::add(io.cx, io["x"], io["x"])}; }});
  all.push_back({.name = "scale", .inputs = {rows("x", {13})}, .run = [](OpIo& io) -> Outputs {
                   return {ops::scale(io.cx, io["x"], -2.5)};
                 }});
  all.push_back({.name = "cast", .inputs = {rows("x", {6, 5})}, .run = [](OpIo& io) -> Outputs {
                   return {ops::cast(io.cx, io["x"].transposed(1, 2), io.cx.precision.exact)};
                 }});
  all.push_back({.name = "concat", .inputs = {rows("a", {3, 4}), rows("b", {3, 2})}, .run = [](OpIo& io) -> Outputs {
                   return {ops::concat(io.cx, io["a"], io["b"])};
                 }});
  all.push_back({.name = "concat_shared",
                 .inputs = {rows("a", {3, 4}), rows("b", {1, 2})},
                 .run = [](OpIo& io) -> Outputs { return {ops::concat(io.cx, io["a"], io["b"])}; },
                 .bf16_roundings = 4});
  all.push_back({.name = "softmax", .inputs = {rows("x", {19})}, .run = [](OpIo& io) -> Outputs {
                   return {ops::softmax(io.cx, io["x"])};
                 }});
  all.push_back(
      {.name = "dropout", .inputs = {rows("x", {37})}, .run = [](OpIo& io) -> Outputs {
         return {ops::dropout(io.cx, io["x"], {.p = 0.3F, .place = {Stack::decoder, 2}, .site = Site::mlp_out})};
       }});
  const std::pair<const char*, Activation> activations[] = {{"identity", ops::act::identity},
                                                            {"relu", ops::act::relu},
                                                            {"gelu_erf", ops::act::gelu_erf},
                                                            {"gelu_tanh", ops::act::gelu_tanh},
                                                            {"silu", ops::act::silu},
                                                            {"quick_gelu", ops::act::quick_gelu},
                                                            {"tanh", ops::act::tanh},
                                                            {"softcap", ops::act::softcap(3.0F)},
                                                            {"relu_squared", ops::act::relu_squared}};
  for (const auto& [name, act] : activations) {
    OpInput x = rows("x", {21});
    x.deviation = 2;
    x.away_from_zero = act.kind == Activation::Kind::relu ? 0.1 : 0;
    all.push_back({.name = named("activation", name), .inputs = {x}, .run = [act = act](OpIo& io) -> Outputs {
                     return {ops::activation(io.cx, io["x"], act)};
                   }});
  }
  const std::pair<const char*, Gating> gates[] = {{"swiglu", ops::gate::swiglu},
                                                  {"geglu_erf", ops::gate::geglu_erf},
                                                  {"geglu_tanh", ops::gate::geglu_tanh},
                                                  {"clamped", {ops::act::quick_gelu, 1.5F, 1.0F}}};
  for (const auto& [name, form] : gates) {
    all.push_back({.name = named("gated", name),
                   .inputs = {rows("both", {22})},  // gate and up are the halves of one product
                   .run = [form = form](OpIo& io) -> Outputs {
                     return {ops::gated(io.cx, io["both"].slice(1, 0, 11), io["both"].slice(1, 11, 11), form)};
                   }});
  }
}

void add_norms(Cases& all) {
  OpInput x = rows("x", {31});
  x.mean = 0.7;
  x.exact = true;
  OpInput w = weight("w", {31});
  w.mean = 1;
  w.deviation = 0.3;
  all.push_back(
      {.name = "layer_norm", .inputs = {x, w, weight("b", {31})}, .run = [](OpIo& io) -> Outputs {
         return {ops::layer_norm(io.cx, io["x"], {.weight = &io.weight("w"), .bias = &io.weight("b"), .eps = 1e-5})};
       }});
  all.push_back({.name = "layer_norm_one_plus", .inputs = {x, w, weight("b", {31})}, .run = [](OpIo& io) -> Outputs {
                   return {ops::layer_norm(
                       io.cx, io["x"], {.weight = &io.weight("w"), .bias = &io.weight("b"), .eps = 1e-5, .offset = 1})};
                 }});
  all.push_back({.name = "layer_norm_plain", .inputs = {x}, .run = [](OpIo& io) -> Outputs {
                   return {ops::layer_norm(io.cx, io["x"], {.eps = 1e-3})};
                 }});
  all.push_back({.name = "rms_norm", .inputs = {x, w}, .run = [](OpIo& io) -> Outputs {
                   return {ops::rms_norm(io.cx, io["x"], {.weight = &io.weight("w"), .eps = 1e-6})};
                 }});
  all.push_back({.name = "rms_norm_one_plus", .inputs = {x, w}, .run = [](OpIo& io) -> Outputs {
                   return {ops::rms_norm(io.cx, io["x"], {.weight = &io.weight("w"), .eps = 1e-6, .offset = 1})};
                 }});
  all.push_back({.name = "rms_norm_per_head",  // on a strided view: the query part of a fused projection
                 .inputs = {rows("qkv", {24}), weight("w", {4})},
                 .run = [](OpIo& io) -> Outputs {
                   const Tensor q = ops::split_heads(io["qkv"].slice(1, 8, 12), 3);
                   return {ops::rms_norm(io.cx, q, {.weight = &io.weight("w"), .eps = 1e-6})};
                 }});
}

struct Turn {
  const char* name;
  int64_t width, first;
  bool interleaved;
  ops::RopeScaling scaling;
};

void add_rotary(Cases& all) {
  const ops::RopeScaling yarn{.kind = ops::RopeScaling::Kind::yarn, .factor = 4, .original_context = 64};
  for (const Turn& turn : {Turn{"halves", 8, 0, false, {}}, Turn{"interleaved", 8, 0, true, {}},
                           Turn{"partial", 4, 0, false, {}}, Turn{"tail", 4, 4, true, yarn}}) {
    all.push_back({.name = named("rotary", turn.name),
                   .inputs = {rows("x", {3, 8}), ids("position", {}, 100)},
                   .run = [turn](OpIo& io) -> Outputs {
                     const ops::RopeTable table = ops::rope_table(10000, turn.width, 100, turn.scaling);
                     return {ops::rotary(io.cx, io["x"], io["position"],
                                         {.cos = io.cx.upload(table.cos, {100, table.pairs}),
                                          .sin = io.cx.upload(table.sin, {100, table.pairs}),
                                          .first = turn.first,
                                          .interleaved = turn.interleaved})};
                   }});
  }
}

// Attention over keys that do not change with the rows: row i is at position first_row + i.
struct Looking {
  const char* name;
  int64_t heads = 4, kv_heads = 2, width = 8, value_width = 8, keys = 90;
  std::function<void(OpIo&, ops::AttentionOptions&)> set = [](OpIo&, ops::AttentionOptions&) {};
  std::vector<OpInput> more = {};
  double query_deviation = 1;
};

OpCase looking_case(const Looking& how) {
  std::vector<OpInput> inputs{rows("q", {how.heads, how.width}), fixed("k", {how.keys, how.kv_heads, how.width}),
                              fixed("v", {how.keys, how.kv_heads, how.value_width})};
  inputs.front().deviation = how.query_deviation;
  inputs.insert(inputs.end(), how.more.begin(), how.more.end());
  return {.name = named("attention", how.name),
          .inputs = inputs,
          .run = [how](OpIo& io) -> Outputs {
            const Rows rows = Rows::make(io.cx,
                                         {{.rows = static_cast<int32_t>(io.rows),
                                           .keys = static_cast<int32_t>(how.keys),
                                           .position = static_cast<int32_t>(io.first_row)}},
                                         io.rows, how.keys);
            ops::AttentionOptions options;
            how.set(io, options);
            return {ops::attention(io.cx, io["q"], io["k"], io["v"], rows, options).z};
          },
          .small_rows = 4,
          .bf16_roundings = 6};
}

Tensor mask_of(OpIo& io, int64_t segments, int64_t heads, int64_t rows, int64_t keys) {
  std::vector<float> mask;
  for (int64_t i = 0; i < segments * heads * rows * keys; ++i) {
    const int64_t row = i / keys % rows;
    const bool hidden = row == 1 || i % 3 == 0;  // row 1 sees nothing at all
    mask.push_back(hidden ? -std::numeric_limits<float>::infinity() : 0.1F * static_cast<float>(i % 7));
  }
  return io.cx.upload(mask, {segments, heads, rows, keys});
}

void add_attention(Cases& all) {
  using Options = ops::AttentionOptions;
  const std::vector<Looking> variants{
      {.name = "plain"},
      {.name = "causal", .set = [](OpIo&, Options& o) { o.causal = true; }},
      {.name = "multi_query", .heads = 5, .kv_heads = 1, .set = [](OpIo&, Options& o) { o.causal = true; }},
      {.name = "odd_widths", .heads = 3, .kv_heads = 3, .width = 5, .value_width = 7, .keys = 67},
      {.name = "wide_heads",
       .heads = 2,
       .kv_heads = 1,
       .width = 80,
       .value_width = 72,
       .keys = 70,
       .set = [](OpIo&, Options& o) { o.causal = true; }},
      {.name = "wide_odd_heads", .heads = 2, .kv_heads = 1, .width = 67, .value_width = 65, .keys = 70},
      {.name = "one_key", .keys = 1, .set = [](OpIo&, Options& o) { o.causal = true; }},
      {.name = "many_keys", .heads = 2, .kv_heads = 1, .width = 4, .value_width = 4, .keys = 300},
      {.name = "scaled", .set = [](OpIo&, Options& o) { o.scale = 0.05; }},
      {.name = "window",
       .set =
           [](OpIo&, Options& o) {
             o.causal = true;
             o.window = 3;
           }},
      {.name = "chunk",
       .set =
           [](OpIo&, Options& o) {
             o.causal = true;
             o.chunk = 3;
           }},
      {.name = "chunk_both_sides", .set = [](OpIo&, Options& o) { o.chunk = 4; }},
      {.name = "chunk_and_window",
       .set =
           [](OpIo&, Options& o) {
             o.causal = true;
             o.chunk = 4;
             o.window = 2;
           }},
      {.name = "window_both_sides", .set = [](OpIo&, Options& o) { o.window = 2; }},
      {.name = "soft_cap",
       .set =
           [](OpIo&, Options& o) {
             o.causal = true;
             o.softcap = 1.5;
           }},
      {.name = "sinks",
       .set =
           [](OpIo& io, Options& o) {
             o.causal = true;
             o.sinks = &io.weight("sinks");
           },
       .more = {weight("sinks", {4})}},
      {.name = "alibi",
       .set =
           [](OpIo& io, Options& o) {
             o.causal = true;
             o.slopes = io.cx.upload(ops::alibi_slopes(4), {4});
           }},
      {.name = "relative_bias",
       .set =
           [](OpIo& io, Options& o) {
             o.scale = 1;
             o.bias = &io.weight("bias");
             o.buckets = io.cx.upload(ops::relative_buckets(8, 16, true));
           },
       .more = {weight("bias", {4, 8})},
       .query_deviation = 0.35},  // T5 does not scale the product, its queries are small instead
      {.name = "kv_map",
       .heads = 3,
       .kv_heads = 4,
       .set =
           [](OpIo& io, Options& o) {
             o.causal = true;
             o.kv_map = io.cx.upload(std::vector<int32_t>{3, 0, 3});
           }},
      {.name = "dropout",
       .set =
           [](OpIo&, Options& o) {
             o.causal = true;
             o.dropout = 0.25F;
             o.place = {Stack::decoder, 1};
           }},
  };
  for (const Looking& how : variants) all.push_back(looking_case(how));

  // Whole sequences: queries, keys and values are slices of one fused projection.
  const auto fused = [&](const char* name, int64_t rows_needed, std::function<Rows(OpIo&)> segments,
                         std::function<void(OpIo&, Options&)> set) {
    all.push_back({.name = named("attention", name),
                   .inputs = {rows("qkv", {(4 + 2 + 2) * 6})},
                   .run = [=](OpIo& io) -> Outputs {
                     const Tensor qkv = ops::split_heads(io["qkv"], 8);
                     Options options;
                     set(io, options);
                     return {ops::attention(io.cx, qkv.slice(1, 0, 4), qkv.slice(1, 4, 2), qkv.slice(1, 6, 2),
                                            segments(io), options)
                                 .z};
                   },
                   .row_wise = false,
                   .small_rows = rows_needed,
                   .bench_rows = rows_needed,
                   .bf16_roundings = 6});
  };
  const auto causal = [](OpIo&, Options& o) { o.causal = true; };
  fused(
      "batch", 8, [](OpIo& io) { return Rows::batch(io.cx, 2, 4); }, causal);
  fused(
      "packed_documents", 9,
      [](OpIo& io) {
        return Rows::ragged(io.cx, std::vector<int32_t>{4, 0, 3, 2});
      },
      causal);
  fused(
      "padded", 15,
      [](OpIo& io) {
        return Rows::padded(io.cx, std::vector<int32_t>{5, 0, 3}, 5);
      },
      [](OpIo&, Options&) {});
  fused(
      "mask", 8, [](OpIo& io) { return Rows::batch(io.cx, 2, 4); },
      [](OpIo& io, Options& o) { o.mask = mask_of(io, 2, 4, 4, 4); });
  fused(
      "mask_shared", 8, [](OpIo& io) { return Rows::batch(io.cx, 2, 4); },
      [](OpIo& io, Options& o) { o.mask = mask_of(io, 1, 1, 4, 4); });

  all.push_back({.name = "attention_cross",
                 .inputs = {rows("q", {2, 6}), fixed("k", {9, 2, 6}), fixed("v", {9, 2, 6})},
                 .run = [](OpIo& io) -> Outputs {
                   const Rows from = Rows::ragged(io.cx, std::vector<int32_t>{2, 3});
                   const Rows to = Rows::ragged(io.cx, std::vector<int32_t>{4, 5});
                   return {ops::attention(io.cx, io["q"], io["k"], io["v"], Rows::cross(io.cx, from, to), {}).z};
                 },
                 .row_wise = false,
                 .bench_rows = 5,
                 .bf16_roundings = 6});
}

void add_experts(Cases& all) {
  struct Choice {
    const char* name;
    RouteRule rule;
    bool corrected;
  };
  const Choice choices[] = {
      {"softmax", {.top_k = 2}, false},
      {"softmax_renormalised", {.top_k = 3, .renormalise = true}, false},
      {"sigmoid_groups",
       {.top_k = 3, .sigmoid = true, .renormalise = true, .scaling = 2.5, .groups = 4, .top_groups = 2},
       true},
  };
  for (const auto& [name, rule, corrected] : choices) {
    OpInput logits = rows("logits", {8});
    logits.exact = true;
    logits.deviation = 1.5;
    all.push_back({.name = named("route", name),
                   .inputs = {logits, weight("correction", {8})},
                   .run = [rule = rule, corrected = corrected](OpIo& io) -> Outputs {
                     return {
                         ops::route(io.cx, io["logits"], rule, corrected ? &io.weight("correction") : nullptr).weights};
                   }});
    // Router, grouped gated feed-forward and combination: no row is dropped, and a row's bits stay its own.
    all.push_back({.name = named("experts", name),
                   .inputs = {rows("x", {10}), weight("router", {8, 10}), weight("gate_up", {8, 12, 10}),
                              weight("down", {8, 10, 6}), weight("down_bias", {8, 10})},
                   .run = [rule = rule](OpIo& io) -> Outputs {
                     Context& cx = io.cx;
                     const Tensor scores = ops::linear(cx, io["x"], io.weight("router"), {.dtype = cx.precision.exact});
                     const ops::Routed routed = ops::route(cx, scores, rule);
                     const ops::Dispatch plan = ops::plan_dispatch(cx, routed.ids, 8);
                     const Tensor sorted = ops::dispatch(cx, io["x"], plan);
                     const Tensor both = ops::linear(cx, sorted, io.weight("gate_up"), {.groups = plan.groups});
                     const Tensor hidden = ops::gated(cx, both.slice(1, 0, 6), both.slice(1, 6, 6), ops::gate::swiglu);
                     const Tensor z = ops::linear(cx, hidden, io.weight("down"),
                                                  {.bias = &io.weight("down_bias"), .groups = plan.groups});
                     return {ops::combine(cx, z, routed.weights, plan)};
                   },
                   .bench_rows = 64,
                   .bf16_roundings = 24});
  }
  OpInput factors = rows("factors", {1});
  factors.exact = true;
  all.push_back({.name = "scale_rows", .inputs = {rows("x", {23}), factors}, .run = [](OpIo& io) -> Outputs {
                   return {ops::scale_rows(io.cx, io["x"], io["factors"])};
                 }});
  OpInput first = rows("first", {6}), second = rows("second", {6});
  first.exact = second.exact = true;
  all.push_back({.name = "balance_loss",
                 .inputs = {first, second},
                 .run = [](OpIo& io) -> Outputs {
                   std::vector<ops::RouterUse> layers;
                   for (const char* name : {"first", "second"}) {
                     layers.push_back({io[name], ops::route(io.cx, io[name], {.top_k = 2}).ids});
                   }
                   return {ops::balance_loss(io.cx, layers, 0.02)};
                 },
                 .row_wise = false});
}

void add_ends(Cases& all) {
  for (const auto& [name, kind] : {std::pair{"first", ops::Pooling::first}, std::pair{"last", ops::Pooling::last},
                                   std::pair{"mean", ops::Pooling::mean}}) {
    all.push_back({.name = named("pool", name),
                   .inputs = {rows("x", {7})},
                   .run = [kind = kind](OpIo& io) -> Outputs {
                     return {ops::pool(io.cx, io["x"], Rows::ragged(io.cx, std::vector<int32_t>{3, 0, 2}), kind)};
                   },
                   .row_wise = false,
                   .bench_rows = 5});
  }
  struct Head {
    const char* name;
    CrossEntropyRule rule;
    bool biased;
  };
  for (const auto& [name, rule, biased] :
       {Head{"plain", {}, false}, Head{"bias", {}, true}, Head{"smoothed", {.smoothing = 0.1}, false},
        Head{"z_loss", {.z_loss = 1e-2}, true}, Head{"soft_cap", {.softcap = 4}, false},
        Head{"all", {.smoothing = 0.2, .z_loss = 1e-3, .softcap = 5, .ignore = 3}, true}}) {
    all.push_back({.name = named("cross_entropy", name),
                   .inputs = {rows("x", {11}), ids("target", {}, 23), weight("w", {23, 11}), weight("b", {23})},
                   .run = [rule = rule, biased = biased](OpIo& io) -> Outputs {
                     return {
                         ops::cross_entropy(io.cx, io["x"], io.weight("w"), io["target"],
                                            {.bias = biased ? &io.weight("b") : nullptr, .rule = rule, .divisor = 7})
                             .loss};
                   },
                   .row_wise = false,
                   .bf16_roundings = 4});
  }
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const Cases cases = [] {
    Cases all;
    add_products(all);
    add_fused(all);
    add_lookups(all);
    add_elementwise(all);
    add_norms(all);
    add_rotary(all);
    add_attention(all);
    add_experts(all);
    add_ends(all);
    return all;
  }();
  return cases;
}

}  // namespace qkv::test
