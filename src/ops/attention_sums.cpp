// src/ops/attention_sums.cpp
//
//   y[g, h] = sum over rows r of group g of weight[r] stats[r, h]        no gradient
//
// What follows from thousands of rows comes to the host as a few numbers for each head.
#include "ops/checks.h"
#include "ops/ops.h"

namespace qkv::ops {
namespace {

constexpr const char* kSums = "attention_sums";

}  // namespace

StatsRows stats_rows(Context& cx, const StatsRowsOnHost& host) {
  const auto rows = std::ssize(host.weights);
  for (const auto& [first, count, position, label] : host.groups) {
    QKV_CHECK(first >= 0 && count >= 0 && int64_t{first} + count <= rows && label >= 0, kSums, ": a group has rows [",
              first, ", ", int64_t{first} + count, ") and labels from ", label, " but there are ", rows, " rows",
              Hint("one weight for each row of the pass"));
  }
  QKV_CHECK(host.wanted.empty() || std::ssize(host.wanted) == rows, kSums, ": ", host.wanted.size(),
            " rows want labels but there are ", rows, Hint("one entry for each row of the pass"));
  const auto list = [&](const auto& entries, const Shape& shape) {
    return cx.upload({reinterpret_cast<const int32_t*>(entries.data()), static_cast<size_t>(shape.count())})
        .view(shape);
  };
  StatsRows made{.groups = list(host.groups, {std::ssize(host.groups), 4}),
                 .weights = cx.constant({rows, 3}, DType::f64)};
  made.weights.device().upload(made.weights.data(), host.weights.data(), made.weights.count() * size_of(DType::f64));
  if (host.wanted.empty()) return made;
  made.labels = cx.upload(host.labels);
  made.wanted = list(host.wanted, {rows, kMostWanted});
  return made;
}

void attention_sums(Context& cx, const AttentionStats& stats, const StatsRows& rows, const Tensor& y) {
  const AttentionSumsArgs args{.stats = stats, .rows = rows, .y = y};
  check_vectors(cx, kSums, "entropy", stats.entropy);
  QKV_CHECK(stats.entropy.rank() == 2, kSums, ": entropy is ", stats.entropy, " but must be [N, H]",
            Hint("take the statistics of an attention"));
  const int64_t n = stats.entropy.dim(0), heads = stats.entropy.dim(1);
  check_shape(kSums, "weights", rows.weights, {n, 3});
  check_vectors(cx, kSums, "y", y);
  check_shape(kSums, "y", y, {rows.groups.dim(0), heads, args.columns().count()});
  QKV_CHECK(y.dtype() == DType::f64 && y.contiguous(), kSums, ": y is ", y, " but must be f64",
            Hint("sums over many rows are kept in double"));
  cx.kernels.attention_sums(cx.exec, args);
}

}  // namespace qkv::ops
