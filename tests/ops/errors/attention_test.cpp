// Refusals of attention and of what says where a token stands.
#include "ops/errors/refusals.h"
#include "ops/positions.h"

namespace qkv::test {
namespace errors_test {

REFUSES(Rotary,  //
        {"table_too_wide",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.ids({2}), {.cos = b.floats({8, 3}), .sin = b.floats({8, 3})});
         },
         {"rotary", "[2, 1, 4]", "[8, 3]", "6"}},
        {"columns_past_the_head",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.ids({2}),
                       {.cos = b.floats({8, 1}), .sin = b.floats({8, 1}), .first = 3});
         },
         {"rotary", "[2, 1, 4]", "2 columns from 3"}},
        {"first_is_negative",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.ids({2}),
                       {.cos = b.floats({8, 1}), .sin = b.floats({8, 1}), .first = -2});
         },
         {"rotary", "2 columns from -2"}},
        {"first_is_huge",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.ids({2}),
                       {.cos = b.floats({8, 1}), .sin = b.floats({8, 1}), .first = kMost});
         },
         {"rotary", "[2, 1, 4]", "[8, 1]"}},
        {"position_past_the_table",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.list({0, 8}), {.cos = b.floats({8, 2}), .sin = b.floats({8, 2})});
         },
         {"rotary", "positions[1] is 8", "[0, 8)"}},
        {"other_number_of_positions",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.ids({3}), {.cos = b.floats({8, 2}), .sin = b.floats({8, 2})});
         },
         {"rotary", "i32 [3]", "[2]"}},
        {"positions_of_floats",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.floats({2}), {.cos = b.floats({8, 2}), .sin = b.floats({8, 2})});
         },
         {"rotary", "positions", "f32 [2]", "i32"}},
        {"unlike_tables",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.ids({2}), {.cos = b.floats({8, 2}), .sin = b.floats({7, 2})});
         },
         {"rotary", "[8, 2]", "[7, 2]"}},
        {"table_of_indices",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 1, 4}), b.ids({2}), {.cos = b.ids({8, 2}), .sin = b.ids({8, 2})});
         },
         {"rotary", "cos is i32 [8, 2]"}},
        {"no_heads",
         [](B& b) {
           ops::rotary(b.cx, b.floats({2, 4}), b.ids({2}), {.cos = b.floats({8, 2}), .sin = b.floats({8, 2})});
         },
         {"rotary", "[2, 4]"}},
        {"indices",
         [](B& b) {
           ops::rotary(b.cx, b.ids({2, 1, 4}), b.ids({2}), {.cos = b.floats({8, 2}), .sin = b.floats({8, 2})});
         },
         {"rotary", "x is i32 [2, 1, 4]"}});

REFUSES(
    Attention,  //
    {"other_head_width",
     [](B& b) {
       ops::attention(b.cx, b.q(), b.floats({2, 2, 5}), b.q(), b.rows(), {});
     },
     {"attention", "[2, 2, 4]", "[2, 2, 5]"}},
    {"values_of_other_rows",
     [](B& b) {
       ops::attention(b.cx, b.q(), b.q(), b.floats({3, 2, 4}), b.rows(), {});
     },
     {"attention", "[2, 2, 4]", "[3, 2, 4]"}},
    {"queries_of_other_rows",
     [](B& b) {
       ops::attention(b.cx, b.floats({3, 2, 4}), b.q(), b.q(), b.rows(), {});
     },
     {"attention", "[3, 2, 4]", "2 rows"}},
    {"keys_of_other_rows",
     [](B& b) {
       ops::attention(b.cx, b.q(), b.floats({5, 2, 4}), b.floats({5, 2, 4}), b.rows(), {});
     },
     {"attention", "[5, 2, 4]", "2 keys"}},
    {"indices",
     [](B& b) {
       ops::attention(b.cx, b.q(), b.ids({2, 2, 4}), b.q(), b.rows(), {});
     },
     {"attention", "k is i32 [2, 2, 4]"}},
    {"missing", [](B& b) { ops::attention(b.cx, b.q(), b.q(), {}, b.rows(), {}); }, {"attention", "v is missing"}},
    {"heads_do_not_divide",
     [](B& b) {
       ops::attention(b.cx, b.floats({2, 3, 4}), b.q(), b.q(), b.rows(), {});
     },
     {"attention", "3", "2"}},
    {"map_past_the_heads",
     [](B& b) {
       b.attend({.kv_map = b.list({0, 2})});
     },
     {"attention", "kv_map[1] is 2", "[0, 2)"}},
    {"map_of_other_heads", [](B& b) { b.attend({.kv_map = b.ids({3})}); }, {"attention", "kv_map", "[3]", "[2]"}},
    {"map_of_floats", [](B& b) { b.attend({.kv_map = b.floats({2})}); }, {"attention", "kv_map", "f32 [2]", "i32"}},
    {"nan_scale", [](B& b) { b.attend({.scale = kNan}); }, {"attention", "scale", "nan"}},
    {"huge_scale", [](B& b) { b.attend({.scale = 1e31}); }, {"attention", "scale", "1e+31"}},
    {"negative_softcap", [](B& b) { b.attend({.softcap = -1}); }, {"attention", "softcap", "-1"}},
    {"nan_softcap", [](B& b) { b.attend({.softcap = kNan}); }, {"attention", "softcap", "nan"}},
    {"negative_window", [](B& b) { b.attend({.window = -1}); }, {"attention", "window", "-1"}},
    {"negative_chunk", [](B& b) { b.attend({.chunk = -1}); }, {"attention", "chunk", "-1"}},
    {"dropout_of_everything", [](B& b) { b.attend({.dropout = 1}); }, {"attention", "dropout", "1"}},
    {"nan_dropout", [](B& b) { b.attend({.dropout = kNanF}); }, {"attention", "dropout", "nan"}},
    {"sinks_of_other_heads", [](B& b) { b.attend({.sinks = &b.weight({3})}); }, {"attention", "[3]", "[2]"}},
    {"slopes_of_other_heads", [](B& b) { b.attend({.slopes = b.floats({3})}); }, {"attention", "slopes", "[3]", "[2]"}},
    {"slopes_of_indices", [](B& b) { b.attend({.slopes = b.ids({2})}); }, {"attention", "slopes", "i32 [2]"}},
    {"bias_without_buckets",
     [](B& b) {
       b.attend({.bias = &b.weight({2, 4})});
     },
     {"attention", "buckets"}},
    {"bias_of_other_heads",
     [](B& b) {
       b.attend({.bias = &b.weight({3, 4}), .buckets = b.ids({5})});
     },
     {"attention", "[3, 4]", "[2, 4]"}},
    {"bucket_past_the_bias",
     [](B& b) {
       b.attend({.bias = &b.weight({2, 4}), .buckets = b.ids({5}, 4)});
     },
     {"attention", "buckets[0] is 4", "[0, 4)"}},
    {"even_buckets",
     [](B& b) {
       b.attend({.bias = &b.weight({2, 4}), .buckets = b.ids({4})});
     },
     {"attention", "buckets", "i32 [4]", "2 R + 1"}},
    {"buckets_of_floats",
     [](B& b) {
       b.attend({.bias = &b.weight({2, 4}), .buckets = b.floats({5})});
     },
     {"attention", "buckets", "f32 [5]", "i32"}},
    {"mask_too_small",
     [](B& b) {
       b.attend({.mask = b.floats({1, 1, 2, 1})});
     },
     {"attention", "mask", "[1, 1, 2, 1]"}},
    {"mask_of_indices",
     [](B& b) {
       b.attend({.mask = b.ids({1, 1, 2, 2})});
     },
     {"attention", "mask", "i32"}},
    {"mask_of_other_heads",
     [](B& b) {
       b.attend({.mask = b.floats({1, 3, 2, 2})});
     },
     {"attention", "mask", "[1, 3, 2, 2]"}},
    {"importance_of_other_shape",
     [](B& b) {
       b.attend({.importance = b.floats({2, 3})});
     },
     {"attention", "importance", "[2, 3]", "[2, 2]"}},
    {"importance_of_indices",
     [](B& b) {
       b.attend({.importance = b.ids({2, 2})});
     },
     {"attention", "importance", "i32 [2, 2]"}},
    {"page_that_does_not_exist",
     [](B& b) {
       const Tensor pages = b.floats({3, 2, 2, 4});
       ops::attention(b.cx, b.q(), pages, pages, b.paged(), {.table = b.list({3}).view({1, 1})});
     },
     {"attention", "pages[0] is 3", "[0, 3)"}},
    {"page_of_the_second_segment",
     [](B& b) {
       const Tensor pages = b.floats({3, 2, 2, 4});
       const Rows rows = Rows::make(
           b.cx, {{.rows = 1, .keys = 2}, {.first_row = 1, .rows = 1, .keys = 3, .position = 2}}, 2, Rows::kPaged);
       ops::attention(b.cx, b.q(), pages, pages, rows, {.table = b.list({0, 9, 1, 7}).view({2, 2})});
     },
     {"attention", "segment 1", "pages[1] is 7", "[0, 3)"}},
    {"page_that_is_gone_but_seen",
     [](B& b) {
       const Tensor pages = b.floats({3, 2, 2, 4});
       ops::attention(b.cx, b.q(), pages, pages, b.paged(), {.table = b.list({-1}).view({1, 1})});
     },
     {"attention", "pages[0] is -1"}},
    {"bytes_without_scales",
     [](B& b) {
       const Tensor pages = b.bytes({3, 2, 2, 4});
       ops::attention(b.cx, b.q(), pages, pages, b.paged(), {.table = b.ids({1, 1})});
     },
     {"attention", "k is i8 [3, 2, 2, 4]", "scales"}},
    {"scales_of_other_pages",
     [](B& b) {
       const Tensor pages = b.bytes({3, 2, 2, 4}), right = b.floats({3, 2, 2}), wrong = b.floats({3, 2, 3});
       ops::attention(b.cx, b.q(), pages, pages, b.paged(),
                      {.table = b.ids({1, 1}), .k_scales = right, .v_scales = wrong});
     },
     {"attention", "v is i8 [3, 2, 2, 4]", "f32 [3, 2, 3]"}},
    {"scales_of_floats",
     [](B& b) {
       const Tensor pages = b.floats({3, 2, 2, 4});
       ops::attention(b.cx, b.q(), pages, pages, b.paged(), {.table = b.ids({1, 1}), .k_scales = b.floats({3, 2, 2})});
     },
     {"attention", "k is f32 [3, 2, 2, 4]", "f32 [3, 2, 2]", "i8"}},
    {"bytes_as_rows",
     [](B& b) {
       const Tensor k = b.bytes({2, 2, 4}), scales = b.floats({2, 2});
       ops::attention(b.cx, b.q(), k, k, b.rows(), {.k_scales = scales, .v_scales = scales});
     },
     {"attention", "k is i8 [2, 2, 4]", "pages"}},
    {"too_few_pages",
     [](B& b) {
       const Tensor pages = b.floats({3, 1, 2, 4});
       ops::attention(b.cx, b.q(), pages, pages, b.paged(), {.table = b.ids({1, 1})});
     },
     {"attention", "page table", "[1, 1]", "[3, 1, 2, 4]"}},
    {"table_of_floats",
     [](B& b) {
       const Tensor pages = b.floats({3, 2, 2, 4});
       ops::attention(b.cx, b.q(), pages, pages, b.paged(), {.table = b.floats({1, 1})});
     },
     {"attention", "table", "f32 [1, 1]", "i32"}},
    {"pages_under_a_tape",
     [](B& b) {
       b.tape();
       const Tensor pages = b.floats({3, 2, 2, 4});
       ops::attention(b.cx, b.q(), pages, pages, b.paged(), {.table = b.ids({1, 1})});
     },
     {"attention", "[3, 2, 2, 4]", "pages", "tape"}},
    {"pages_without_rows_of_pages",
     [](B& b) {
       const Tensor pages = b.floats({3, 2, 2, 4});
       ops::attention(b.cx, b.q(), pages, pages, b.rows(), {.table = b.ids({1, 1})});
     },
     {"attention", "page table", "[3, 2, 2, 4]"}},
    {"rows_of_pages_without_pages",
     [](B& b) {
       const Rows rows = Rows::make(b.cx, {{.rows = 2, .keys = 5}}, 2, Rows::kPaged);
       ops::attention(b.cx, b.q(), b.floats({0, 2, 4}), b.floats({0, 2, 4}), rows, {});
     },
     {"attention", "[0, 2, 4]", "5"}});

REFUSES(AttentionPattern,  //
        {"row_past_the_end",
         [](B& b) {
           ops::attention_pattern(b.cx, b.q(), b.q(), b.floats({2, 2}), b.rows(), {}, {.which = b.list({2})});
         },
         {"attention_pattern", "which[0] is 2", "[0, 2)"}},
        {"rows_of_floats",
         [](B& b) {
           ops::attention_pattern(b.cx, b.q(), b.q(), b.floats({2, 2}), b.rows(), {}, {.which = b.floats({1})});
         },
         {"attention_pattern", "which", "f32 [1]", "i32"}},
        {"lse_of_other_heads",
         [](B& b) {
           ops::attention_pattern(b.cx, b.q(), b.q(), b.floats({2, 3}), b.rows(), {});
         },
         {"attention_pattern", "lse", "[2, 3]", "[2, 2]"}},
        {"lse_of_indices",
         [](B& b) {
           ops::attention_pattern(b.cx, b.q(), b.q(), b.ids({2, 2}), b.rows(), {});
         },
         {"attention_pattern", "lse", "i32 [2, 2]"}},
        {"other_head_width",
         [](B& b) {
           ops::attention_pattern(b.cx, b.q(), b.floats({2, 2, 5}), b.floats({2, 2}), b.rows(), {});
         },
         {"attention", "[2, 2, 4]", "[2, 2, 5]"}});

REFUSES(AttentionSums,  //
        {"group_past_the_rows",
         [](B& b) {
           ops::stats_rows(b.cx, {.groups = {{.first_row = 1, .rows = 2}}, .weights = {{1, 1, 1}, {1, 1, 1}}});
         },
         {"attention_sums", "rows [1, 3)", "2 rows"}},
        {"labels_of_some_rows",
         [](B& b) {
           ops::stats_rows(b.cx, {.groups = {{.rows = 2}}, .weights = {{1, 1, 1}, {1, 1, 1}}, .wanted = {{1, 2}}});
         },
         {"attention_sums", "1 rows", "2"}},
        {"weights_of_other_rows",
         [](B& b) {
           const StatsRows rows = ops::stats_rows(b.cx, {.groups = {{.rows = 1}}, .weights = {{1, 1, 1}}});
           ops::attention_sums(b.cx, {.entropy = b.floats({2, 2})}, rows, b.floats({1, 2, 3}, DType::f64));
         },
         {"attention_sums", "weights", "[1, 3]", "[2, 3]"}},
        {"sums_of_f32",
         [](B& b) {
           const StatsRows rows = ops::stats_rows(b.cx, {.groups = {{.rows = 1}}, .weights = {{1, 1, 1}}});
           ops::attention_sums(b.cx, {.entropy = b.floats({1, 2})}, rows, b.floats({1, 2, 3}));
         },
         {"attention_sums", "y is f32 [1, 2, 3]", "f64"}});

using RopeKind = ops::RopeScaling::Kind;

REFUSES(
    Positions,  //
    {"odd_rope", [](B&) { ops::rope_table(10000, 5, 4); }, {"rope_table", "5"}},
    {"negative_rope_positions", [](B&) { ops::rope_table(10000, 4, -1); }, {"rope_table", "-1"}},
    {"nan_base", [](B&) { ops::rope_table(kNan, 4, 4); }, {"rope_table", "base", "nan"}},
    {"zero_rope_factor",
     [](B&) { ops::rope_table(10000, 4, 4, {.kind = RopeKind::linear, .factor = 0}); },
     {"rope_table", "factor", "0"}},
    {"llama3_without_context",
     [](B&) { ops::rope_table(10000, 4, 4, {.kind = RopeKind::llama3, .factor = 8}); },
     {"rope_table", "original context", "0"}},
    {"llama3_frequencies_in_disorder",
     [](B&) {
       ops::rope_table(10000, 4, 4,
                       {.kind = RopeKind::llama3, .factor = 8, .original_context = 8, .low_freq = 4, .high_freq = 1});
     },
     {"rope_table", "4", "1"}},
    {"longrope_without_factors",
     [](B&) { ops::rope_table(10000, 4, 4, {.kind = RopeKind::longrope, .original_context = 4}); },
     {"rope_table", "0 short", "2 pairs"}},
    {"odd_sinusoid", [](B&) { ops::sinusoidal_positions(4, 3, ops::Sinusoid::halves); }, {"sinusoidal_positions", "3"}},
    {"no_alibi_heads", [](B&) { ops::alibi_slopes(0); }, {"alibi_slopes", "0"}},
    {"no_room_for_buckets", [](B&) { ops::relative_buckets(32, 8, true); }, {"relative_buckets", "32", "8"}});

// A window so large that it covers everything is no window, or an Error; it must not overflow into one that hides all.
TEST(Windows, AsLargeAsAnIntegerHoldsDoNotHideAnything) {
  Bench b;
  const Tensor q = b.q();
  const Tensor all = ops::attention(b.cx, q, q, q, b.rows(), {}).z;
  for (const int64_t window : {int64_t{2}, (int64_t{1} << 31) - 1, int64_t{1} << 62, kMost}) {
    Tensor z;
    if (error_of([&] { z = ops::attention(b.cx, q, q, q, b.rows(), {.window = window}).z; })) continue;
    EXPECT_EQ(to_host(z), to_host(all)) << window;
  }
}

}  // namespace errors_test
}  // namespace qkv::test
