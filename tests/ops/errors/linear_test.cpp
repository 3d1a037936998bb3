// Refusals of matrix products.
#include "ops/errors/refusals.h"

namespace qkv::test {
namespace errors_test {

REFUSES(Linear,  //
        {"other_width",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 4}));
         },
         {"linear", "[2, 3]", "'w'", "[5, 4]", "[5, 3]"}},
        {"other_bias",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.bias = &b.weight({4})});
         },
         {"linear", "[4]", "[5]"}},
        {"weight_of_one_axis",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({3}));
         },
         {"linear", "'w'", "[3]"}},
        {"indices",
         [](B& b) {
           ops::linear(b.cx, b.ids({2, 3}), b.weight({5, 3}));
         },
         {"linear", "i32 [2, 3]", "f32"}},
        {"weight_of_indices",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight_of(DType::i32, {5, 3}));
         },
         {"linear", "'w'", "i32"}},
        {"weight_of_blocks_under_a_tape",
         [](B& b) {
           b.tape();
           ops::linear(b.cx, b.floats({2, 32}), b.weight_of(Format(Block::q8_0), {5, 32}));
         },
         {"linear", "'w'", "q8_0", "backward"}},
        {"onto_another_shape",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.residual = {b.floats({2, 4})}});
         },
         {"linear", "residual", "[2, 4]", "[2, 5]"}},
        {"onto_indices",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.residual = {b.ids({2, 5})}});
         },
         {"linear", "residual", "i32 [2, 5]"}},
        {"onto_columns",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.residual = {b.columns({5, 2})}});
         },
         {"linear", "residual", "[2, 5]", "stride 2"}},
        {"onto_elsewhere",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.residual = {b.elsewhere({2, 5})}});
         },
         {"linear", "residual", "guarded", "cpu"}},
        {"in_place_under_a_tape",
         [](B& b) {
           b.tape();
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.residual = {b.floats({2, 5}), true}});
         },
         {"linear", "residual", "[2, 5]", "tape"}},
        {"in_place_of_nothing",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.residual = {{}, true}});
         },
         {"linear", "residual is missing"}},
        {"sum_in_place_of_another_shape",
         [](B& b) {
           ops::add_residual(b.cx, {b.floats({2, 3}), true}, b.floats({3, 2}));
         },
         {"add", "[2, 3]", "[3, 2]"}},
        {"quantize_into_plain",
         [](B& b) {
           ops::quantize(b.cx, b.weight({2, 32}), b.floats({2, 32}));
         },
         {"quantize", "'w'", "f32", "q8"}},
        {"quantize_into_gguf",
         [](B& b) {
           ops::quantize(b.cx, b.weight_of(Format(Block::q4_0), {2, 32}), b.floats({2, 32}));
         },
         {"quantize", "'w'", "q4_0", "q4"}},
        {"quantize_another_shape",
         [](B& b) {
           ops::quantize(b.cx, b.weight_of(Format(Block::q8, 32), {2, 32}), b.floats({2, 64}));
         },
         {"quantize", "[2, 32]", "[2, 64]"}},
        {"quantize_nan",
         [](B& b) {
           ops::quantize(b.cx, b.weight_of(Format(Block::q8, 32), {1, 32}), b.pass.input(Numbers(32, kNan), {1, 32}));
         },
         {"quantize", "32 of 32"}},
        {"dequantize_plain",
         [](B& b) {
           ops::dequantize(b.cx, b.weight({2, 32}), DType::f32);
         },
         {"dequantize", "'w'", "f32"}},
        {"dequantize_to_indices",
         [](B& b) {
           ops::dequantize(b.cx, b.weight_of(Format(Block::q8, 32), {2, 32}), DType::i32);
         },
         {"dequantize", "'w'", "i32"}},
        {"head_of_blocks",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({2, 32}), b.weight_of(Format(Block::q8_0), {5, 32}), b.ids({2}), {});
         },
         {"cross_entropy", "'w'", "q8_0"}},
        {"weight_elsewhere",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.far_weight({5, 3}));
         },
         {"linear", "'w'", "guarded", "cpu"}},
        {"output_of_indices",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.dtype = DType::i32});
         },
         {"linear", "i32"}},
        {"one_row_without_an_axis_for_it",
         [](B& b) {
           ops::linear(b.cx, b.floats({3}), b.weight({5, 3}));
         },
         {"linear", "f32 [3]"}},
        {"groups_without_experts",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({5, 3}), {.groups = b.groups({2})});
         },
         {"linear", "1 groups", "[5, 3]"}},
        {"too_few_groups",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({2, 5, 3}), {.groups = b.groups({2})});
         },
         {"linear", "[2, 3]", "[2, 5, 3]", "1 of 2 rows"}},
        {"groups_of_other_rows",
         [](B& b) {
           ops::linear(b.cx, b.floats({2, 3}), b.weight({2, 5, 3}), {.groups = b.groups({1, 8})});
         },
         {"linear", "[2, 3]", "2 of 9 rows"}},
        {"group_of_less_than_nothing",
         [](B& b) {
           b.groups({2, -1});
         },
         {"linear", "-1 rows", "after 2"}},
        {"batches_do_not_pair",
         [](B& b) {
           ops::linear(b.cx, b.floats({4, 2, 3}), b.weight({2, 5, 3}));
         },
         {"linear", "[4, 2, 3]", "[2, 5, 3]"}});

REFUSES(
    FeedForward,  //
    {"other_width",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}), {.up = {&b.weight({5, 4})}, .gate = {}, .down = {&b.weight({3, 5})}});
     },
     {"feed_forward", "[2, 3]", "[5, 4]", "[5, 3]"}},
    {"down_of_another_width",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}), {.up = {&b.weight({5, 3})}, .gate = {}, .down = {&b.weight({3, 6})}});
     },
     {"feed_forward", "[2, 5]", "[3, 6]", "[3, 5]"}},
    {"gate_of_another_width",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}),
                         {.up = {&b.weight({5, 3})}, .gate = {&b.weight({6, 3})}, .down = {&b.weight({3, 5})}});
     },
     {"feed_forward", "[6, 3]", "[5, 3]"}},
    {"other_bias",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}),
                         {.up = {&b.weight({5, 3}), &b.weight({4})}, .gate = {}, .down = {&b.weight({3, 5})}});
     },
     {"feed_forward", "[4]", "[5]"}},
    {"without_up",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}), {.up = {}, .gate = {}, .down = {&b.weight({3, 5})}});
     },
     {"feed_forward", "[2, 3]", "up is missing"}},
    {"without_down",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}), {.up = {&b.weight({5, 3})}, .gate = {}, .down = {}});
     },
     {"feed_forward", "[2, 3]", "down is missing"}},
    {"not_of_the_compute_dtype",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}, DType::bf16),
                         {.up = {&b.weight({5, 3})}, .gate = {}, .down = {&b.weight({3, 5})}});
     },
     {"feed_forward", "bf16 [2, 3]", "f32"}},
    {"output_of_indices",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}),
                         {.up = {&b.weight({5, 3})}, .gate = {}, .down = {&b.weight({3, 5})}, .out = DType::i32});
     },
     {"feed_forward", "[2, 3]", "i32"}},
    {"onto_another_shape",
     [](B& b) {
       ops::feed_forward(
           b.cx, b.floats({2, 3}),
           {.up = {&b.weight({5, 3})}, .gate = {}, .down = {&b.weight({3, 5})}, .residual = {b.floats({2, 4})}});
     },
     {"feed_forward", "residual", "[2, 4]", "[2, 3]"}},
    {"limit_below_zero",
     [](B& b) {
       ops::feed_forward(b.cx, b.floats({2, 3}),
                         {.up = {&b.weight({5, 3})},
                          .gate = {&b.weight({5, 3})},
                          .down = {&b.weight({3, 5})},
                          .form = {ops::act::silu, -1.0F}});
     },
     {"feed_forward", "limit", "-1"}},
    {"alpha_of_nothing",
     [](B& b) {
       ops::feed_forward(
           b.cx, b.floats({2, 3}),
           {.up = {&b.weight({5, 3})}, .gate = {}, .down = {&b.weight({3, 5})}, .form = {ops::act::softcap(0)}});
     },
     {"feed_forward", "alpha", "0"}},
    {"weight_of_blocks_under_a_tape",
     [](B& b) {
       b.tape();
       ops::feed_forward(
           b.cx, b.floats({2, 32}),
           {.up = {&b.weight({32, 32})}, .gate = {}, .down = {&b.weight_of(Format(Block::q8_0), {3, 32})}});
     },
     {"feed_forward", "'w'", "q8_0", "backward"}});

}  // namespace errors_test
}  // namespace qkv::test
