#include "nn/attention.h"

#include <array>
#include <cmath>

namespace qkv {
namespace {

std::optional<Linear> linear_or_none(const Weights& weights, const std::string& name) {
  return weights.find(name) != nullptr ? std::optional<Linear>(std::in_place, weights, name) : std::nullopt;
}
std::optional<Norm> norm_or_none(const NormSpec& spec, const Weights& weights, const std::string& name) {
  return weights.find(name) != nullptr ? std::optional<Norm>(std::in_place, spec, weights, name) : std::nullopt;
}

}  // namespace

Attention::Attention(const AttentionSpec& spec, Place place, const Weights& weights, const Names& names, Ropes& ropes)
    : spec_(spec),
      place_(place),
      q_(linear_or_none(weights, names.name + ".q")),
      k_(linear_or_none(weights, names.name + ".k")),
      v_(linear_or_none(weights, names.name + ".v")),
      q_a_(linear_or_none(weights, names.name + ".q_a")),
      q_b_(linear_or_none(weights, names.name + ".q_b")),
      kv_a_(linear_or_none(weights, names.name + ".kv_a")),
      kv_b_(linear_or_none(weights, names.name + ".kv_b")),
      q_norm_(norm_or_none(spec.norm, weights, names.name + ".q_norm")),
      k_norm_(norm_or_none(spec.norm, weights, names.name + ".k_norm")),
      q_a_norm_(norm_or_none(spec.norm, weights, names.name + ".q_a_norm")),
      kv_a_norm_(norm_or_none(spec.norm, weights, names.name + ".kv_a_norm")),
      out_(weights, names.name + ".o"),
      sinks_(weights.find(names.name + ".sinks")),
      relative_(!spec.relative
                    ? nullptr
                    : &weights.at(spec.relative->in_each_layer ? names.name + ".relative" : names.relative)) {
  if (spec.relative) {
    buckets_ = ops::relative_buckets(spec.relative->buckets, spec.relative->max_distance, !spec.causal);
  }
  if (spec.alibi != 0) {
    slopes_ = ops::alibi_slopes(spec.heads);
    for (float& slope : slopes_) slope *= static_cast<float>(spec.alibi);
  }
  if (spec.rope) rope_ = ropes.get(*spec.rope);
}

Tensor Attention::forward(Context& cx, const Tensor& x, const Options& options) const {
  const bool read = cx.watched(place_, Site::attn_k) || cx.watched(place_, Site::attn_v);
  if (options.pages != nullptr && !spec_.latent && rope_ && !read) {
    return attend(cx, project_to_cache(cx, x, *options.pages), options);
  }
  const Heads heads = spec_.latent ? project_latent(cx, x, options.rows) : project(cx, x, x, options.rows);
  return attend(cx, options.pages != nullptr ? append_to_cache(cx, heads, *options.pages) : heads, options);
}

Tensor Attention::forward_cross(Context& cx, const Tensor& x, const Tensor& memory, const Options& options) const {
  return attend(cx, project(cx, x, memory, options.rows), options);
}

void Attention::cache_source(Context& cx, const Tensor& memory, const KvPages& pages) const {
  append_to_cache(cx, project_kv(cx, memory, pages.rows), pages);
}

Tensor Attention::forward_cross(Context& cx, const Tensor& x, const KvPages& pages,
                                const ops::Residual& residual) const {
  const KvCache::Layer& layer = pages.cache->layer(place_.layer);
  return attend(cx, {.q = project_q(cx, x, pages.rows), .k = layer.k, .v = layer.v},
                {.rows = pages.rows, .pages = &pages, .residual = residual});
}

// [N, H D] -> [N, H, D], normed per head or over all heads joined. A joined norm includes cut heads; they are dropped
// after it.
Tensor Attention::split_and_norm(Context& cx, Tensor x, const std::optional<Norm>& norm, int64_t heads) const {
  if (norm && spec_.qk_norm == AttentionSpec::QkNorm::whole) {
    x = norm->forward(cx, x);
    if (x.cols() > heads * spec_.width) x = x.slice(-1, 0, heads * spec_.width);
  }
  x = ops::split_heads(x, heads);
  if (spec_.qk_norm == AttentionSpec::QkNorm::unit) return ops::rms_norm(cx, x, {.eps = spec_.norm.eps});
  return norm && spec_.qk_norm == AttentionSpec::QkNorm::per_head ? norm->forward(cx, x) : x;
}

Tensor Attention::project_q(Context& cx, const Tensor& x, const Rows& rows) const {
  return queries(cx, q_->forward(cx, x), rows);
}

// What the projections become: heads, normed and turned.
Tensor Attention::queries(Context& cx, const Tensor& projected, const Rows& rows) const {
  return sharpen(cx, rotate(cx, split_and_norm(cx, projected, q_norm_, spec_.heads), rows), rows);
}
Attention::Heads Attention::keys_and_values(Context& cx, const Tensor& k, const Tensor& v, const Rows& rows) const {
  return {.k = rotate(cx, split_and_norm(cx, k, k_norm_, spec_.kv_heads), rows),
          .v = ops::split_heads(v, spec_.kv_heads)};
}

// q times its position's factor, see TemperatureSpec.
Tensor Attention::sharpen(Context& cx, const Tensor& q, const Rows& rows) const {
  if (!spec_.temperature) return q;
  const TemperatureSpec& t = *spec_.temperature;
  std::vector<float> factors(static_cast<size_t>(rows.rows), 1.0F);
  for (const Segment& s : rows.list) {
    for (int32_t r = 0; r < s.rows; ++r) {
      const double far = std::floor((static_cast<double>(s.position) + r + 1) / t.floor);
      factors[static_cast<size_t>(s.first_row + r)] = static_cast<float>(1 + t.scale * std::log1p(far));
    }
  }
  return ops::split_heads(ops::scale_rows(cx, ops::merge_heads(q), cx.upload(factors, {rows.rows, 1})), spec_.heads);
}

Attention::Heads Attention::project_kv(Context& cx, const Tensor& x, const Rows& rows) const {
  const std::array affines{k_->affine(), v_->affine()};
  const std::vector<Tensor> made = ops::linear_set(cx, as_operand(cx, x), affines);
  return keys_and_values(cx, made[0], made[1], rows);
}

Attention::Heads Attention::project(Context& cx, const Tensor& x, const Tensor& memory, const Rows& rows) const {
  if (x.data() != memory.data()) {
    const Tensor q = project_q(cx, x, rows);
    Heads heads = project_kv(cx, memory, rows);
    heads.q = q;
    return heads;
  }
  const std::array affines{q_->affine(), k_->affine(), v_->affine()};
  const std::vector<Tensor> made = ops::linear_set(cx, as_operand(cx, x), affines);
  Heads heads = keys_and_values(cx, made[1], made[2], rows);
  heads.q = queries(cx, made[0], rows);
  return heads;
}

Attention::Heads Attention::project_latent(Context& cx, const Tensor& x, const Rows& rows) const {
  const LatentSpec& latent = *spec_.latent;
  const Tensor q = q_ ? q_->forward(cx, x) : q_b_->forward(cx, q_a_norm_->forward(cx, q_a_->forward(cx, x)));
  const Tensor small = kv_a_->forward(cx, x);  // [N, kv_rank + rope_width]
  const Tensor kv =
      ops::split_heads(kv_b_->forward(cx, kv_a_norm_->forward(cx, small.slice(1, 0, latent.kv_rank))), spec_.kv_heads);
  // All heads share the rotary columns.
  const Tensor shared_key = ops::split_heads(small.slice(1, latent.kv_rank, latent.rope_width), 1);
  return {.q = rope_->forward(cx, ops::split_heads(q, spec_.heads), rows),
          .k = ops::concat(cx, kv.slice(2, 0, latent.nope_width), rope_->forward_rotary_only(cx, shared_key, rows)),
          .v = kv.slice(2, latent.nope_width, spec_.value_width)};
}

// Writes the rows' keys and values into the cache; q then attends to everything cached.
Attention::Heads Attention::append_to_cache(Context& cx, Heads heads, const KvPages& pages) const {
  cx.tap(place_, Site::attn_k, heads.k, &pages.rows);
  cx.tap(place_, Site::attn_v, heads.v, &pages.rows);
  const KvCache::Layer& layer = pages.cache->layer(place_.layer);
  const Tensor& slots = pages.slots[layer.set];
  ops::scatter_rows(cx, layer.k.flatten_to(3), heads.k, slots,
                    layer.k_scales ? layer.k_scales.flatten_to(2) : Tensor());
  ops::scatter_rows(cx, layer.v.flatten_to(3), heads.v, slots,
                    layer.v_scales ? layer.v_scales.flatten_to(2) : Tensor());
  return {.q = heads.q, .k = layer.k, .v = layer.v};
}

// project and append_to_cache, where nothing reads keys and values on their way.
Attention::Heads Attention::project_to_cache(Context& cx, const Tensor& x, const KvPages& pages) const {
  const std::array affines{q_->affine(), k_->affine(), v_->affine()};
  const std::vector<Tensor> made = ops::linear_set(cx, as_operand(cx, x), affines);
  const KvCache::Layer& layer = pages.cache->layer(place_.layer);
  const Tensor q = rope_->forward_to_cache(cx,
                                           {.q = split_and_norm(cx, made[0], q_norm_, spec_.heads),
                                            .k = split_and_norm(cx, made[1], k_norm_, spec_.kv_heads),
                                            .v = ops::split_heads(made[2], spec_.kv_heads),
                                            .cache_k = layer.k.flatten_to(3),
                                            .cache_v = layer.v.flatten_to(3),
                                            .k_scales = layer.k_scales ? layer.k_scales.flatten_to(2) : Tensor(),
                                            .v_scales = layer.v_scales ? layer.v_scales.flatten_to(2) : Tensor(),
                                            .slots = pages.slots[layer.set]},
                                           pages.rows);
  return {.q = sharpen(cx, q, pages.rows), .k = layer.k, .v = layer.v};
}

Tensor Attention::attend(Context& cx, const Heads& heads, const Options& options) const {
  ops::AttentionOptions with{.place = place_,
                             .scale = spec_.scale,
                             .softcap = spec_.softcap,
                             .causal = spec_.causal,
                             .window = spec_.window,
                             .chunk = spec_.chunk,
                             .sinks = sinks_,
                             .bias = relative_,
                             .dropout = spec_.dropout};
  if (options.pages != nullptr) {
    const KvCache::Layer& layer = options.pages->cache->layer(place_.layer);
    with.table = options.pages->tables[layer.set];
    with.k_scales = layer.k_scales;
    with.v_scales = layer.v_scales;
  }
  if (!spec_.kv_map.empty()) with.kv_map = cx.lasting(spec_.kv_map);
  if (!slopes_.empty()) with.slopes = cx.lasting(slopes_, {spec_.heads});
  if (relative_ != nullptr) with.buckets = cx.lasting(buckets_);
  const Tensor z = ops::merge_heads(ops::attention(cx, heads.q, heads.k, heads.v, options.rows, with).z);  // [N, H E]
  if (!cx.watched(place_, Site::attn_out)) return out_.forward_to_stream(cx, z, options.residual);
  Tensor out = out_.forward_to_stream(cx, z, ops::Residual{});
  cx.tap(place_, Site::attn_out, out, &options.rows);
  return ops::add_residual(cx, options.residual, out);
}

}  // namespace qkv
