// Attention of bf16 over contexts of many key blocks, with statistics: kernels may take many rows at once, few rows, or
// share the keys of one row between blocks, and a row's numbers are the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>

#include "op_cases.h"
#include "ops/ops.h"

namespace qkv::test {
namespace attention_forms_test {

constexpr int64_t kHeads = 6, kKvHeads = 2, kClasses = 7;

struct Watching : Probe {
  Tensor key_classes;
  std::vector<Numbers> seen;  // of each statistic

  Ask ask(Place, Site site) const override { return site == Site::attn_probs ? Ask::stats : Ask::none; }
  void visit(Context&, const Tap&, Tensor&) override {}
  StatsWanted stats_wanted(Place) const override {
    return {.offsets = {0, 1, 70}, .key_classes = key_classes, .classes = kClasses};
  }
  void visit_stats(Context&, const Tap&, const AttentionStats& s) override {
    for (const Tensor& t : {s.entropy, s.distance, s.first, s.highest, s.argmax, s.at_offset, s.in_class}) {
      seen.push_back(to_host(t));
    }
  }
};

struct Text {
  int64_t width, length;
  Numbers q, k, v;
  Text(int64_t head_width, int64_t keys)
      : width(head_width),
        length(keys),
        q(normals(1, keys * kHeads * width)),
        k(normals(2, keys * kKvHeads * width)),
        v(normals(3, keys * kKvHeads * width)) {}
};

// Rows [first, first + count): z, LSE and the statistics, each [count, H, ...].
std::vector<Numbers> attend(const Kernels* table, const Text& text, int64_t first, int64_t count,
                            ops::AttentionOptions options, int64_t page = 0) {
  Pass pass({.kernels = table, .precision = Precision::bf16()});
  const int64_t keys = first + count, each = kHeads * text.width, kv_each = kKvHeads * text.width;
  const Numbers part(text.q.begin() + first * each, text.q.begin() + keys * each);
  const Tensor q = pass.input(part, {count, kHeads, text.width}, DType::bf16);
  const int64_t pages = page == 0 ? 1 : (keys + page - 1) / page, slots = page == 0 ? keys : pages * page;
  const auto slot = [&](int64_t j) { return page == 0 ? j : (pages - 1 - j / page) * page + j % page; };
  Numbers k(static_cast<size_t>(slots * kv_each), std::nan("")), v = k;  // nothing is read where no key lies
  std::vector<int32_t> classes(static_cast<size_t>(slots), 0), order;
  for (int64_t j = 0; j < keys; ++j) {
    std::copy_n(text.k.begin() + j * kv_each, kv_each, k.begin() + slot(j) * kv_each);
    std::copy_n(text.v.begin() + j * kv_each, kv_each, v.begin() + slot(j) * kv_each);
    classes[static_cast<size_t>(slot(j))] = static_cast<int32_t>(j * j % kClasses);
  }
  for (int64_t p = 0; p < pages; ++p) order.push_back(static_cast<int32_t>(pages - 1 - p));
  const Shape shape = page == 0 ? Shape{keys, kKvHeads, text.width} : Shape{pages, page, kKvHeads, text.width};
  if (page > 0) options.table = pass.cx.upload(order).view({1, pages});
  const Rows rows = Rows::make(pass.cx,
                               {{.rows = static_cast<int32_t>(count),
                                 .keys = static_cast<int32_t>(keys),
                                 .position = static_cast<int32_t>(first)}},
                               count, page == 0 ? keys : Rows::kPaged);
  Watching probe;
  probe.key_classes = pass.cx.upload(classes);
  pass.cx.probe = &probe;
  const ops::Attended got =
      ops::attention(pass.cx, q, pass.input(k, shape, DType::bf16), pass.input(v, shape, DType::bf16), rows, options);
  pass.cx.probe = nullptr;
  std::vector<Numbers> all = probe.seen;
  all.push_back(to_host(got.z));
  all.push_back(to_host(got.lse));
  return all;
}

void expect_rows(const std::vector<Numbers>& part, const std::vector<Numbers>& whole, int64_t first, int64_t count,
                 int64_t length, const std::string& where) {
  ASSERT_EQ(part.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto each = static_cast<int64_t>(whole[i].size()) / length;
    const Numbers right(whole[i].begin() + first * each, whole[i].begin() + (first + count) * each);
    EXPECT_EQ(part[i], right) << where << ", number " << i << ", rows from " << first;
  }
}

TEST(AttentionForms, AnyNumberOfRowsAndPagesGivesTheSameBits) {
  for (const Kernels* table : kernels::all_tables()) {
    for (const int64_t width : {64, 128, 40}) {
      const Text text(width, 600);  // keys of three spans, the last one not full
      for (const ops::AttentionOptions& options :
           std::vector<ops::AttentionOptions>{{.causal = true}, {.causal = true, .window = 300}}) {
        const std::string where = std::string(table->name) + ", width " + std::to_string(width);
        const auto whole = attend(table, text, 0, text.length, options);
        for (const int64_t first : {0, 255, 256, 520, 599}) {
          expect_rows(attend(table, text, first, 1, options), whole, first, 1, text.length, where);
          expect_rows(attend(table, text, first, 1, options, 32), whole, first, 1, text.length, where + ", pages");
        }
        expect_rows(attend(table, text, 300, 45, options), whole, 300, 45, text.length, where);
        expect_rows(attend(table, text, 300, 45, options, 16), whole, 300, 45, text.length, where + ", pages");
      }
    }
  }
}

constexpr int64_t kEvery = 5;  // rows that are held to the definition
Numbers some_rows(const Numbers& all, int64_t rows) {
  const int64_t each = std::ssize(all) / rows;
  Numbers some;
  for (int64_t i = kEvery - 1; i < rows; i += kEvery)
    some.insert(some.end(), all.begin() + i * each, all.begin() + (i + 1) * each);
  return some;
}

// What attend() returns for these rows, from the pattern itself in double.
std::vector<Numbers> by_definition(const Text& text) {
  Pass exact({.precision = Precision::f64()});
  const Rows rows = Rows::batch(exact.cx, 1, text.length);
  const ops::Attended right =
      ops::attention(exact.cx, exact.input(text.q, {text.length, kHeads, text.width}),
                     exact.input(text.k, {text.length, kKvHeads, text.width}),
                     exact.input(text.v, {text.length, kKvHeads, text.width}), rows, {.causal = true});
  const Numbers lse = to_host(right.lse);
  Numbers entropy, distance, first, highest, argmax, at_offset, in_class, a;
  for (int64_t i = kEvery - 1; i < text.length; i += kEvery) {
    for (int64_t h = 0; h < kHeads; ++h) {
      const double* q = &text.q[static_cast<size_t>((i * kHeads + h) * text.width)];
      a.clear();
      for (int64_t j = 0; j <= i; ++j) {
        const double* k = &text.k[static_cast<size_t>((j * kKvHeads + h * kKvHeads / kHeads) * text.width)];
        const double score = std::inner_product(q, q + text.width, k, 0.0) / std::sqrt(static_cast<double>(text.width));
        a.push_back(std::exp(score - lse[static_cast<size_t>(i * kHeads + h)]));
      }
      double entropy_now = 0, distance_now = 0;
      Numbers classes(kClasses, 0.0);
      for (int64_t j = 0; j <= i; ++j) {
        const double p = a[static_cast<size_t>(j)];
        if (p > 0) entropy_now -= p * std::log(p);
        distance_now += p * static_cast<double>(i - j);
        classes[static_cast<size_t>(j * j % kClasses)] += p;
      }
      const auto top = std::ranges::max_element(a);
      entropy.push_back(entropy_now);
      distance.push_back(distance_now);
      first.push_back(a.front());
      highest.push_back(*top);
      argmax.push_back(static_cast<double>(top - a.begin()));
      for (const int64_t offset : {0, 1, 70}) at_offset.push_back(offset <= i ? a[static_cast<size_t>(i - offset)] : 0);
      in_class.insert(in_class.end(), classes.begin(), classes.end());
    }
  }
  return {entropy,
          distance,
          first,
          highest,
          argmax,
          at_offset,
          in_class,
          some_rows(to_host(right.z), text.length),
          some_rows(lse, text.length)};
}

// Masses of classes may be sums of probabilities rounded to bf16, as z is; the others are sums in f32.
TEST(AttentionForms, LongContextsAgreeWithTheDefinition) {
  constexpr std::array kNames{"entropy", "distance", "first", "highest", "argmax", "at_offset", "in_class", "z", "lse"};
  const double u = unit_roundoff(DType::bf16);
  for (const int64_t width : {64, 128}) {
    Text text(width, 600);
    for (Numbers* numbers : {&text.q, &text.k, &text.v}) {
      for (double& x : *numbers) x = round_to(DType::bf16, x);
    }
    const std::vector<Numbers> right = by_definition(text);
    for (const Kernels* table : kernels::all_tables()) {
      const std::vector<Numbers> got = attend(table, text, 0, text.length, {.causal = true});
      ASSERT_EQ(got.size(), right.size());
      for (size_t i = 0; i < right.size(); ++i) {
        const std::string_view name = kNames[i];
        const double limit = name == "z" ? 6 * u * u : name == "in_class" ? u * u : 1e-10;
        EXPECT_LE(nmse(some_rows(got[i], text.length), right[i]), limit)
            << table->name << ", " << name << ", width " << width;
      }
    }
  }
}

}  // namespace attention_forms_test
}  // namespace qkv::test
