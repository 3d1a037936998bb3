#include "nn/attention.h"

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
  if (spec.rope) rope_ = ropes.get(*spec.rope);
}

Tensor Attention::forward(Context& cx, const Tensor& x, const How& how) const {
  const Heads heads = spec_.latent ? project_latent(cx, x, how.rows) : project(cx, x, x, how.rows);
  return attend(cx, how.pages != nullptr ? into_pages(cx, heads, *how.pages) : heads, how);
}

Tensor Attention::forward_across(Context& cx, const Tensor& x, const Tensor& memory, const How& how) const {
  return attend(cx, project(cx, x, memory, how.rows), how);
}

void Attention::remember(Context& cx, const Tensor& memory, const KvPages& pages) const {
  into_pages(cx, project_kv(cx, memory, pages.rows), pages);
}

Tensor Attention::forward_across(Context& cx, const Tensor& x, const KvPages& pages, const ops::Onto& onto) const {
  const KvCache::Layer& layer = pages.cache->layer(place_.layer);
  return attend(cx, {.q = project_q(cx, x, pages.rows), .k = layer.k, .v = layer.v},
                {.rows = pages.rows, .pages = &pages, .onto = onto});
}

// A norm over each head, or over all heads joined: there those that were cut come along, and are left behind after it.
Tensor Attention::normed_heads(Context& cx, Tensor x, const std::optional<Norm>& norm, int64_t heads) const {
  if (norm && spec_.qk_norm == AttentionSpec::QkNorm::whole) {
    x = norm->forward(cx, x);
    if (x.cols() > heads * spec_.width) x = x.slice(-1, 0, heads * spec_.width);
  }
  x = ops::split_heads(x, heads);
  return norm && spec_.qk_norm == AttentionSpec::QkNorm::per_head ? norm->forward(cx, x) : x;
}

Tensor Attention::project_q(Context& cx, const Tensor& x, const Rows& rows) const {
  return turned(cx, normed_heads(cx, q_->forward(cx, x), q_norm_, spec_.heads), rows);
}

Attention::Heads Attention::project_kv(Context& cx, const Tensor& x, const Rows& rows) const {
  return {.k = turned(cx, normed_heads(cx, k_->forward(cx, x), k_norm_, spec_.kv_heads), rows),
          .v = ops::split_heads(v_->forward(cx, x), spec_.kv_heads)};
}

Attention::Heads Attention::project(Context& cx, const Tensor& x, const Tensor& memory, const Rows& rows) const {
  const Tensor q = project_q(cx, x, rows);
  Heads heads = project_kv(cx, memory, rows);
  heads.q = q;
  return heads;
}

Attention::Heads Attention::project_latent(Context& cx, const Tensor& x, const Rows& rows) const {
  const LatentSpec& latent = *spec_.latent;
  const Tensor q = q_ ? q_->forward(cx, x) : q_b_->forward(cx, q_a_norm_->forward(cx, q_a_->forward(cx, x)));
  const Tensor small = kv_a_->forward(cx, x);  // [N, rank + turned]
  const Tensor kv =
      ops::split_heads(kv_b_->forward(cx, kv_a_norm_->forward(cx, small.slice(1, 0, latent.kv_rank))), spec_.kv_heads);
  // The columns that turn are the same for all heads.
  const Tensor shared_key = ops::split_heads(small.slice(1, latent.kv_rank, latent.turned), 1);
  return {.q = rope_->forward(cx, ops::split_heads(q, spec_.heads), rows),
          .k = ops::concat(cx, kv.slice(2, 0, latent.still), rope_->forward_bare(cx, shared_key, rows)),
          .v = kv.slice(2, latent.still, spec_.value_width)};
}

// These rows' keys and values to their places; then all that went before is seen with them.
Attention::Heads Attention::into_pages(Context& cx, Heads heads, const KvPages& pages) const {
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

Tensor Attention::attend(Context& cx, const Heads& heads, const How& how) const {
  ops::AttentionOptions options{.place = place_,
                                .scale = spec_.scale,
                                .softcap = spec_.softcap,
                                .causal = spec_.causal,
                                .window = spec_.window,
                                .sinks = sinks_,
                                .bias = relative_,
                                .dropout = spec_.dropout};
  if (how.pages != nullptr) {
    const KvCache::Layer& layer = how.pages->cache->layer(place_.layer);
    options.table = how.pages->tables[layer.set];
    options.k_scales = layer.k_scales;
    options.v_scales = layer.v_scales;
  }
  if (!spec_.kv_map.empty()) options.kv_map = cx.upload(spec_.kv_map);
  if (relative_ != nullptr) options.buckets = cx.upload(buckets_);
  const Tensor z = ops::attention(cx, heads.q, heads.k, heads.v, how.rows, options).z;  // [N, H, E]
  const bool shown = cx.watched(place_, Site::attn_out);
  Tensor out = out_.forward_to_stream(cx, ops::merge_heads(z), shown ? ops::Onto{} : how.onto);
  if (!shown) return out;
  cx.tap(place_, Site::attn_out, out, &how.rows);
  return ops::add_onto(cx, how.onto, out);
}

}  // namespace qkv
