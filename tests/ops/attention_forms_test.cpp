// Attention of bf16 over contexts of many key blocks, with statistics: kernels may take many rows at once, few rows, or
// share the keys of one row between blocks, and a row's numbers are the same.
#include <gtest/gtest.h>

#include <string>

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

TEST(AttentionForms, LongContextsAgreeWithTheDefinition) {
  const double u = unit_roundoff(DType::bf16);
  for (const int64_t width : {64, 128}) {
    Text text(width, 600);
    for (Numbers* numbers : {&text.q, &text.k, &text.v}) {
      for (double& x : *numbers) x = round_to(DType::bf16, x);
    }
    Pass exact({.precision = Precision::f64()});
    const Rows rows = Rows::batch(exact.cx, 1, text.length);
    const ops::Attended right =
        ops::attention(exact.cx, exact.input(text.q, {text.length, kHeads, width}),
                       exact.input(text.k, {text.length, kKvHeads, width}),
                       exact.input(text.v, {text.length, kKvHeads, width}), rows, {.causal = true});
    for (const Kernels* table : kernels::all_tables()) {
      const auto got = attend(table, text, 0, text.length, {.causal = true});
      EXPECT_LE(nmse(got[got.size() - 2], to_host(right.z)), 6 * u * u) << table->name;
      EXPECT_LE(nmse(got.back(), to_host(right.lse)), 1e-10) << table->name;
    }
  }
}

}  // namespace attention_forms_test
}  // namespace qkv::test
