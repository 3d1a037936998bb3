// The error of every op for invalid arguments, and that inputs without rows are valid.
#include <gtest/gtest.h>

#include <limits>

#include "base/expect_error.h"
#include "ops/ops.h"
#include "ops/optim.h"
#include "ops/positions.h"
#include "support/guarded_device.h"
#include "support/pass.h"

namespace qkv::test {
namespace errors_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr auto kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// A pass and things to give to ops.
struct Bench {
  Pass pass;
  Context& cx = pass.cx;

  Tensor floats(const Shape& shape, DType dtype = DType::f32) {
    return pass.input(normals(1, shape.count()), shape, dtype);
  }
  Tensor bytes(const Shape& shape) { return pass.zeros(shape, DType::i8); }
  Tensor ids(const Shape& shape, int32_t value = 0) {
    return pass.indices(std::vector<int32_t>(static_cast<size_t>(shape.count()), value), shape);
  }
  Tensor list(const std::vector<int32_t>& values) { return cx.upload(values); }
  ops::RowGroups groups(const std::vector<int32_t>& sizes) { return ops::RowGroups::of_sizes(cx, sizes); }
  Tensor columns(const Shape& shape) { return floats(shape).transposed(-1, -2); }  // the last axis is not contiguous
  Tensor elsewhere(const Shape& shape, DType dtype = DType::f32) {
    return stores_.emplace_back(far_, dtype, shape.count()), Tensor(stores_.back(), shape);
  }
  Param& weight(const Shape& shape) { return pass.param("w", normals(2, shape.count()), shape); }
  Param& weight_of(Format format, const Shape& shape) { return params_.emplace_back("w", cpu_device(), format, shape); }
  Param& far_weight(const Shape& shape) { return params_.emplace_back("w", far_, DType::f32, shape); }
  Param& trained(const Shape& shape, double gradient = 1) {
    Param& w = weight(shape);
    to_device(w.use_gradient(DType::f32).tensor, Numbers(static_cast<size_t>(shape.count()), gradient));
    return w;
  }
  ops::AdamState adam(const Shape& shape) {
    return {.m = pass.zeros(shape, DType::f32), .v = pass.zeros(shape, DType::f32)};
  }
  void tape() { cx.tape = &pass.tape; }

  // 2 rows with 2 heads of 4 on 2 keys with 2 heads.
  Rows rows() { return Rows::batch(cx, 1, 2); }
  Rows paged() { return Rows::make(cx, {{.rows = 2, .keys = 2}}, 2, Rows::kPaged); }
  Tensor q() { return floats({2, 2, 4}); }
  void attend(const ops::AttentionOptions& options) { ops::attention(cx, q(), q(), q(), rows(), options); }
  ops::Dispatch plan() { return ops::plan_dispatch(cx, ids({3, 2}), 4); }

 private:
  GuardedDevice far_;
  std::deque<Storage> stores_;
  std::deque<Param> params_;
};

// Plain pointers: hundreds of rows of strings and std::functions take minutes to compile under the sanitizers.
struct Mistake {
  const char* name;
  void (*call)(Bench&);
  const char* parts[6];  // of the message
  friend void PrintTo(const Mistake& one, std::ostream* out) { *out << one.name; }
};

class Refuses : public ::testing::TestWithParam<Mistake> {};

TEST_P(Refuses, WithOpValuesAndHint) {
  Bench bench;
  const std::optional<Error> error = error_of([&] { GetParam().call(bench); });
  ASSERT_TRUE(error.has_value()) << "no Error was thrown";
  EXPECT_EQ(error->kind(), Error::Kind::input) << error->what();
  EXPECT_FALSE(error->hint().empty()) << "no hint: " << error->message();
  for (const char* part : GetParam().parts) {
    if (part == nullptr) break;
    EXPECT_NE(error->message().find(part), std::string::npos) << "'" << part << "' is not in: " << error->message();
  }
}

std::string name_of_case(const ::testing::TestParamInfo<Mistake>& one) {
  return one.param.name;
}

#define REFUSES(suite, ...) \
  INSTANTIATE_TEST_SUITE_P(suite, Refuses, ::testing::ValuesIn(std::vector<Mistake>{__VA_ARGS__}), name_of_case)

using B = Bench;

REFUSES(Add,  //
        {"other_shape",
         [](B& b) {
           ops::add(b.cx, b.floats({2, 3}), b.floats({3, 2}));
         },
         {"add", "[2, 3]", "[3, 2]"}},
        {"indices", [](B& b) { ops::add(b.cx, b.ids({2}), b.floats({2})); }, {"add", "a is i32 [2]", "f32"}},
        {"indices_second", [](B& b) { ops::add(b.cx, b.floats({2}), b.ids({2})); }, {"add", "b is i32 [2]", "f32"}},
        {"missing", [](B& b) { ops::add(b.cx, b.floats({2}), {}); }, {"add", "b is missing"}},
        {"other_device", [](B& b) { ops::add(b.cx, b.floats({2}), b.elsewhere({2})); }, {"add", "guarded", "cpu"}},
        {"strided",
         [](B& b) {
           ops::add(b.cx, b.columns({2, 3}), b.floats({3, 2}));
         },
         {"add", "[3, 2]", "stride 3"}});

REFUSES(Scale,  //
        {"indices", [](B& b) { ops::scale(b.cx, b.ids({2}), 2); }, {"scale", "i32 [2]", "f32"}},
        {"nan", [](B& b) { ops::scale(b.cx, b.floats({2}), kNan); }, {"scale", "factor", "nan"}},
        {"infinite", [](B& b) { ops::scale(b.cx, b.floats({2}), -kInfinity); }, {"scale", "factor", "-inf"}},
        {"huge", [](B& b) { ops::scale(b.cx, b.floats({2}), 1e31); }, {"scale", "factor", "1e+31", "1e+30"}},
        {"single_number", [](B& b) { ops::scale(b.cx, b.floats({1}).view({}), 2); }, {"scale", "x"}});

REFUSES(Cast,  //
        {"indices", [](B& b) { ops::cast(b.cx, b.ids({2}), DType::f32); }, {"cast", "i32 [2]", "f32"}},
        {"to_indices", [](B& b) { ops::cast(b.cx, b.floats({2}), DType::i32); }, {"cast", "f32 [2]", "i32"}},
        {"missing", [](B& b) { ops::cast(b.cx, {}, DType::f32); }, {"cast", "x is missing"}},
        {"other_device", [](B& b) { ops::cast(b.cx, b.elsewhere({2}), DType::f64); }, {"cast", "guarded", "cpu"}});

REFUSES(Concat,  //
        {"other_rows",
         [](B& b) {
           ops::concat(b.cx, b.floats({2, 3, 4}), b.floats({3, 3, 4}));
         },
         {"concat", "[2, 3, 4]", "[3, 3, 4]"}},
        {"other_heads",
         [](B& b) {
           ops::concat(b.cx, b.floats({2, 3, 4}), b.floats({2, 2, 4}));
         },
         {"concat", "[2, 3, 4]", "[2, 2, 4]"}},
        {"other_rank",
         [](B& b) {
           ops::concat(b.cx, b.floats({2, 3}), b.floats({2, 3}));
         },
         {"concat", "f32 [2, 3]"}},
        {"other_dtype",
         [](B& b) {
           ops::concat(b.cx, b.floats({2, 3, 4}), b.floats({2, 3, 4}, DType::f64));
         },
         {"concat", "f32", "f64"}},
        {"indices",
         [](B& b) {
           ops::concat(b.cx, b.floats({2, 3, 4}), b.ids({2, 3, 4}));
         },
         {"concat", "b is i32"}});

REFUSES(Softmax,  //
        {"indices", [](B& b) { ops::softmax(b.cx, b.ids({2})); }, {"softmax", "i32 [2]", "f32"}},
        {"strided",
         [](B& b) {
           ops::softmax(b.cx, b.columns({2, 3}));
         },
         {"softmax", "[3, 2]", "stride 3"}});

REFUSES(Heads,  //
        {"do_not_divide",
         [](B& b) {
           ops::split_heads(b.floats({2, 6}), 4);
         },
         {"split_heads", "[2, 6]", "4"}},
        {"none",
         [](B& b) {
           ops::split_heads(b.floats({2, 6}), 0);
         },
         {"split_heads", "[2, 6]", "0"}},
        {"negative",
         [](B& b) {
           ops::split_heads(b.floats({2, 6}), -2);
         },
         {"split_heads", "[2, 6]", "-2"}},
        {"merge_of_one_axis", [](B& b) { ops::merge_heads(b.floats({6})); }, {"merge_heads", "[6]"}},
        {"merge_with_gaps",
         [](B& b) {
           ops::merge_heads(b.floats({2, 3, 4}).slice(2, 0, 2));
         },
         {"merge_heads", "[2, 3, 2]"}});

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

REFUSES(Route,  //
        {"too_many",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.top_k = 5});
         },
         {"route", "top_k is 5", "[3, 4]"}},
        {"none",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.top_k = 0});
         },
         {"route", "top_k is 0", "[3, 4]"}},
        {"groups_do_not_divide",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.groups = 3});
         },
         {"route", "3 groups", "[3, 4]"}},
        {"no_groups",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.groups = 0});
         },
         {"route", "0 groups", "[3, 4]"}},
        {"more_than_the_kept_groups_have",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.top_k = 3, .groups = 2, .top_groups = 1});
         },
         {"route", "top_k is 3", "2"}},
        {"nan_scaling",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.scaling = kNan});
         },
         {"route", "scaling", "nan"}},
        {"negative_scaling",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {.scaling = -1});
         },
         {"route", "scaling", "-1"}},
        {"indices",
         [](B& b) {
           ops::route(b.cx, b.ids({3, 4}), {});
         },
         {"route", "i32 [3, 4]", "f32"}},
        {"other_rank", [](B& b) { ops::route(b.cx, b.floats({4}), {}); }, {"route", "f32 [4]", "[N, E]"}},
        {"other_correction",
         [](B& b) {
           ops::route(b.cx, b.floats({3, 4}), {}, &b.weight({5}));
         },
         {"route", "[3, 4]", "[5]", "[4]"}});

REFUSES(Dispatch,  //
        {"expert_that_does_not_exist",
         [](B& b) {
           ops::plan_dispatch(b.cx, b.ids({3, 2}, 4), 4);
         },
         {"dispatch", "ids[0] is 4", "[0, 4)"}},
        {"ids_of_floats",
         [](B& b) {
           ops::plan_dispatch(b.cx, b.floats({3, 2}), 4);
         },
         {"dispatch", "f32 [3, 2]", "i32"}},
        {"ids_of_one_axis", [](B& b) { ops::plan_dispatch(b.cx, b.ids({3}), 4); }, {"dispatch", "i32 [3]", "[N, k]"}},
        {"no_experts",
         [](B& b) {
           ops::plan_dispatch(b.cx, b.ids({3, 2}), 0);
         },
         {"dispatch", "[3, 2]", "0 experts"}},
        {"rows_of_another_plan",
         [](B& b) {
           ops::dispatch(b.cx, b.floats({5, 4}), b.plan());
         },
         {"dispatch", "[5, 4]", "3 rows"}},
        {"indices",
         [](B& b) {
           ops::dispatch(b.cx, b.ids({3, 4}), b.plan());
         },
         {"dispatch", "i32 [3, 4]", "f32"}},
        {"scale_rows_by_other_rows",
         [](B& b) {
           ops::scale_rows(b.cx, b.floats({5, 4}), b.floats({4, 1}));
         },
         {"scale_rows", "[4, 1]", "[5, 1]"}},
        {"scale_rows_of_heads",
         [](B& b) {
           ops::scale_rows(b.cx, b.floats({5, 2, 4}), b.floats({5, 1}));
         },
         {"scale_rows", "[5, 2, 4]", "[N, C]"}},
        {"combine_rows_of_another_plan",
         [](B& b) {
           ops::combine(b.cx, b.floats({5, 4}), b.floats({3, 2}), b.plan());
         },
         {"combine", "[5, 4]", "[3, 2]"}},
        {"combine_weights_of_another_plan",
         [](B& b) {
           ops::combine(b.cx, b.floats({6, 4}), b.floats({3, 1}), b.plan());
         },
         {"combine", "[6, 4]", "[3, 1]", "[3, 2]"}},
        {"combine_weights_of_indices",
         [](B& b) {
           ops::combine(b.cx, b.floats({6, 4}), b.ids({3, 2}), b.plan());
         },
         {"combine", "weights is i32 [3, 2]"}},
        {"combine_indices",
         [](B& b) {
           ops::combine(b.cx, b.ids({6, 4}), b.floats({3, 2}), b.plan());
         },
         {"combine", "z is i32 [6, 4]"}});

void balance(B& b, const ops::RouterUse& use, double coefficient = 1) {
  const std::vector<ops::RouterUse> layers{use};
  ops::balance_loss(b.cx, layers, coefficient);
}

REFUSES(
    BalanceLoss,  //
    {"nothing", [](B& b) { ops::balance_loss(b.cx, {}, 1); }, {"balance_loss", "no layers"}},
    {"negative",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.ids({3, 2})}, -1);
     },
     {"balance_loss", "coefficient", "-1"}},
    {"nan",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.ids({3, 2})}, kNan);
     },
     {"balance_loss", "coefficient", "nan"}},
    {"other_rows",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.ids({2, 2})});
     },
     {"balance_loss", "[3, 4]", "[2, 2]"}},
    {"expert_that_does_not_exist",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.ids({3, 2}, 4)});
     },
     {"balance_loss", "ids[0] is 4", "[0, 4)"}},
    {"logits_of_indices",
     [](B& b) {
       balance(b, {b.ids({3, 4}), b.ids({3, 2})});
     },
     {"balance_loss", "i32 [3, 4]"}},
    {"ids_of_floats",
     [](B& b) {
       balance(b, {b.floats({3, 4}), b.floats({3, 2})});
     },
     {"balance_loss", "f32 [3, 2]"}},
    {"no_rows",
     [](B& b) {
       balance(b, {b.floats({0, 4}), b.ids({0, 2})});
     },
     {"balance_loss", "no rows"}},
    {"layers_of_other_experts",
     [](B& b) {
       const std::vector<ops::RouterUse> layers{{b.floats({3, 4}), b.ids({3, 2})}, {b.floats({3, 5}), b.ids({3, 2})}};
       ops::balance_loss(b.cx, layers, 1);
     },
     {"balance_loss", "[3, 5]", "4"}});

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

// Errors in the middle of a pass leave the context usable.
TEST(AfterAnError, ThePassGoesOn) {
  Bench b;
  b.tape();
  const Tensor x = b.floats({2, 3});
  EXPECT_THROW(ops::linear(b.cx, x, b.weight({5, 4})), Error);
  const Tensor y = ops::scale(b.cx, x, 2);
  const Tensor dy = b.pass.zeros({2, 3}, DType::f32);
  to_device(dy, Numbers{1, 2, 3, 4, 5, 6});
  b.pass.tape.seed(b.cx, y, dy);
  b.pass.tape.backward(b.cx);
  EXPECT_EQ(to_host(b.pass.tape.gradient(x)), Numbers({2, 4, 6, 8, 10, 12}));
}

// --- no rows ---------------------------------------------------------------------------------------------------------

struct Empty {
  const char* name;
  Tensor (*call)(Bench&);  // the output
  Shape shape;             // that it must have
  friend void PrintTo(const Empty& one, std::ostream* out) { *out << one.name; }
};

class NoRows : public ::testing::TestWithParam<Empty> {};

// Forward and backward; a weight that was used but saw no row gets a gradient of zeros, not of what lay in memory.
TEST_P(NoRows, GoThrough) {
  Bench b;
  b.cx.training = true;
  b.tape();
  const Tensor y = GetParam().call(b);
  EXPECT_EQ(y.shape(), GetParam().shape);
  EXPECT_EQ(y.count(), 0);
  if (y.node() < 0) return;
  b.pass.tape.seed(b.cx, y, b.pass.zeros(y.shape(), y.dtype()));
  b.pass.tape.backward(b.cx);
}

INSTANTIATE_TEST_SUITE_P(
    Of, NoRows,
    ::testing::ValuesIn(std::vector<Empty>{
        {"add",
         [](B& b) {
           return ops::add(b.cx, b.floats({0, 3}), b.floats({0, 3}));
         },
         {0, 3}},
        {"scale",
         [](B& b) {
           return ops::scale(b.cx, b.floats({0, 3}), 2);
         },
         {0, 3}},
        {"cast",
         [](B& b) {
           return ops::cast(b.cx, b.floats({0, 3}), DType::f64);
         },
         {0, 3}},
        {"concat",
         [](B& b) {
           return ops::concat(b.cx, b.floats({0, 2, 3}), b.floats({0, 1, 2}));
         },
         {0, 2, 5}},
        {"softmax",
         [](B& b) {
           return ops::softmax(b.cx, b.floats({0, 3}));
         },
         {0, 3}},
        {"softmax_of_no_columns",
         [](B& b) {
           return ops::softmax(b.cx, b.floats({3, 0}));
         },
         {3, 0}},
        {"heads",
         [](B& b) {
           return ops::merge_heads(ops::split_heads(b.floats({0, 6}), 2));
         },
         {0, 6}},
        {"linear",
         [](B& b) {
           return ops::linear(b.cx, b.floats({0, 3}), b.weight({2, 3}));
         },
         {0, 2}},
        {"linear_of_experts",
         [](B& b) {
           return ops::linear(b.cx, b.floats({0, 3}), b.weight({2, 2, 3}), {.groups = b.groups({0, 0})});
         },
         {0, 2}},
        {"feed_forward",
         [](B& b) {
           return ops::feed_forward(b.cx, b.floats({0, 3}),
                                    {.up = {&b.weight({2, 3})}, .gate = {}, .down = {&b.weight({4, 2})}});
         },
         {0, 4}},
        {"linear_of_batches",
         [](B& b) {
           return ops::linear(b.cx, b.floats({2, 0, 3}), b.weight({2, 4, 3}));
         },
         {2, 0, 4}},
        {"embedding",
         [](B& b) {
           return ops::embedding(b.cx, {{.ids = b.ids({0}), .table = &b.weight({5, 3})}});
         },
         {0, 3}},
        {"layer_norm",
         [](B& b) {
           return ops::layer_norm(b.cx, b.floats({0, 3}), {.weight = &b.weight({3})});
         },
         {0, 3}},
        {"rms_norm",
         [](B& b) {
           return ops::rms_norm(b.cx, b.floats({0, 3}), {.weight = &b.weight({3})});
         },
         {0, 3}},
        {"dropout",
         [](B& b) {
           return ops::dropout(b.cx, b.floats({0, 3}), {.p = 0.5F});
         },
         {0, 3}},
        {"activation",
         [](B& b) {
           return ops::activation(b.cx, b.floats({0, 3}), ops::act::silu);
         },
         {0, 3}},
        {"gated",
         [](B& b) {
           return ops::gated(b.cx, b.floats({0, 3}), b.floats({0, 3}), ops::gate::swiglu);
         },
         {0, 3}},
        {"rotary",
         [](B& b) {
           return ops::rotary(b.cx, b.floats({0, 2, 4}), b.ids({0}),
                              {.cos = b.floats({8, 2}), .sin = b.floats({8, 2})});
         },
         {0, 2, 4}},
        {"attention",
         [](B& b) {
           const Tensor q = b.floats({0, 2, 4});
           return ops::attention(b.cx, q, q, q, Rows::batch(b.cx, 0, 4), {}).z;
         },
         {0, 2, 4}},
        {"attention_of_empty_sequences",
         [](B& b) {
           const Tensor q = b.floats({0, 2, 4});
           return ops::attention(b.cx, q, q, q, Rows::batch(b.cx, 3, 0), {.causal = true}).z;
         },
         {0, 2, 4}},
        {"attention_pattern",
         [](B& b) {
           const Tensor q = b.floats({0, 2, 4});
           return ops::attention_pattern(b.cx, q, q, b.floats({0, 2}), Rows::batch(b.cx, 0, 4), {});
         },
         {0, 2, 0}},
        {"route",
         [](B& b) {
           return ops::route(b.cx, b.floats({0, 4}), {.top_k = 2}).weights;
         },
         {0, 2}},
        {"dispatch",
         [](B& b) {
           return ops::dispatch(b.cx, b.floats({0, 3}), ops::plan_dispatch(b.cx, b.ids({0, 2}), 4));
         },
         {0, 3}},
        {"combine",
         [](B& b) {
           return ops::combine(b.cx, b.floats({0, 3}), b.floats({0, 2}), ops::plan_dispatch(b.cx, b.ids({0, 2}), 4));
         },
         {0, 3}},
        {"pool",
         [](B& b) {
           return ops::pool(b.cx, b.floats({0, 3}), Rows::batch(b.cx, 0, 4), ops::Pooling::mean);
         },
         {0, 3}},
        {"cross_entropy",
         [](B& b) {
           return ops::cross_entropy(b.cx, b.floats({0, 3}), b.weight({5, 3}), b.ids({0}), {}).losses;
         },
         {0}},
    }),
    [](const auto& one) { return one.param.name; });

TEST(NoRowsAtAll, ScatterNothing) {
  Bench b;
  const Tensor cache = b.floats({2, 3});
  const Numbers before = to_host(cache);
  ops::scatter_rows(b.cx, cache, b.floats({0, 3}), b.ids({0}));
  EXPECT_EQ(to_host(cache), before);
}

TEST(NoRowsAtAll, LoseNothing) {
  Bench b;
  b.tape();
  Param& head = b.weight({5, 3});
  const ops::Loss loss = ops::cross_entropy(b.cx, b.floats({0, 3}), head, b.ids({0}), {});
  EXPECT_EQ(to_host(loss.loss), Numbers({0}));
  b.pass.tape.backward(b.cx, loss.loss);
  EXPECT_EQ(to_host(head.gradient()), Numbers(15, 0.0));
}

TEST(NoRowsAtAll, OfEmptySequencesPoolToZeros) {
  Bench b;
  for (const auto kind : {ops::Pooling::first, ops::Pooling::last, ops::Pooling::mean}) {
    const Tensor y = ops::pool(b.cx, b.floats({0, 2}), Rows::batch(b.cx, 3, 0), kind);
    EXPECT_EQ(to_host(y), Numbers(6, 0.0));
  }
}

TEST(NoRowsAtAll, LeaveWeightsWithGradientsOfZero) {
  Bench b;
  b.tape();
  Param &w = b.weight({2, 3}), &bias = b.weight({2}), &table = b.weight({4, 3}), &gain = b.weight({3}),
        &shift = b.weight({3}), &sinks = b.weight({2}), &experts = b.weight({2, 2, 2});
  for (const Param* p : {&w, &bias, &table, &gain, &shift, &sinks, &experts}) {
    const Grad g = p->use_gradient(DType::f32);  // memory with something in it
    to_device(g.tensor, Numbers(static_cast<size_t>(g.tensor.count()), 7.0));
  }
  for (Param* p : {&w, &bias, &table, &gain, &shift, &sinks, &experts}) p->clear_gradient();

  Tensor x = ops::embedding(b.cx, {{.ids = b.ids({0}), .table = &table}});
  x = ops::layer_norm(b.cx, x, {.weight = &gain, .bias = &shift});
  x = ops::linear(b.cx, x, w, {.bias = &bias});
  x = ops::linear(b.cx, x, experts, {.groups = b.groups({0, 0})});
  const Tensor heads = ops::split_heads(x, 2);
  const Tensor z = ops::attention(b.cx, heads, heads, heads, Rows::batch(b.cx, 0, 4), {.sinks = &sinks}).z;
  b.pass.tape.seed(b.cx, z, b.pass.zeros(z.shape(), z.dtype()));
  b.pass.tape.backward(b.cx);
  for (const Param* p : {&w, &bias, &table, &gain, &shift, &sinks, &experts}) {
    ASSERT_TRUE(p->gradient().defined());
    EXPECT_EQ(to_host(p->gradient()), Numbers(static_cast<size_t>(p->shape().count()), 0.0)) << p->shape();
  }
}

TEST(NoWeights, HaveANormOfZero) {
  Bench b;
  EXPECT_EQ(ops::global_norm(b.cx, {}), 0);
  const Param* without_gradient[] = {&b.weight({3})};
  EXPECT_EQ(ops::global_norm(b.cx, without_gradient), 0);
  EXPECT_EQ(ops::clip_factor(0, 1), 1);
}

TEST(NoWeights, OfSizeZeroTakeAStep) {
  Bench b;
  ops::AdamState state = b.adam({0, 3});
  ops::adamw_step(b.cx, b.trained({0, 3}), state, {});
  EXPECT_EQ(state.step, 1);
  ops::sgd_step(b.cx, b.trained({0, 3}), b.floats({0, 3}), {.momentum = 0.9});
  ops::muon_step(b.cx, b.trained({0, 3}), b.floats({0, 3}), {});
}

}  // namespace errors_test
}  // namespace qkv::test
