// Refusals of losses and of steps of the optimisers.
#include "ops/errors/refusals.h"

namespace qkv::test {
namespace errors_test {

REFUSES(Pool,  //
        {"other_rows",
         [](B& b) {
           ops::pool(b.cx, b.floats({3, 4}), b.rows(), ops::Pooling::mean);
         },
         {"pool", "[3, 4]", "3 rows", "2"}},
        {"indices",
         [](B& b) {
           ops::pool(b.cx, b.ids({2, 4}), b.rows(), ops::Pooling::mean);
         },
         {"pool", "i32 [2, 4]", "f32"}});

void loss(B& b, const ops::CrossEntropyOptions& options) {
  ops::cross_entropy(b.cx, b.floats({2, 3}), b.weight({5, 3}), b.ids({2}), options);
}

REFUSES(CrossEntropy,  //
        {"other_width",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({2, 3}), b.weight({5, 4}), b.ids({2}), {});
         },
         {"cross_entropy", "[2, 3]", "[5, 4]", "[5, 3]"}},
        {"other_rows",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({2, 3}), b.weight({5, 3}), b.ids({4}), {});
         },
         {"cross_entropy", "2 rows", "i32 [4]"}},
        {"target_past_the_vocabulary",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({2, 3}), b.weight({5, 3}), b.list({-100, 5}), {});
         },
         {"cross_entropy", "targets[1] is 5", "[0, 5)"}},
        {"negative_target",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({2, 3}), b.weight({5, 3}), b.list({0, -1}), {});
         },
         {"cross_entropy", "targets[1] is -1", "[0, 5)"}},
        {"targets_of_floats",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({2, 3}), b.weight({5, 3}), b.floats({2}), {});
         },
         {"cross_entropy", "targets", "f32 [2]", "i32"}},
        {"indices",
         [](B& b) {
           ops::cross_entropy(b.cx, b.ids({2, 3}), b.weight({5, 3}), b.ids({2}), {});
         },
         {"cross_entropy", "i32 [2, 3]"}},
        {"head_of_indices",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({2, 3}), b.weight_of(DType::i32, {5, 3}), b.ids({2}), {});
         },
         {"cross_entropy", "'w'", "i32"}},
        {"one_row_without_an_axis_for_it",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({3}), b.weight({5, 3}), b.ids({1}), {});
         },
         {"cross_entropy", "f32 [3]"}},
        {"head_of_one_axis",
         [](B& b) {
           ops::cross_entropy(b.cx, b.floats({2, 3}), b.weight({3}), b.ids({2}), {});
         },
         {"cross_entropy", "'w'", "[3]", "[V, C]"}},
        {"other_bias", [](B& b) { loss(b, {.bias = &b.weight({4})}); }, {"cross_entropy", "[4]", "[5]"}},
        {"negative_smoothing",
         [](B& b) { loss(b, {.rule = {.smoothing = -0.1}}); },
         {"cross_entropy", "smoothing", "-0.1"}},
        {"large_smoothing", [](B& b) { loss(b, {.rule = {.smoothing = 1.5}}); }, {"cross_entropy", "smoothing", "1.5"}},
        {"nan_z_loss", [](B& b) { loss(b, {.rule = {.z_loss = kNan}}); }, {"cross_entropy", "z_loss", "nan"}},
        {"negative_softcap", [](B& b) { loss(b, {.rule = {.softcap = -30}}); }, {"cross_entropy", "softcap", "-30"}},
        {"zero_divisor", [](B& b) { loss(b, {.divisor = 0}); }, {"cross_entropy", "divisor", "0"}},
        {"nan_divisor", [](B& b) { loss(b, {.divisor = kNan}); }, {"cross_entropy", "divisor", "nan"}});

void adamw(B& b, const ops::AdamW& rule, double factor = 1) {
  ops::AdamState state = b.adam({2, 3});
  ops::adamw_step(b.cx, b.trained({2, 3}), state, rule, factor);
}

REFUSES(AdamW,  //
        {"nan_lr", [](B& b) { adamw(b, {.lr = kNan}); }, {"adamw", "lr", "nan"}},
        {"negative_lr", [](B& b) { adamw(b, {.lr = -1}); }, {"adamw", "lr", "-1"}},
        {"huge_lr", [](B& b) { adamw(b, {.lr = 1e4}); }, {"adamw", "lr", "10000", "1000"}},
        {"beta1_of_one", [](B& b) { adamw(b, {.beta1 = 1}); }, {"adamw", "beta1", "1"}},
        {"negative_beta2", [](B& b) { adamw(b, {.beta2 = -0.5}); }, {"adamw", "beta2", "-0.5"}},
        {"zero_eps", [](B& b) { adamw(b, {.eps = 0}); }, {"adamw", "eps", "0"}},
        {"nan_decay", [](B& b) { adamw(b, {.decay = kNan}); }, {"adamw", "decay", "nan"}},
        {"infinite_factor", [](B& b) { adamw(b, {}, kInfinity); }, {"adamw", "gradient factor", "inf"}},
        {"no_gradient",
         [](B& b) {
           ops::AdamState state = b.adam({2, 3});
           ops::adamw_step(b.cx, b.weight({2, 3}), state, {});
         },
         {"adamw", "'w'", "[2, 3]", "no gradient"}},
        {"state_of_other_shape",
         [](B& b) {
           ops::AdamState state = b.adam({3, 2});
           ops::adamw_step(b.cx, b.trained({2, 3}), state, {});
         },
         {"adamw", "m is f32 [3, 2]", "[2, 3]"}},
        {"state_of_indices",
         [](B& b) {
           ops::AdamState state{.m = b.ids({2, 3}), .v = b.floats({2, 3})};
           ops::adamw_step(b.cx, b.trained({2, 3}), state, {});
         },
         {"adamw", "m is i32 [2, 3]", "f32"}},
        {"no_state",
         [](B& b) {
           ops::AdamState state;
           ops::adamw_step(b.cx, b.trained({2, 3}), state, {});
         },
         {"adamw", "'w'", "[2, 3]", "no m"}},
        {"weight_in_bf16",
         [](B& b) {
           ops::AdamState state = b.adam({2, 3});
           Param& w = b.weight_of(DType::bf16, {2, 3});
           std::ignore = w.use_gradient(DType::f32);
           ops::adamw_step(b.cx, w, state, {});
         },
         {"adamw", "'w'", "bf16", "f32"}});

void sgd(B& b, const ops::Sgd& rule, double factor = 1) {
  ops::sgd_step(b.cx, b.trained({2, 3}), b.floats({2, 3}), rule, factor);
}

REFUSES(Sgd,  //
        {"nan_lr", [](B& b) { sgd(b, {.lr = kNan}); }, {"sgd", "lr", "nan"}},
        {"negative_lr", [](B& b) { sgd(b, {.lr = -0.1}); }, {"sgd", "lr", "-0.1"}},
        {"momentum_of_one", [](B& b) { sgd(b, {.momentum = 1}); }, {"sgd", "momentum", "1"}},
        {"negative_decay", [](B& b) { sgd(b, {.decay = -1}); }, {"sgd", "decay", "-1"}},
        {"negative_factor", [](B& b) { sgd(b, {}, -1); }, {"sgd", "gradient factor", "-1"}},
        {"no_gradient",
         [](B& b) { ops::sgd_step(b.cx, b.weight({2}), b.floats({2}), {}); },
         {"sgd", "'w'", "no gradient"}},
        {"buffer_of_other_shape",
         [](B& b) {
           ops::sgd_step(b.cx, b.trained({2, 3}), b.floats({6}), {});
         },
         {"sgd", "buffer", "[6]", "[2, 3]"}},
        {"momentum_without_buffer",
         [](B& b) { ops::sgd_step(b.cx, b.trained({2}), {}, {.momentum = 0.9}); },
         {"sgd", "momentum", "0.9", "buffer"}});

void muon(B& b, const ops::Muon& rule, double factor = 1) {
  ops::muon_step(b.cx, b.trained({2, 3}), b.floats({2, 3}), rule, factor);
}

REFUSES(Muon,  //
        {"nan_lr", [](B& b) { muon(b, {.lr = kNan}); }, {"muon", "lr", "nan"}},
        {"negative_momentum", [](B& b) { muon(b, {.momentum = -0.5}); }, {"muon", "momentum", "-0.5"}},
        {"huge_decay", [](B& b) { muon(b, {.decay = 1e9}); }, {"muon", "decay", "1e+09"}},
        {"nan_factor", [](B& b) { muon(b, {}, kNan); }, {"muon", "gradient factor", "nan"}},
        {"a_vector", [](B& b) { ops::muon_step(b.cx, b.trained({3}), b.floats({3}), {}); }, {"muon", "'w'", "[3]"}},
        {"no_buffer",
         [](B& b) {
           ops::muon_step(b.cx, b.trained({2, 3}), {}, {});
         },
         {"muon", "'w'", "buffer"}},
        {"buffer_of_other_shape",
         [](B& b) {
           ops::muon_step(b.cx, b.trained({2, 3}), b.floats({3, 2}), {});
         },
         {"muon", "[3, 2]", "[2, 3]"}},
        {"buffer_of_indices",
         [](B& b) {
           ops::muon_step(b.cx, b.trained({2, 3}), b.ids({2, 3}), {});
         },
         {"muon", "buffer", "i32 [2, 3]"}});

void norm_of(B& b, double gradient) {
  const Param* params[] = {&b.trained({2, 3}, gradient)};
  ops::global_norm(b.cx, params);
}

REFUSES(Norm,  //
        {"nan_gradient", [](B& b) { norm_of(b, kNan); }, {"global_norm", "'w'", "[2, 3]", "nan"}},
        {"infinite_gradient", [](B& b) { norm_of(b, kInfinity); }, {"global_norm", "'w'", "[2, 3]", "inf"}},
        {"clip_of_nan", [](B&) { ops::clip_factor(kNan, 1); }, {"clip_factor", "norm", "nan"}},
        {"clip_to_nan", [](B&) { ops::clip_factor(1, kNan); }, {"clip_factor", "max_norm", "nan"}},
        {"clip_to_zero", [](B&) { ops::clip_factor(1, 0); }, {"clip_factor", "max_norm", "0"}},
        {"clip_of_negative", [](B&) { ops::clip_factor(-1, 1); }, {"clip_factor", "norm", "-1"}});

}  // namespace errors_test
}  // namespace qkv::test
