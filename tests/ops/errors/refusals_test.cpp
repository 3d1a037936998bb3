// Every refusal is an error of the input, names op and values, and has a hint; those of ops on whole tensors.
#include "ops/errors/refusals.h"

namespace qkv::test {
namespace errors_test {

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

}  // namespace errors_test
}  // namespace qkv::test
