// Multi-head attention with its projections: softmax(q k^T / sqrt(D)) v per head, W_O of all heads joined.
#pragma once

#include <optional>

#include "nn/kv_cache.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/position_tables.h"

namespace qkv {

class Attention {
 public:
  // `name`: prefix of the weights; `relative`: the relative bias that all layers of the stack share, if any.
  struct Names {
    std::string name, relative;
  };
  Attention(const AttentionSpec& spec, Place place, const Weights& weights, const Names& names, Ropes& ropes);

  struct Options {
    const Rows& rows;
    const KvPages* pages = nullptr;  // the rows' keys and values are appended to the cache and read there
    ops::Residual residual = {};     // added to the output in W_O's product; absent: nothing is added
  };
  Tensor forward(Context& cx, const Tensor& x, const Options& options) const;  // [N, C] -> [N, C]
  // Cross attention: queries of x, keys and values of `memory`, the encoder's output; `rows` pairs them.
  Tensor forward_cross(Context& cx, const Tensor& x, const Tensor& memory, const Options& options) const;
  // The same in two steps: keys and values once into a cache, queries in every pass.
  void cache_source(Context& cx, const Tensor& memory, const KvPages& pages) const;
  Tensor forward_cross(Context& cx, const Tensor& x, const KvPages& pages, const ops::Residual& residual) const;

 private:
  struct Heads {
    Tensor q, k, v;  // [N, H, D], [M, G, D], [M, G, E]
  };
  Heads project(Context& cx, const Tensor& x, const Tensor& memory, const Rows& rows) const;
  Tensor project_q(Context& cx, const Tensor& x, const Rows& rows) const;
  Tensor queries(Context& cx, const Tensor& projected, const Rows& rows) const;
  Heads keys_and_values(Context& cx, const Tensor& k, const Tensor& v, const Rows& rows) const;
  Heads project_kv(Context& cx, const Tensor& x, const Rows& rows) const;
  Heads project_latent(Context& cx, const Tensor& x, const Rows& rows) const;
  Heads append_to_cache(Context& cx, Heads heads, const KvPages& pages) const;
  Heads project_to_cache(Context& cx, const Tensor& x, const KvPages& pages) const;
  Tensor attend(Context& cx, const Heads& heads, const Options& options) const;
  Tensor split_and_norm(Context& cx, Tensor x, const std::optional<Norm>& norm, int64_t heads) const;
  Tensor rotate(Context& cx, const Tensor& x, const Rows& rows) const {
    return rope_ ? rope_->forward(cx, x, rows) : x;
  }
  Tensor sharpen(Context& cx, const Tensor& q, const Rows& rows) const;

  AttentionSpec spec_;
  Place place_;
  std::optional<Linear> q_, k_, v_;                // projections, or with LatentSpec
  std::optional<Linear> q_a_, q_b_, kv_a_, kv_b_;  // down (a) and up (b) projections
  std::optional<Norm> q_norm_, k_norm_, q_a_norm_, kv_a_norm_;
  Linear out_;
  const Param *sinks_, *relative_;
  std::vector<int32_t> buckets_;
  std::vector<float> slopes_;  // ALiBi
  std::shared_ptr<const Rope> rope_;
};

}  // namespace qkv
