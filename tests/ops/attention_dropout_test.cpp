// Attention of bf16 with dropout on its probabilities, over packed sequences: whether a probability is dropped follows
// from its row, head and key alone, whatever form a kernel takes.
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "op_cases.h"
#include "ops/ops.h"

namespace qkv::test {
namespace attention_dropout_test {

struct Shapes {
  int64_t heads, kv_heads, width, value_width;
};
struct Given {
  Shapes shapes;
  std::vector<Segment> segments;
  int64_t rows = 0, keys = 0;
  Numbers q, k, v, dz;  // [T, H, D], [S, G, D], [S, G, E], [T, H, E]

  Given(const Shapes& s, std::vector<Segment> list) : shapes(s), segments(std::move(list)) {
    for (const Segment& segment : segments) {
      rows = std::max<int64_t>(rows, segment.first_row + segment.rows);
      keys = std::max<int64_t>(keys, segment.first_key + segment.keys);
    }
    const auto rounded = [](uint64_t seed, int64_t count) {
      Numbers numbers = normals(seed, count);
      for (double& x : numbers) x = round_to(DType::bf16, x);
      return numbers;
    };
    q = rounded(1, rows * s.heads * s.width);
    k = rounded(2, keys * s.kv_heads * s.width);
    v = rounded(3, keys * s.kv_heads * s.value_width);
    dz = rounded(4, rows * s.heads * s.value_width);
  }
};

// One after the other: rows and keys of each.
std::vector<Segment> pack(const std::vector<std::pair<int32_t, int32_t>>& lengths) {
  std::vector<Segment> list;
  int32_t row = 0, key = 0;
  for (const auto& [rows, keys] : lengths) {
    list.push_back({.first_row = row, .rows = rows, .first_key = key, .keys = keys});
    row += rows;
    key += keys;
  }
  return list;
}

const std::vector<Shapes> kShapes{{2, 1, 64, 64}, {2, 1, 128, 128}, {1, 1, 40, 32}};
const std::vector<Segment> kSelf = pack({{70, 70}, {1, 1}, {64, 64}, {0, 0}, {33, 33}, {131, 131}});
const std::vector<Segment> kCross = pack({{41, 33}, {5, 70}, {64, 64}, {20, 0}, {33, 66}});
const std::vector<Segment> kShort = pack({{3, 3}, {1, 1}, {9, 9}, {5, 80}});
// The second and third have keys of the first, which do not begin where its blocks of keys do.
const std::vector<Segment> kShared{{.rows = 70, .keys = 130},
                                   {.first_row = 70, .rows = 33, .first_key = 37, .keys = 93},
                                   {.first_row = 103, .rows = 40, .first_key = 37, .keys = 40}};
const std::vector<ops::AttentionOptions> kMasks{
    {.causal = true, .dropout = 0.25F}, {.dropout = 0.1F}, {.window = 21, .dropout = 0.5F}};

struct Found {
  Numbers z, lse, dq, dk, dv;
  bool operator==(const Found&) const = default;
};

using How = Pass::Options;

How on(const Kernels* table) {
  return {.kernels = table, .precision = Precision::bf16(), .threads = 2};
}

// The pass is a part of a larger one, from this row on; kernels have so much scratch, or all there is.
Found attend(How how, const Given& g, ops::AttentionOptions options, uint64_t first_row = 0, int64_t scratch = 0) {
  how.tape = true;
  Pass pass(how);
  Exec exec = pass.cx.exec;
  if (scratch > 0) exec.scratch = exec.scratch.view({exec.scratch.count()}).slice(0, 0, scratch);
  Context cx{.kernels = pass.cx.kernels,
             .exec = exec,
             .arena = pass.arena,
             .precision = how.precision,
             .tape = &pass.tape,
             .rng = {.seed = 5, .step = 2, .first_row = first_row},
             .training = true};
  options.place = {Stack::decoder, 3};
  const Rows rows = Rows::make(cx, g.segments, g.rows, g.keys);
  const DType dtype = how.precision.compute;
  const Tensor q = pass.input(g.q, {g.rows, g.shapes.heads, g.shapes.width}, dtype),
               k = pass.input(g.k, {g.keys, g.shapes.kv_heads, g.shapes.width}, dtype),
               v = pass.input(g.v, {g.keys, g.shapes.kv_heads, g.shapes.value_width}, dtype);
  const ops::Attended made = ops::attention(cx, q, k, v, rows, options);
  Found found{.z = to_host(made.z), .lse = to_host(made.lse)};
  const Tensor dz = cx.constant(made.z.shape(), made.z.dtype());
  to_device(dz, g.dz);
  pass.tape.seed(cx, made.z, dz);
  pass.tape.backward(cx);
  found.dq = to_host(pass.tape.gradient(q));
  found.dk = to_host(pass.tape.gradient(k));
  found.dv = to_host(pass.tape.gradient(v));
  return found;
}

Numbers part(const Numbers& all, int64_t first, int64_t count, int64_t each) {
  return {all.begin() + first * each, all.begin() + (first + count) * each};
}
Found part(const Found& f, const Shapes& s, const Segment& of) {
  return {part(f.z, of.first_row, of.rows, s.heads * s.value_width), part(f.lse, of.first_row, of.rows, s.heads),
          part(f.dq, of.first_row, of.rows, s.heads * s.width), part(f.dk, of.first_key, of.keys, s.kv_heads * s.width),
          part(f.dv, of.first_key, of.keys, s.kv_heads * s.value_width)};
}
// Rows [first, first + count) of a segment whose keys end with them, as a pass of their own.
Given part(const Given& g, const Segment& of, int32_t first, int32_t count) {
  const Shapes& s = g.shapes;
  Given one(s, {{.rows = count, .keys = of.keys, .position = first}});
  one.q = part(g.q, of.first_row + first, count, s.heads * s.width);
  one.k = part(g.k, of.first_key, of.keys, s.kv_heads * s.width);
  one.v = part(g.v, of.first_key, of.keys, s.kv_heads * s.value_width);
  one.dz = part(g.dz, of.first_row + first, count, s.heads * s.value_width);
  return one;
}

std::string where(const Kernels* table, const Given& g) {
  return std::string(table->name) + ", width " + std::to_string(g.shapes.width) + ", " + std::to_string(g.rows) +
         " rows";
}

// One of the CPU and that of a GPU: rows of the op table, attention with dropout among them, go through all.
std::vector<const Kernels*> fast_tables() {
  std::vector<const Kernels*> all{&kernels::best_table()};
  if (kernels::cuda::available()) all.push_back(&kernels::cuda::table());
  return all;
}

// Six roundings to bf16 at most, as in the op table.
TEST(AttentionDropout, AgreesWithRefInDouble) {
  const double u = unit_roundoff(DType::bf16), limit = 6 * u * u;
  for (const Shapes& shapes : kShapes) {
    for (const auto& segments : {kSelf, kCross, kShort, kShared}) {
      const Given given(shapes, segments);
      for (const ops::AttentionOptions& options : kMasks) {
        const Found right = attend({.precision = Precision::f64()}, given, options);
        for (const Kernels* table : kernels::all_tables()) {
          const Found got = attend(on(table), given, options);
          EXPECT_LE(nmse(got.z, right.z), limit) << where(table, given);
          EXPECT_LE(nmse(got.dq, right.dq), limit) << where(table, given);
          EXPECT_LE(nmse(got.dk, right.dk), limit) << where(table, given);
          EXPECT_LE(nmse(got.dv, right.dv), limit) << where(table, given);
        }
      }
    }
  }
}

TEST(AttentionDropout, AloneOrPackedGivesTheSameBits) {
  for (const Shapes& shapes : kShapes) {
    for (const auto& segments : {kSelf, kCross, kShort}) {
      const Given given(shapes, segments);
      for (const ops::AttentionOptions& options : kMasks) {
        for (const Kernels* table : fast_tables()) {
          const Found together = attend(on(table), given, options);
          for (const Segment& one : segments) {
            if (one.rows == 0 || one.keys == 0) continue;
            const Found alone =
                attend(on(table), part(given, one, 0, one.rows), options, static_cast<uint64_t>(one.first_row));
            EXPECT_TRUE(alone == part(together, shapes, one)) << where(table, given) << ", from " << one.first_row;
          }
        }
      }
    }
  }
}

// Many rows at once, few rows, and keys of several spans.
TEST(AttentionDropout, AnyNumberOfRowsGivesTheSameBits) {
  for (const Shapes& shapes : kShapes) {
    const Given given(shapes, pack({{300, 300}}));
    const Segment& all = given.segments.front();
    for (const ops::AttentionOptions& options : kMasks) {
      for (const Kernels* table : fast_tables()) {
        const Found whole = attend(on(table), given, options);
        for (const auto& [first, count] : {std::pair{0, 1}, {63, 3}, {255, 1}, {257, 40}, {299, 1}}) {
          const Found some = attend(on(table), part(given, all, first, count), options, static_cast<uint64_t>(first));
          EXPECT_EQ(some.z, part(whole.z, first, count, shapes.heads * shapes.value_width)) << where(table, given);
          EXPECT_EQ(some.lse, part(whole.lse, first, count, shapes.heads)) << where(table, given);
          EXPECT_EQ(some.dq, part(whole.dq, first, count, shapes.heads * shapes.width)) << where(table, given);
        }
      }
    }
  }
}

// The fast forms take dropout: where p is so small that nothing is dropped and 1 / (1 - p) is one, the bits are those
// without it, which the general form does not have.
TEST(AttentionDropout, AGpuTakesTheFormItTakesWithoutIt) {
  for (const Kernels* table : kernels::all_tables()) {
    if (std::string_view(table->name) != "cuda") continue;
    for (const Shapes& shapes : kShapes) {
      for (const auto& segments : {kSelf, kCross, kShort, kShared}) {
        const Given given(shapes, segments);
        for (const bool causal : {true, false}) {
          const Found right = attend(on(table), given, {.causal = causal});
          const Found got = attend(on(table), given, {.causal = causal, .dropout = 1e-9F});
          EXPECT_EQ(got.z, right.z) << where(table, given);
          EXPECT_EQ(got.lse, right.lse) << where(table, given);
          EXPECT_EQ(got.dq, right.dq) << where(table, given);
          EXPECT_EQ(got.dk, right.dk) << where(table, given);
          EXPECT_EQ(got.dv, right.dv) << where(table, given);
        }
      }
    }
  }
}

// What a GPU's scratch has no room for (masks, lists of tiles, statistics of rows) lies elsewhere: no row takes another form.
TEST(AttentionDropout, ThroughLittleScratchOfAGpuHasTheSameBits) {
  const char* why = nullptr;
  if (!kernels::cuda::available(&why)) GTEST_SKIP() << "there is no GPU: " << why;
  const How how = on(&kernels::cuda::table());
  for (const Shapes& shapes : kShapes) {
    for (const auto& segments : {kSelf, kCross}) {
      const Given given(shapes, segments);
      for (const float p : {0.0F, 0.25F}) {
        const ops::AttentionOptions options{.causal = true, .dropout = p};
        EXPECT_TRUE(attend(how, given, options, 0, 1 << 12) == attend(how, given, options))
            << where(how.kernels, given) << ", dropout " << p;
      }
    }
  }
}

// A sequence of NaN shares blocks of rows and keys with its neighbours. In it whoever sees a NaN has one, also where the
// probability is dropped: the last key is seen by one row alone.
TEST(AttentionDropout, NoNumbersReachThoseWhoSeeThemAndNoOthers) {
  for (const Shapes& shapes : kShapes) {
    const Given clean(shapes, kSelf);
    Given given = clean;
    const Segment& bad = kSelf[2];
    const auto spoil = [&](Numbers& numbers, int64_t first, int64_t count, int64_t each) {
      std::fill_n(numbers.begin() + first * each, count * each, std::nan(""));
    };
    spoil(given.q, bad.first_row, bad.rows, shapes.heads * shapes.width);
    spoil(given.k, bad.first_key, bad.keys, shapes.kv_heads * shapes.width);
    spoil(given.v, bad.first_key, bad.keys, shapes.kv_heads * shapes.value_width);
    spoil(given.dz, bad.first_row, bad.rows, shapes.heads * shapes.value_width);
    const ops::AttentionOptions options{.causal = true, .dropout = 0.75F};
    for (const Kernels* table : kernels::all_tables()) {
      const Found right = attend(on(table), clean, options), got = attend(on(table), given, options);
      for (const Segment& one : kSelf) {
        if (one.first_row == bad.first_row && one.rows == bad.rows) continue;
        EXPECT_TRUE(part(got, shapes, one) == part(right, shapes, one)) << where(table, given) << one.first_row;
      }
      const std::string_view name = table->name;
      if (name != "ref" && name != "cuda") continue;  // others leave out what is dropped
      const Found broken = part(got, shapes, bad);
      for (const Numbers* numbers : {&broken.z, &broken.dq, &broken.dk, &broken.dv}) {
        for (const double x : *numbers) ASSERT_TRUE(std::isnan(x)) << where(table, given);
      }
    }
  }
}

// A value that rows before it do not see: the rows that a tile of many got wrong are done one by one.
TEST(AttentionDropout, HiddenValuesMayBeNoNumbers) {
  constexpr int64_t kBad = 41;
  for (const Shapes& shapes : kShapes) {
    const Given clean(shapes, kSelf);
    Given given = clean;
    const int64_t each = shapes.kv_heads * shapes.value_width;
    given.v[static_cast<size_t>(kBad * each + 7)] = std::nan("");
    const ops::AttentionOptions options{.causal = true, .dropout = 0.25F};
    for (const Kernels* table : kernels::all_tables()) {
      const Found right = attend(on(table), clean, options), got = attend(on(table), given, options);
      const auto before = [&](const Numbers& numbers, int64_t width) { return part(numbers, 0, kBad, width); };
      const int64_t of_z = shapes.heads * shapes.value_width, of_q = shapes.heads * shapes.width;
      EXPECT_EQ(before(got.z, of_z), before(right.z, of_z)) << where(table, given);
      EXPECT_EQ(before(got.dq, of_q), before(right.dq, of_q)) << where(table, given);
      EXPECT_TRUE(std::isnan(got.z[static_cast<size_t>(kBad * of_z + 7)])) << where(table, given);
      EXPECT_EQ(part(got.z, 70, given.rows - 70, of_z), part(right.z, 70, given.rows - 70, of_z));
    }
  }
}

}  // namespace attention_dropout_test
}  // namespace qkv::test
