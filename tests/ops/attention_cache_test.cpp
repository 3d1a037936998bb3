// Attention with a paged cache: the same bits in any chunks and pages, numbers of other dtypes as the cache holds them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <optional>

#include "ops/attention_sequences.h"

namespace qkv::test {
namespace attention_test {

// The format of a cache; default the pass' dtype.
struct Stored {
  std::optional<DType> keys, values;
};

// What one cached run leaves: its result, and the keys and values as the cache holds them, bytes times their scales.
struct Cached {
  Numbers z, k, v;
};

// One sequence in chunks, keys and values in pages of any order.
class PagedSequence {
 public:
  PagedSequence(const How& setup, const Sequence& sequence, int64_t page, const Stored& stored = {})
      : pass(setup), s_(sequence), page_(page), pages_((sequence.length + page - 1) / page) {
    const DType compute = setup.precision.compute;
    for (int64_t p = 0; p < pages_; ++p) table_.push_back(static_cast<int32_t>(pages_ - 1 - p));
    make(stored.keys.value_or(compute), keys, options.k_scales);
    make(stored.values.value_or(compute), values, options.v_scales);
    options.table = pass.cx.upload(table_).view({1, pages_});
  }

  // Puts the next keys and values into their slots and says whose rows they are.
  Rows append_keys(int64_t count) {
    std::vector<int32_t> slots;
    for (int64_t j = done_; j < done_ + count; ++j) slots.push_back(slot(j));
    const auto write = [&](const Tensor& to, const Tensor& scales, const Numbers& from) {
      const Tensor x = pass.input(part(from, done_, count, kKvHeads * kWidth), {count, kKvHeads, kWidth}, compute());
      ops::scatter_rows(pass.cx, to.view({pages_ * page_, kKvHeads, kWidth}), x, pass.cx.upload(slots),
                        scales.defined() ? scales.view({pages_ * page_, kKvHeads}) : Tensor());
    };
    write(keys, options.k_scales, s_.k);
    write(values, options.v_scales, s_.v);
    const Segment segment{.rows = static_cast<int32_t>(count),
                          .keys = static_cast<int32_t>(done_ + count),
                          .position = static_cast<int32_t>(done_)};
    q = pass.input(part(s_.q, done_, count, kHeads * kWidth), {count, kHeads, kWidth}, compute());
    done_ += count;
    return Rows::make(pass.cx, {segment}, count, Rows::kPaged);
  }

  // Keys or values in their order, widened.
  Numbers held(const Tensor& pages, const Tensor& scales) const {
    const Numbers all = to_host(pages), factors = scales.defined() ? to_host(scales) : Numbers{};
    Numbers held;
    for (int64_t j = 0; j < done_; ++j) {
      for (int64_t i = 0; i < kKvHeads * kWidth; ++i) {
        const auto at = static_cast<size_t>(slot(j) * kKvHeads * kWidth + i);
        held.push_back(scales.defined() ? all[at] * factors[at / kWidth] : all[at]);
      }
    }
    return held;
  }

  Pass pass;
  Tensor q, keys, values;
  ops::AttentionOptions options;

 private:
  DType compute() const { return pass.cx.precision.compute; }
  int32_t slot(int64_t j) const {
    return static_cast<int32_t>(table_[static_cast<size_t>(j / page_)] * page_ + j % page_);
  }
  void make(DType dtype, Tensor& pages, Tensor& scales) {
    pages = pass.zeros({pages_, page_, kKvHeads, kWidth}, dtype);
    if (dtype == DType::i8) scales = pass.zeros({pages_, page_, kKvHeads}, DType::f32);
  }

  const Sequence& s_;
  int64_t page_, pages_, done_ = 0;
  std::vector<int32_t> table_;
};

Cached attend_cached(const How& setup, const Sequence& s, const std::vector<int64_t>& chunks, int64_t page,
                     const ops::AttentionOptions& options, const Stored& stored = {}) {
  PagedSequence cache(setup, s, page, stored);
  cache.options.causal = options.causal;
  cache.options.window = options.window;
  Cached got;
  for (const int64_t count : chunks) {
    const Rows rows = cache.append_keys(count);
    append(got.z, to_host(ops::attention(cache.pass.cx, cache.q, cache.keys, cache.values, rows, cache.options).z));
  }
  got.k = cache.held(cache.keys, cache.options.k_scales);
  got.v = cache.held(cache.values, cache.options.v_scales);
  return got;
}

TEST(Attention, CachedInPagesAndChunkedGivesTheSameBitsAsWhole) {
  const Sequence sequence(5, 150);  // more than two key blocks
  for (const How& setup : setups()) {
    for (const int64_t window : {0, 40}) {
      const ops::AttentionOptions options{.causal = true, .window = window};
      const Numbers whole = attend_together(setup, {sequence}, options).front();
      EXPECT_EQ(attend_cached(setup, sequence, {150}, 16, options).z, whole);
      EXPECT_EQ(attend_cached(setup, sequence, {64, 1, 1, 5, 45, 34}, 7, options).z, whole);
      EXPECT_EQ(attend_cached(setup, sequence, std::vector<int64_t>(150, 1), 32, options).z, whole);
    }
  }
}

RC_GTEST_PROP(AttentionProperty, AnyChunkingAndPageSizeGivesTheSameBits, ()) {
  const auto length = *rc::gen::inRange<int64_t>(1, 90);
  std::vector<int64_t> chunks;
  for (int64_t left = length; left > 0;) {
    chunks.push_back(*rc::gen::inRange<int64_t>(1, left + 1));
    left -= chunks.back();
  }
  const auto page = *rc::gen::inRange<int64_t>(1, 70);
  const Sequence sequence(static_cast<uint64_t>(length), length);
  const How setup{.kernels = &kernels::cpu::table(), .threads = 2};
  RC_ASSERT(attend_cached(setup, sequence, chunks, page, {.causal = true}).z ==
            attend_together(setup, {sequence}, {.causal = true}).front());
}

const std::vector<Stored> kStored{{DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::i8, DType::i8},
                                  {DType::i8, DType::bf16}, {DType::f32, DType::i8},    {DType::f16, DType::f16}};

Numbers rounded(Numbers numbers, DType dtype) {
  for (double& x : numbers) x = round_to(dtype, x);
  return numbers;
}

// A cache may keep numbers in fewer bits than the pass computes in. What counts is what it holds: the plain definition
// in double on those numbers is the truth, and no chunk, page size or thread changes a bit.
TEST(Attention, ACacheOfAnotherDtypeIsReadAsItsNumbers) {
  const Sequence sequence(7, 150);
  const ops::AttentionOptions options{.causal = true, .window = 100};
  for (const Stored& stored : kStored) {
    for (const How& setup : setups()) {
      const Cached whole = attend_cached(setup, sequence, {150}, 16, options, stored);
      EXPECT_EQ(attend_cached(setup, sequence, {64, 1, 1, 5, 45, 34}, 7, options, stored).z, whole.z);
      EXPECT_EQ(attend_cached(setup, sequence, std::vector<int64_t>(150, 1), 32, options, stored).z, whole.z);

      Sequence held = sequence;
      held.q = rounded(sequence.q, setup.precision.compute);
      held.k = whole.k;
      held.v = whole.v;
      const Numbers right = attend_together({.precision = Precision::f64()}, {held}, options).front();
      const double u = unit_roundoff(DType::bf16);
      EXPECT_LE(nmse(whole.z, right), setup.precision.compute == DType::f32 ? 1e-12 : 2 * u * u)
          << setup.kernels->name << " " << name_of(setup.precision.compute) << " over " << name_of(*stored.keys);
    }
  }
}

// z from the pattern that is shown and the numbers the cache holds; entropy and first-key mass from the same pattern.
TEST(Attention, ACacheOfBytesShowsWhatItDoes) {
  class Watching : public Probe {
   public:
    Ask ask(Place, Site site) const override { return site == Site::attn_probs ? Ask::stats : Ask::none; }
    void visit(Context&, const Tap&, Tensor&) override {}
    StatsWanted stats_wanted(Place) const override { return {.offsets = {1, 40}}; }
    void visit_stats(Context&, const Tap&, const AttentionStats& stats) override {
      entropy = to_host(stats.entropy);
      first = to_host(stats.first);
      last_row.clear();
      for (const Tensor& t :
           {stats.entropy, stats.first, stats.distance, stats.highest, stats.argmax, stats.at_offset}) {
        append(last_row, to_host(t.slice(0, t.dim(0) - 1, 1)));
      }
    }
    Numbers entropy, first, last_row;
  };
  const int64_t length = 70;
  const Sequence s(8, length);
  for (const Kernels* table : kernels::all_tables()) {
    PagedSequence cache({.kernels = table}, s, 16, {DType::i8, DType::i8});
    cache.options.causal = true;
    const Rows rows = cache.append_keys(length);
    Watching probe;
    cache.pass.cx.probe = &probe;
    const ops::Attended got = ops::attention(cache.pass.cx, cache.q, cache.keys, cache.values, rows, cache.options);
    const Numbers pattern =
        to_host(ops::attention_pattern(cache.pass.cx, cache.q, cache.keys, got.lse, rows, cache.options));
    const Numbers v = cache.held(cache.values, cache.options.v_scales);
    Numbers by_hand(static_cast<size_t>(length * kHeads * kWidth), 0.0);
    for (int64_t i = 0; i < length * kHeads; ++i) {
      const int64_t group = i % kHeads / (kHeads / kKvHeads);
      double entropy = 0;
      for (int64_t j = 0; j < length; ++j) {
        const double a = pattern[static_cast<size_t>(i * length + j)];
        if (a > 0) entropy -= a * std::log(a);
        for (int64_t c = 0; c < kWidth; ++c) {
          by_hand[static_cast<size_t>(i * kWidth + c)] +=
              a * v[static_cast<size_t>((j * kKvHeads + group) * kWidth + c)];
        }
      }
      EXPECT_NEAR(probe.entropy[static_cast<size_t>(i)], entropy, 1e-5) << table->name;
      EXPECT_NEAR(probe.first[static_cast<size_t>(i)], pattern[static_cast<size_t>(i * length)], 1e-6) << table->name;
    }
    EXPECT_LE(nmse(to_host(got.z), by_hand), 1e-12) << table->name;

    // What is counted of a row does not depend on the others either.
    PagedSequence alone({.kernels = table}, s, 16, {DType::i8, DType::i8});
    alone.options.causal = true;
    alone.append_keys(length - 1);
    const Rows last = alone.append_keys(1);
    Watching watching;
    alone.pass.cx.probe = &watching;
    ops::attention(alone.pass.cx, alone.q, alone.keys, alone.values, last, alone.options);
    EXPECT_EQ(watching.last_row, probe.last_row) << table->name;
  }
}

// The definition of ScatterRowsArgs, number by number, and the same bits from every table.
TEST(ScatterRows, BytesAndTheirScales) {
  constexpr int64_t kRows = 6, kGroups = 2, kCols = 37;
  Numbers x = normals(91, kRows * kGroups * kCols);
  const auto row = [&](int64_t r) { return std::span(x).subspan(static_cast<size_t>(r * kCols), kCols); };
  std::fill(row(2).begin(), row(2).end(), 0.0);
  row(3)[36] = std::numeric_limits<double>::infinity();
  row(4)[0] = std::nan("");
  for (double& v : row(5)) v *= 1e-35;  // too small to scale
  for (double& v : row(6)) v *= 1e30;
  row(7)[11] = 127, row(7)[12] = 2.5, row(7)[13] = 3.5;  // scale 1: halves go to even
  for (const How& setup : setups()) {
    Pass pass(setup);
    const DType dtype = setup.precision.compute;
    const Numbers given = rounded(x, dtype);
    const Tensor bytes = pass.zeros({9, kGroups, kCols}, DType::i8), scales = pass.zeros({9, kGroups}, DType::f32);
    ops::scatter_rows(pass.cx, bytes, pass.input(given, {kRows, kGroups, kCols}, dtype),
                      pass.cx.upload(std::vector<int32_t>{8, 3, 5, 0, 1, 2}), scales);
    const Numbers q = to_host(bytes), s = to_host(scales);
    constexpr int64_t kSlots[] = {8, 3, 5, 0, 1, 2};
    for (int64_t r = 0; r < kRows * kGroups; ++r) {
      const int64_t at = kSlots[r / kGroups] * kGroups + r % kGroups;
      const std::span<const double> from = std::span(given).subspan(static_cast<size_t>(r * kCols), kCols);
      float highest = 0;
      for (const double v : from) highest = std::max(highest, static_cast<float>(std::abs(v)));
      const bool finite = r != 3 && r != 4, zero = !finite || r == 2 || r == 5;
      const float scale = zero ? 0 : highest / 127;
      const double kept = s[static_cast<size_t>(at)];
      EXPECT_TRUE(finite ? kept == static_cast<double>(scale) : std::isnan(kept)) << r << ": " << kept;
      for (int64_t c = 0; c < kCols; ++c) {
        const double right =
            zero ? 0.0 : static_cast<double>(std::nearbyint(static_cast<float>(from[static_cast<size_t>(c)]) / scale));
        EXPECT_EQ(q[static_cast<size_t>(at * kCols + c)], right) << setup.kernels->name << " row " << r << " at " << c;
      }
    }
    EXPECT_EQ(part(q, 4, 1, kGroups * kCols), Numbers(kGroups * kCols, 0.0));  // a slot that was not written
  }
}

// Numbers enter pages of another float dtype rounded once, and a wider one unchanged.
TEST(ScatterRows, CastsToTheCachesDtype) {
  for (const How& setup : setups()) {
    for (const DType stored : {DType::f32, DType::bf16, DType::f16}) {
      Pass pass(setup);
      const Numbers x = rounded(normals(92, 2 * 3 * 21), setup.precision.compute);
      const Tensor cache = pass.zeros({4, 3, 21}, stored);
      ops::scatter_rows(pass.cx, cache, pass.input(x, {2, 3, 21}, setup.precision.compute),
                        pass.cx.upload(std::vector<int32_t>{2, 1}));
      EXPECT_EQ(part(to_host(cache), 2, 1, 63), rounded(part(x, 0, 1, 63), stored));
      EXPECT_EQ(part(to_host(cache), 1, 1, 63), rounded(part(x, 1, 1, 63), stored));
    }
  }
}

TEST(Attention, PagesAWindowHasLeftAreNeverRead) {
  const How setup;
  Pass pass(setup);
  const int64_t page = 4, pages = 5, length = 20, window = 6;
  const Sequence s(9, length);
  const Tensor keys = pass.input(s.k, {pages, page, kKvHeads, kWidth});
  const Tensor values = pass.input(s.v, {pages, page, kKvHeads, kWidth});
  const Rows rows = Rows::make(pass.cx, {{.rows = 1, .keys = 20, .position = 19}}, 1, Rows::kPaged);
  const Tensor q = pass.input(part(s.q, 19, 1, kHeads * kWidth), {1, kHeads, kWidth});
  const auto z = [&](std::vector<int32_t> table) {
    return to_host(ops::attention(pass.cx, q, keys, values, rows,
                                  {.causal = true, .window = window, .table = pass.cx.upload(table).view({1, pages})})
                       .z);
  };
  EXPECT_EQ(z({-1, -1, -1, 3, 4}), z({0, 1, 2, 3, 4}));  // keys 14 .. 19 live in pages 3 and 4
}

TEST(Attention, ANaNIsPassedOnToThoseWhoLookAtItAndNoOthers) {
  constexpr int64_t kLength = 80, kAsks = 70, kAsked = 3;  // the row whose question, and the key whose label is NaN
  Sequence asks(41, kLength), asked(42, kLength);
  asks.q[static_cast<size_t>((kAsks * kHeads + 1) * kWidth)] = std::nan("");
  asked.k[static_cast<size_t>((kAsked * kKvHeads + 1) * kWidth)] = std::nan("");
  for (const How& setup : setups()) {
    const std::vector<int64_t> one_by_one(kLength, 1);
    for (const bool cached : {false, true}) {
      const auto z_of = [&](const Sequence& s) {
        return cached ? attend_cached(setup, s, one_by_one, 16, {.causal = true}).z
                      : attend_together(setup, {s}, {.causal = true}).front();
      };
      const Numbers by_question = z_of(asks), by_label = z_of(asked);
      for (int64_t row = 0; row < kLength; ++row) {
        for (int64_t head = 0; head < kHeads; ++head) {
          const auto at = static_cast<size_t>((row * kHeads + head) * kWidth);
          ASSERT_EQ(std::isnan(by_question[at]), row == kAsks && head == 1) << row << ", " << head;
          ASSERT_EQ(std::isnan(by_label[at]), row >= kAsked && head >= 2) << row << ", " << head;
        }
      }
    }
  }
}

}  // namespace attention_test
}  // namespace qkv::test
