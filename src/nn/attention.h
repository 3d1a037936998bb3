// Multi-head attention with its projections: softmax(q k^T / sqrt(D)) v per head, W_O of all heads joined.
#pragma once

#include <algorithm>
#include <optional>

#include "nn/kv_cache.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/position_tables.h"

namespace qkv {

// DeepSeek: keys and values are read out of one small vector per token.
struct LatentSpec {
  int64_t q_rank = 0;  // 0: queries are projected directly
  int64_t kv_rank = 0;
  int64_t still = 0, turned = 0;  // columns of a key that do not turn, and that do
  bool operator==(const LatentSpec&) const = default;
};

// T5: a bias per head and bucket of distances, one table for all layers of a stack; where heads were cut, one each.
struct RelativeBiasSpec {
  int64_t buckets = 32, max_distance = 128;
  bool in_each_layer = false;
  bool operator==(const RelativeBiasSpec&) const = default;
};

struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0;
  int64_t width = 0, value_width = 0;  // of one head's keys and values
  std::vector<int32_t> kv_map;         // key/value head of each query head; empty: equal groups in order
  bool causal = false;
  int64_t window = 0;           // 0: all keys
  std::optional<double> scale;  // 1 / sqrt(width) if not said
  double softcap = 0;
  bool q_bias = false, k_bias = false, v_bias = false, out_bias = false;
  enum class QkNorm : uint8_t { none, per_head, whole } qk_norm = QkNorm::none;
  // A norm over all heads joined needs those that were cut too: W_Q and W_K hold so many, the cut ones last.
  int64_t normed_heads = 0, normed_kv_heads = 0;  // 0: none was cut
  NormSpec norm;                                  // of q, k and latents
  bool sinks = false;
  std::optional<RopeSpec> rope;
  std::optional<RelativeBiasSpec> relative;
  std::optional<LatentSpec> latent;
  float dropout = 0;  // on the probabilities

  int64_t projected_heads() const { return std::max(heads, normed_heads); }  // of W_Q
  int64_t projected_kv_heads() const { return std::max(kv_heads, normed_kv_heads); }
};

class Attention {
 public:
  // `name`: of this attention's weights; `relative`: of the stack's relative bias, where it has one for all layers.
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
  Heads project_kv(Context& cx, const Tensor& x, const Rows& rows) const;
  Heads project_latent(Context& cx, const Tensor& x, const Rows& rows) const;
  Heads append_to_cache(Context& cx, Heads heads, const KvPages& pages) const;
  Tensor attend(Context& cx, const Heads& heads, const Options& options) const;
  Tensor split_and_norm(Context& cx, Tensor x, const std::optional<Norm>& norm, int64_t heads) const;
  Tensor rotate(Context& cx, const Tensor& x, const Rows& rows) const {
    return rope_ ? rope_->forward(cx, x, rows) : x;
  }

  AttentionSpec spec_;
  Place place_;
  std::optional<Linear> q_, k_, v_;                // projections, or
  std::optional<Linear> q_a_, q_b_, kv_a_, kv_b_;  // their latent forms
  std::optional<Norm> q_norm_, k_norm_, q_a_norm_, kv_a_norm_;
  Linear out_;
  const Param *sinks_, *relative_;
  std::vector<int32_t> buckets_;
  std::shared_ptr<const Rope> rope_;
};

}  // namespace qkv
