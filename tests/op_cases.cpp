#include "op_cases.h"

#include "op_case_parts.h"
#include "ops/dropout.h"

namespace qkv::test {
namespace op_table {
namespace {

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
  all.push_back(
      {.name = "dropout_to_stream", .inputs = {rows("x", {37}), rows("stream", {37})}, .run = [](OpIo& io) -> Outputs {
         return {
             ops::add_residual(io.cx, {.x = io["stream"], .dropout = ops::dropout_of(io.cx, {.p = 0.3F})}, io["x"])};
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
}  // namespace op_table

const std::vector<OpCase>& op_cases() {
  static const op_table::Cases cases = [] {
    using namespace op_table;
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
