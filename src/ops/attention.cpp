// src/ops/attention.cpp
//
//   x_ij = cap(scale q_i . k_j) + slope (j - i) + bias[bucket(j - i)] + mask_ij        over the keys row i sees
//   LSE_i = log(sum_j exp(x_ij) + exp(sink))      A_ij = exp(x_ij - LSE_i)      z_i = sum_j A_ij v_j
//   backward: kernels/ref/attention_backward.cpp
//
// The keys a row sees follow from its segment (see Rows), `causal`, `window` and `chunk`. The kernel stores LSE and never T x S.
// A probe that asked before gets statistics from inside the kernel, or the pattern, computed again from q, k and LSE.
#include <algorithm>
#include <cmath>
#include <memory>

#include "ops/checks.h"
#include "ops/dropout.h"
#include "ops/ops.h"

namespace qkv::ops {
namespace {

constexpr const char* kAttention = "attention";
constexpr int64_t kWholeWindow = int64_t{1} << 40;  // beyond any position, and sums with it cannot overflow

void check_per_head(Context& cx, const char* name, const Tensor& t, int64_t heads) {
  check_vectors(cx, kAttention, name, t);
  check_shape(kAttention, name, t, {heads});
}

void check_mask(Context& cx, const Tensor& mask, const Rows& rows, int64_t heads) {
  check_vectors(cx, kAttention, "mask", mask);
  const auto segments = static_cast<int64_t>(rows.list.size());
  int64_t longest_rows = 0;
  for (const Segment& s : rows.list) longest_rows = std::max<int64_t>(longest_rows, s.rows);
  QKV_CHECK(mask.rank() == 4 && (mask.dim(0) == 1 || mask.dim(0) == segments) &&
                (mask.dim(1) == 1 || mask.dim(1) == heads) && mask.dim(2) >= longest_rows &&
                mask.dim(3) >= rows.longest_keys,
            kAttention, ": the mask is ", mask, " but must be [", segments, " or 1, ", heads, " or 1, ", longest_rows,
            ", ", rows.longest_keys, "]",
            Hint("axes 0 and 1 of size 1 hold for all segments and heads; nothing else is broadcast"));
}

void check_pages(Context& cx, const Tensor& k, const Tensor& v, const Rows& rows, const Tensor& table) {
  check_indices(cx, kAttention, "table", table);
  QKV_CHECK(rows.keys == Rows::kPaged && k.rank() == 4 && v.rank() == 4 && k.dim(1) > 0 && table.rank() == 2 &&
                table.dim(0) == static_cast<int64_t>(rows.list.size()) && table.dim(1) * k.dim(1) >= rows.longest_keys,
            kAttention, ": the page table is ", table, " and the pages are ", k, " but ", rows.list.size(),
            " segments with up to ", rows.longest_keys, " keys need [segments, pages] and [P, page, G, D]",
            Hint("append the keys to the cache before attending"));
}

// Pages outside the window may be freed (any number, usually -1); those a row sees must exist. One call for all
// segments, since decoding runs this for every layer of every token.
void check_seen_pages(Context& cx, const Tensor& k, const Rows& rows, const AttentionOptions& options) {
  if (cx.recordable) return;  // tables of a cache
  const Tensor& table = options.table;
  const int64_t page = k.dim(1);
  std::vector<int32_t> spans;
  spans.reserve(2 * rows.list.size());
  for (const Segment& s : rows.list) {
    const bool sees = s.rows > 0 && s.keys > 0;
    int64_t first = options.window > 0 ? s.position - options.window + 1 : 0;
    if (options.chunk > 0) first = std::max(first, s.position / options.chunk * options.chunk);
    const int64_t oldest = sees ? std::clamp<int64_t>(first, 0, s.keys - 1) : 0;
    spans.push_back(static_cast<int32_t>(oldest / page));
    spans.push_back(static_cast<int32_t>(sees ? (s.keys - 1) / page + 1 : oldest / page));
  }
  int64_t first = -1;
  const Tensor seen = cx.upload(spans).view({table.dim(0), 2});
  cx.kernels.outside(cx.exec, {.ids = table, .limit = k.dim(0), .spans = seen, .first = &first});
  if (first < 0) return;
  int32_t value = 0;
  table.device().download(&value, table.data() + first * size_of(DType::i32), size_of(DType::i32));
  QKV_FAIL(kAttention, ": of segment ", first / table.dim(1), " seen pages[", first % table.dim(1), "] is ", value,
           " but must be in [0, ", k.dim(0), ")", Hint("append keys to the cache, and keep the pages rows still see"));
}

// Keys or values: floats, or in pages also i8 with scales.
void check_stored(Context& cx, const char* name, const Tensor& t, const Tensor& scales, const Tensor& table) {
  if (!scales.defined()) {
    QKV_CHECK(!t.defined() || t.dtype() != DType::i8, kAttention, ": ", name, " is ", t, " and has no scales",
              Hint("bytes mean nothing without the scales scatter_rows wrote beside them"));
    return check_vectors(cx, kAttention, name, t);
  }
  check_bytes(cx, kAttention, name, t, scales);
  QKV_CHECK(table.defined(), kAttention, ": ", name, " is ", t, " with scales ", scales, " but does not lie in pages",
            Hint("bytes are for caches: pass the page table, or keys and values as floats"));
}

void check_qkv(Context& cx, const Tensor& q, const Tensor& k, const Tensor& v, const Rows& rows,
               const AttentionOptions& options) {
  check_vectors(cx, kAttention, "q", q);
  check_stored(cx, "k", k, options.k_scales, options.table);
  check_stored(cx, "v", v, options.v_scales, options.table);
  QKV_CHECK(q.rank() == 3 && k.rank() >= 3 && k.rank() == v.rank() && q.cols() == k.cols() && q.cols() > 0 &&
                k.shape().with(-1, v.cols()) == v.shape(),
            kAttention, ": q is ", q, ", k is ", k, ", v is ", v,
            Hint("q [N, H, D], k [M, G, D], v [M, G, E]: k has q's head width, v has k's rows and heads"));
  QKV_CHECK(q.dim(0) == rows.rows, kAttention, ": q is ", q, " but the segments are of ", rows.rows, " rows",
            Hint("give the Rows the pass was made with"));
  if (options.table.defined()) {
    check_pages(cx, k, v, rows, options.table);
    check_seen_pages(cx, k, rows, options);
  } else {
    QKV_CHECK(rows.keys != Rows::kPaged, kAttention, ": k is ", k, " but the segments' up to ", rows.longest_keys,
              " keys are in pages and there is no table", Hint("pass the cache's pages and its table"));
    QKV_CHECK(k.rank() == 3 && k.dim(0) == rows.keys, kAttention, ": k is ", k, " but the segments index ", rows.keys,
              " keys", Hint("cross-attention takes Rows::cross"));
  }
}

Tensor find_kv_map(Context& cx, const Tensor& given, int64_t heads, int64_t kv_heads) {
  if (given.defined()) {
    check_indices(cx, kAttention, "kv_map", given);
    check_shape(kAttention, "kv_map", given, {heads});
    check_index_range(cx, kAttention, "kv_map", given, kv_heads);
    return given;
  }
  QKV_CHECK(kv_heads > 0 && heads % kv_heads == 0, kAttention, ": ", heads, " query heads do not divide over ",
            kv_heads, " key/value heads", Hint("give kv_map: the key/value head of each query head"));
  std::vector<int32_t> map;
  for (int64_t h = 0; h < heads; ++h) map.push_back(static_cast<int32_t>(h / (heads / kv_heads)));
  return cx.lasting(map);
}

AttentionInput input_of(Context& cx, const Tensor& q, const Tensor& k, const Tensor& v, const Rows& rows,
                        const AttentionOptions& o) {
  check_qkv(cx, q, k, v, rows, o);
  const int64_t heads = q.dim(1), kv_heads = k.dim(-2);
  const double scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(q.cols())));
  check_number(kAttention, "scale", scale, -1e30, 1e30);
  check_number(kAttention, "softcap", o.softcap, 0, 1e30);
  check_number(kAttention, "dropout", static_cast<double>(o.dropout), 0, 0.999);
  QKV_CHECK(o.window >= 0, kAttention, ": window is ", o.window, " but must be 0 (all keys) or more",
            Hint("a window counts the keys a row sees, itself included"));
  QKV_CHECK(o.chunk >= 0, kAttention, ": chunk is ", o.chunk, " but must be 0 (all keys) or more",
            Hint("a chunk counts positions: a row sees the keys of its own"));
  if (o.sinks != nullptr) check_weight(cx, kAttention, *o.sinks, {heads}, q);
  if (o.slopes.defined()) check_per_head(cx, "slopes", o.slopes, heads);
  QKV_CHECK((o.bias != nullptr) == o.buckets.defined(), kAttention,
            ": a relative bias needs both the weight and its buckets", Hint("relative_buckets() makes the list"));
  if (o.bias != nullptr) {
    check_weight(cx, kAttention, *o.bias, {heads, o.bias->shape()[-1]}, q);
    check_indices(cx, kAttention, "buckets", o.buckets);
    QKV_CHECK(o.buckets.count() % 2 == 1, kAttention, ": buckets are ", o.buckets, " but must be [2 R + 1]",
              Hint("one bucket per distance from -R to R: relative_buckets() makes the list"));
    check_index_range(cx, kAttention, "buckets", o.buckets, o.bias->shape()[-1]);
  }
  if (o.mask.defined()) check_mask(cx, o.mask, rows, heads);
  return {.q = q,
          .k = k,
          .v = v,
          .k_scales = o.k_scales,
          .v_scales = o.v_scales,
          .segments = rows.segments,
          .table = o.table,
          .kv_map = find_kv_map(cx, o.kv_map, heads, kv_heads),
          .scale = scale,
          .softcap = o.softcap,
          .causal = o.causal,
          .window = std::min(o.window, kWholeWindow),
          .chunk = std::min(o.chunk, kWholeWindow),
          .sinks = o.sinks != nullptr ? o.sinks->master(cx) : Tensor(),
          .slopes = o.slopes,
          .bias = o.bias != nullptr ? o.bias->master(cx) : Tensor(),
          .buckets = o.buckets,
          .mask = o.mask,
          .dropout = dropout_of(cx, {o.dropout, o.place, Site::attn_probs}),
          .longest_keys = rows.longest_keys,
          .longest_rows = rows.longest_rows,
          .packed = rows.packed};
}

AttentionStats stats_of(Context& cx, const StatsWanted& wanted, const AttentionInput& in) {
  const int64_t n = in.q.dim(0), heads = in.q.dim(1);
  const DType exact = cx.precision.exact;
  const auto per_head = [&] { return cx.constant({n, heads}, exact); };
  AttentionStats s{.entropy = per_head(), .distance = per_head(), .first = per_head(), .highest = per_head()};
  s.argmax = cx.constant({n, heads}, DType::i32);
  if (!wanted.offsets.empty()) {
    s.offsets = cx.upload(wanted.offsets);
    s.at_offset = cx.constant({n, heads, s.offsets.count()}, exact);
  }
  if (wanted.classes > 0) {
    check_indices(cx, kAttention, "key_classes", wanted.key_classes);
    check_shape(kAttention, "key_classes", wanted.key_classes,
                {in.table.defined() ? in.k.dim(0) * in.k.dim(1) : in.k.dim(0)});
    if (!wanted.checked) check_index_range(cx, kAttention, "key_classes", wanted.key_classes, wanted.classes);
    s.key_classes = wanted.key_classes;
    s.in_class = cx.constant({n, heads, wanted.classes}, exact);
  }
  return s;
}

// Each head's importance from backward, for a probe that asked for it.
struct ShownImportance {
  Probe* probe;
  Place place;
  Rows rows;  // a copy: the pass' own may be gone when backward runs
};

std::shared_ptr<ShownImportance> importance_wanted(Context& cx, Place place, const Rows& rows) {
  if (!has(cx.ask(place, Site::attn_z), Ask::importance)) return nullptr;
  return std::make_shared<ShownImportance>(ShownImportance{cx.probe, place, rows});
}

void record_backward(Context& cx, const AttentionInput& in, const Attended& made, const Rows& rows,
                     const AttentionOptions& o) {
  cx.tape->record(kAttention, [in, z = made.z, lse = made.lse, sinks = o.sinks, bias = o.bias,
                               importance = o.importance, shown = importance_wanted(cx, o.place, rows)](Backward& bk) {
    const Tensor delta = importance.defined() ? importance : bk.make(lse.shape(), lse.dtype());
    bk.kernels.attention_backward(bk.exec, {.in = in,
                                            .dq = bk.grad(in.q),
                                            .dk = bk.grad(in.k),
                                            .dv = bk.grad(in.v),
                                            .dsinks = sinks != nullptr ? bk.grad(*sinks) : Grad{},
                                            .dbias = bias != nullptr ? bk.grad(*bias) : Grad{},
                                            .dz = bk.dy(z),
                                            .z = z,
                                            .lse = lse,
                                            .delta = delta});
    if (shown) {
      shown->probe->visit_importance(bk.cx, {.place = shown->place, .site = Site::attn_z, .rows = &shown->rows}, delta);
    }
  });
}

Tensor pattern_of(Context& cx, const AttentionInput& in, const Tensor& lse, int64_t keys,
                  const PatternOptions& pattern) {
  const int64_t shown = pattern.which.defined() ? pattern.which.count() : in.q.dim(0);
  Tensor out = cx.constant({shown, in.q.dim(1), keys}, cx.precision.exact);
  cx.kernels.attention_pattern(cx.exec,
                               {.stage = pattern.stage, .in = in, .lse = lse, .rows = pattern.which, .out = out});
  return out;
}

// The most keys that one of these rows has. Others in the pass may have many more.
int64_t longest_keys_of(const std::vector<int32_t>& wanted, const Rows& rows) {
  int64_t most = 1;
  for (const Segment& segment : rows.list) {
    const bool inside = std::any_of(wanted.begin(), wanted.end(), [&](int32_t row) {
      return row >= segment.first_row && row - segment.first_row < segment.rows;
    });
    if (inside) most = std::max<int64_t>(most, segment.keys);
  }
  return most;
}

// Taps of scores and probabilities, for the rows the probe asked for or all.
void show(Context& cx, Site site, const AttentionInput& in, const Tensor& lse, const Rows& rows, Place place) {
  const Ask asked = cx.ask(place, site);
  if (cx.replaying || !(has(asked, Ask::rows) || has(asked, Ask::pattern))) return;
  PatternOptions pattern{.stage = site == Site::attn_scores ? AttentionPatternArgs::Stage::biased
                                                            : AttentionPatternArgs::Stage::probs};
  int64_t keys = rows.longest_keys;
  if (!has(asked, Ask::pattern)) {
    const std::vector<int32_t> wanted = cx.probe->rows_wanted(place);
    pattern.which = cx.upload(wanted);
    check_index_range(cx, kAttention, "rows a probe wants", pattern.which, rows.rows);
    keys = longest_keys_of(wanted, rows);
  }
  Tensor out = pattern_of(cx, in, lse, keys, pattern);
  cx.probe->visit(cx, {.place = place, .site = site, .rows = &rows}, out);
}

}  // namespace

Attended attention(Context& cx, Tensor q, Tensor k, Tensor v, const Rows& rows, const AttentionOptions& options) {
  const Place place = options.place;
  const auto rows_only = [](const Tensor& t, int rank) {
    return t.defined() && t.rank() > rank ? t.flatten_to(rank) : t;
  };
  q = rows_only(q, 3);
  if (!options.table.defined()) {
    k = rows_only(k, 3);
    v = rows_only(v, 3);
  }
  cx.tap(place, Site::attn_q, q, &rows);
  if (!options.table.defined()) {  // paged keys and values were tapped before they were written
    cx.tap(place, Site::attn_k, k, &rows);
    cx.tap(place, Site::attn_v, v, &rows);
  }
  const AttentionInput in = input_of(cx, q, k, v, rows, options);
  if (options.importance.defined()) {
    check_vectors(cx, kAttention, "importance", options.importance);
    check_shape(kAttention, "importance", options.importance, {q.dim(0), q.dim(1)});
  }
  QKV_CHECK(cx.tape == nullptr || !options.table.defined(), kAttention, ": k ", k,
            " lies in pages, which carry no gradient, but a tape is recording",
            Hint("train without a cache: pass k and v as rows"));

  Tensor z = cx.make({q.dim(0), q.dim(1), v.cols()}, q.dtype());
  Tensor lse = cx.make({q.dim(0), q.dim(1)}, cx.precision.exact);
  const bool counting = !cx.replaying && has(cx.ask(place, Site::attn_probs), Ask::stats);
  const AttentionStats stats = counting ? stats_of(cx, cx.probe->stats_wanted(place), in) : AttentionStats{};
  cx.kernels.attention(cx.exec, {.in = in, .z = z, .lse = lse, .stats = stats});
  if (cx.tape != nullptr) record_backward(cx, in, {.z = z, .lse = lse}, rows, options);

  if (cx.probe != nullptr) [[unlikely]] {
    if (counting) cx.probe->visit_stats(cx, {.place = place, .site = Site::attn_probs, .rows = &rows}, stats);
    show(cx, Site::attn_scores, in, lse, rows, place);
    show(cx, Site::attn_probs, in, lse, rows, place);
    cx.tap(place, Site::attn_lse, lse, &rows);
    cx.tap(place, Site::attn_z, z, &rows);
  }
  return {cx.finish(kAttention, z), lse};
}

Tensor attention_pattern(Context& cx, const Tensor& q, const Tensor& k, const Tensor& lse, const Rows& rows,
                         const AttentionOptions& options, const PatternOptions& pattern) {
  AttentionOptions keys_only = options;
  keys_only.v_scales = options.k_scales;
  const AttentionInput in = input_of(cx, q, k, k, rows, keys_only);
  check_vectors(cx, "attention_pattern", "lse", lse);
  check_shape("attention_pattern", "lse", lse, {q.dim(0), q.dim(1)});
  if (pattern.which.defined()) {
    check_indices(cx, "attention_pattern", "which", pattern.which);
    check_index_range(cx, "attention_pattern", "which", pattern.which, rows.rows);
  }
  return pattern_of(cx, in, lse, rows.longest_keys, pattern);
}

}  // namespace qkv::ops
