// Refusals of ops that go row by row: tables, caches, norms, activations.
#include "ops/dropout.h"
#include "ops/errors/refusals.h"

namespace qkv::test {
namespace errors_test {

REFUSES(
    Embedding,  //
    {"past_the_table",
     [](B& b) {
       ops::embedding(b.cx, {{.ids = b.list({0, 7, 1}), .table = &b.weight({7, 2})}});
     },
     {"embedding", "ids[1] is 7", "[0, 7)"}},
    {"negative_id",
     [](B& b) {
       ops::embedding(b.cx, {{.ids = b.list({-1}), .table = &b.weight({7, 2})}});
     },
     {"embedding", "ids[0] is -1", "[0, 7)"}},
    {"ids_of_floats",
     [](B& b) {
       ops::embedding(b.cx, {{.ids = b.floats({3}), .table = &b.weight({7, 2})}});
     },
     {"embedding", "f32 [3]", "i32"}},
    {"table_of_indices",
     [](B& b) {
       ops::embedding(b.cx, {{.ids = b.ids({3}), .table = &b.weight_of(DType::i32, {7, 2})}});
     },
     {"embedding", "'w'", "i32"}},
    {"other_width",
     [](B& b) {
       ops::embedding(
           b.cx, {{.ids = b.ids({3}), .table = &b.weight({7, 2})}, {.ids = b.ids({3}), .table = &b.weight({5, 4})}});
     },
     {"embedding", "[5, 4]", "[5, 2]"}},
    {"numbers_of_other_width",
     [](B& b) {
       ops::embedding(
           b.cx, {{.ids = b.ids({3}), .table = &b.weight({7, 2})}, {.ids = b.ids({3}), .numbers = b.floats({5, 4})}});
     },
     {"embedding", "2 columns", "4"}},
    {"past_the_numbers",
     [](B& b) {
       ops::embedding(b.cx, {{.ids = b.list({0, 5}), .numbers = b.floats({5, 4})}});
     },
     {"embedding", "ids[1] is 5", "[0, 5)"}},
    {"other_rows",
     [](B& b) {
       ops::embedding(
           b.cx, {{.ids = b.ids({3}), .table = &b.weight({7, 2})}, {.ids = b.ids({4}), .table = &b.weight({7, 2})}});
     },
     {"embedding", "[3]", "[4]"}},
    {"nan_factor",
     [](B& b) {
       ops::embedding(b.cx, {{.ids = b.ids({3}), .table = &b.weight({7, 2}), .factor = kNan}});
     },
     {"embedding", "factor", "nan"}},
    {"no_table", [](B& b) { ops::embedding(b.cx, {{.ids = b.ids({3}), .table = nullptr}}); }, {"embedding", "table"}},
    {"nothing", [](B& b) { ops::embedding(b.cx, {}); }, {"embedding", "nothing"}});

REFUSES(ScatterRows,  //
        {"past_the_cache",
         [](B& b) {
           ops::scatter_rows(b.cx, b.floats({4, 2, 3}), b.floats({2, 2, 3}), b.list({0, 4}));
         },
         {"scatter_rows", "slots[1] is 4", "[0, 4)"}},
        {"other_width",
         [](B& b) {
           ops::scatter_rows(b.cx, b.floats({4, 3}), b.floats({2, 5}), b.ids({2}));
         },
         {"scatter_rows", "[4, 3]", "[2, 5]"}},
        {"other_number_of_slots",
         [](B& b) {
           ops::scatter_rows(b.cx, b.floats({4, 3}), b.floats({2, 3}), b.ids({1}));
         },
         {"scatter_rows", "[2, 3]", "i32 [1]"}},
        {"slots_of_floats",
         [](B& b) {
           ops::scatter_rows(b.cx, b.floats({4, 3}), b.floats({2, 3}), b.floats({2}));
         },
         {"scatter_rows", "slots", "f32 [2]", "i32"}},
        {"rows_of_indices",
         [](B& b) {
           ops::scatter_rows(b.cx, b.floats({4, 3}), b.ids({2, 3}), b.ids({2}));
         },
         {"scatter_rows", "x is i32 [2, 3]"}},
        {"under_a_tape",
         [](B& b) {
           b.tape();
           ops::scatter_rows(b.cx, b.floats({4, 3}), b.floats({2, 3}), b.ids({2}));
         },
         {"scatter_rows", "[4, 3]", "[2, 3]", "tape"}},
        {"bytes_without_scales",
         [](B& b) {
           ops::scatter_rows(b.cx, b.bytes({4, 2, 3}), b.floats({2, 2, 3}), b.ids({2}));
         },
         {"scatter_rows", "cache is i8 [4, 2, 3]"}},
        {"scales_beside_floats",
         [](B& b) {
           ops::scatter_rows(b.cx, b.floats({4, 2, 3}), b.floats({2, 2, 3}), b.ids({2}), b.floats({4, 2}));
         },
         {"scatter_rows", "f32 [4, 2, 3]", "f32 [4, 2]", "i8"}},
        {"scales_of_other_rows",
         [](B& b) {
           ops::scatter_rows(b.cx, b.bytes({4, 2, 3}), b.floats({2, 2, 3}), b.ids({2}), b.floats({4, 3}));
         },
         {"scatter_rows", "i8 [4, 2, 3]", "f32 [4, 3]"}},
        {"scales_of_indices",
         [](B& b) {
           ops::scatter_rows(b.cx, b.bytes({4, 2, 3}), b.floats({2, 2, 3}), b.ids({2}), b.ids({4, 2}));
         },
         {"scatter_rows", "i8 [4, 2, 3]", "i32 [4, 2]"}});

REFUSES(LayerNorm,  //
        {"other_weight",
         [](B& b) {
           ops::layer_norm(b.cx, b.floats({2, 3}), {.weight = &b.weight({4})});
         },
         {"layer_norm", "[2, 3]", "[4]", "[3]"}},
        {"other_bias",
         [](B& b) {
           ops::layer_norm(b.cx, b.floats({2, 3}), {.bias = &b.weight({2})});
         },
         {"layer_norm", "[2, 3]", "[2]", "[3]"}},
        {"indices",
         [](B& b) {
           ops::layer_norm(b.cx, b.ids({2, 3}), {});
         },
         {"layer_norm", "i32 [2, 3]", "f32"}},
        {"negative_eps",
         [](B& b) {
           ops::layer_norm(b.cx, b.floats({2, 3}), {.eps = -1e-5});
         },
         {"layer_norm", "eps", "-1e-05"}},
        {"nan_eps",
         [](B& b) {
           ops::layer_norm(b.cx, b.floats({2, 3}), {.eps = kNan});
         },
         {"layer_norm", "eps", "nan"}},
        {"large_eps",
         [](B& b) {
           ops::layer_norm(b.cx, b.floats({2, 3}), {.eps = 2});
         },
         {"layer_norm", "eps", "2"}},
        {"offset",
         [](B& b) {
           ops::layer_norm(b.cx, b.floats({2, 3}), {.offset = 7});
         },
         {"layer_norm", "offset", "7"}},
        {"no_columns",
         [](B& b) {
           ops::layer_norm(b.cx, b.floats({2, 0}), {});
         },
         {"layer_norm", "[2, 0]"}});

REFUSES(RmsNorm,  //
        {"other_weight",
         [](B& b) {
           ops::rms_norm(b.cx, b.floats({2, 3}), {.weight = &b.weight({4})});
         },
         {"rms_norm", "[2, 3]", "[4]", "[3]"}},
        {"indices",
         [](B& b) {
           ops::rms_norm(b.cx, b.ids({2, 3}), {});
         },
         {"rms_norm", "i32 [2, 3]", "f32"}},
        {"weight_of_indices",
         [](B& b) {
           ops::rms_norm(b.cx, b.floats({2, 3}), {.weight = &b.weight_of(DType::i32, {3})});
         },
         {"rms_norm", "'w'", "i32"}},
        {"negative_eps",
         [](B& b) {
           ops::rms_norm(b.cx, b.floats({2, 3}), {.eps = -1});
         },
         {"rms_norm", "eps", "-1"}},
        {"nan_eps",
         [](B& b) {
           ops::rms_norm(b.cx, b.floats({2, 3}), {.eps = kNan});
         },
         {"rms_norm", "eps", "nan"}},
        {"nan_offset",
         [](B& b) {
           ops::rms_norm(b.cx, b.floats({2, 3}), {.offset = kNan});
         },
         {"rms_norm", "offset", "nan"}},
        {"large_offset",
         [](B& b) {
           ops::rms_norm(b.cx, b.floats({2, 3}), {.offset = 7});
         },
         {"rms_norm", "offset", "7"}},
        {"bias",
         [](B& b) {
           ops::rms_norm(b.cx, b.floats({2, 3}), {.bias = &b.weight({3})});
         },
         {"rms_norm", "bias", "[2, 3]"}},
        {"no_columns",
         [](B& b) {
           ops::rms_norm(b.cx, b.floats({2, 0}), {});
         },
         {"rms_norm", "[2, 0]"}});

REFUSES(Dropout,  //
        {"indices", [](B& b) { ops::dropout(b.cx, b.ids({2}), {.p = 0.5F}); }, {"dropout", "i32 [2]", "f32"}},
        {"another_stream",
         [](B& b) {
           b.cx.training = true;
           ops::add_residual(b.cx, {.x = b.floats({3, 3}), .dropout = ops::dropout_of(b.cx, {.p = 0.5F})},
                             b.floats({2, 3}));
         },
         {"dropout", "[2, 3]", "[3, 3]"}},
        {"nan", [](B& b) { ops::dropout(b.cx, b.floats({2}), {.p = kNanF}); }, {"dropout", "p is nan"}},
        {"negative", [](B& b) { ops::dropout(b.cx, b.floats({2}), {.p = -0.5F}); }, {"dropout", "p is -0.5"}},
        {"everything", [](B& b) { ops::dropout(b.cx, b.floats({2}), {.p = 1}); }, {"dropout", "p is 1", "0.999"}});

REFUSES(Activation,  //
        {"indices", [](B& b) { ops::activation(b.cx, b.ids({2}), ops::act::relu); }, {"activation", "i32 [2]", "f32"}},
        {"nan_alpha",
         [](B& b) { ops::activation(b.cx, b.floats({2}), ops::act::softcap(kNanF)); },
         {"activation", "alpha", "nan"}},
        {"zero_alpha",
         [](B& b) { ops::activation(b.cx, b.floats({2}), ops::act::softcap(0)); },
         {"activation", "alpha is 0"}},
        {"negative_alpha",
         [](B& b) { ops::activation(b.cx, b.floats({2}), ops::act::softcap(-3)); },
         {"activation", "alpha is -3"}});

REFUSES(Gated,  //
        {"other_shape",
         [](B& b) {
           ops::gated(b.cx, b.floats({2, 3}), b.floats({2, 4}), ops::gate::swiglu);
         },
         {"gated", "[2, 3]", "[2, 4]"}},
        {"indices",
         [](B& b) { ops::gated(b.cx, b.floats({2}), b.ids({2}), ops::gate::swiglu); },
         {"gated", "up is i32 [2]", "f32"}},
        {"negative_limit",
         [](B& b) { ops::gated(b.cx, b.floats({2}), b.floats({2}), {.act = ops::act::silu, .limit = -7}); },
         {"gated", "limit is -7"}},
        {"nan_shift",
         [](B& b) { ops::gated(b.cx, b.floats({2}), b.floats({2}), {.act = ops::act::silu, .shift = kNanF}); },
         {"gated", "shift is nan"}},
        {"zero_alpha",
         [](B& b) {
           ops::gated(b.cx, b.floats({2}), b.floats({2}), {.act = {Activation::Kind::silu, 0}});
         },
         {"gated", "alpha is 0"}});

}  // namespace errors_test
}  // namespace qkv::test
