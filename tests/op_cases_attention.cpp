// Rows of the op table: rotary positions and attention in its variants.
#include <limits>

#include "op_case_parts.h"
#include "ops/ops.h"
#include "ops/positions.h"

namespace qkv::test::op_table {
namespace {

struct Turn {
  const char* name;
  int64_t width, first;
  bool interleaved;
  ops::RopeScaling scaling;
};

}  // namespace

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

namespace {

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

}  // namespace

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
      {.name = "dropout_wide_heads",
       .heads = 2,
       .kv_heads = 1,
       .width = 80,
       .value_width = 72,
       .keys = 130,
       .set = [](OpIo&, Options& o) { o.dropout = 0.1F; }},
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
      "packed_dropout", 9,
      [](OpIo& io) {
        return Rows::ragged(io.cx, std::vector<int32_t>{4, 0, 3, 2});
      },
      [](OpIo&, Options& o) {
        o.causal = true;
        o.dropout = 0.25F;
      });
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

}  // namespace qkv::test::op_table
