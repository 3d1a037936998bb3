// Specs of a layer and its parts: plain structs, without the classes built from them.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "ops/activations.h"
#include "ops/positions.h"

namespace qkv {

struct NormSpec {
  enum class Kind : uint8_t { rms, layer } kind = Kind::rms;
  double eps = 1e-5;
  double offset = 0;  // rms: multiplies by (weight + offset)
  bool operator==(const NormSpec&) const = default;
};

struct RopeSpec {
  double base = 10000;
  int64_t width = 0;         // rotary columns of a head,
  int64_t first = 0;         // from this one on
  bool interleaved = false;  // pairs (2i, 2i + 1) instead of (i, i + width / 2)
  ops::RopeScaling scaling;
  bool operator==(const RopeSpec&) const = default;
};

// DeepSeek's multi-head latent attention: keys and values are projected from one small latent vector per token.
struct LatentSpec {
  int64_t q_rank = 0;  // 0: queries are projected directly
  int64_t kv_rank = 0;
  int64_t nope_width = 0, rope_width = 0;  // columns of a key without and with rotary positions
  bool operator==(const LatentSpec&) const = default;
};

// T5: a bias per head and bucket of distances. One table for all layers of a stack, or one per layer if heads were cut.
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
  std::optional<double> scale;  // default 1 / sqrt(width)
  double softcap = 0;
  bool q_bias = false, k_bias = false, v_bias = false, out_bias = false;
  enum class QkNorm : uint8_t { none, per_head, whole } qk_norm = QkNorm::none;
  // A norm over all heads joined still includes heads that were cut: W_Q and W_K keep them, as the last ones.
  int64_t normed_heads = 0, normed_kv_heads = 0;  // heads of W_Q and W_K then; 0: none was cut
  NormSpec norm;                                  // of q, k and latents
  bool sinks = false;
  std::optional<RopeSpec> rope;
  std::optional<RelativeBiasSpec> relative;
  std::optional<LatentSpec> latent;
  float dropout = 0;  // on the probabilities

  int64_t projected_heads() const { return std::max(heads, normed_heads); }  // of W_Q
  int64_t projected_kv_heads() const { return std::max(kv_heads, normed_kv_heads); }
};

struct ExpertsSpec {
  int64_t count = 0, width = 0;
  RouteRule rule;
  int64_t shared_width = 0;  // of the expert every token visits; 0: none
  bool router_bias = false;
  bool correction = false;  // a bias on the scores, for the choice only
  bool bias = false;
};

struct FeedForwardSpec {
  int64_t width = 0;   // of the dense form
  bool gated = false;  // act(gate x) * (up x), else act(up x)
  Activation act;
  float gate_limit = 0, gate_shift = 0;  // see Gating
  bool bias = false;
  std::optional<ExpertsSpec> experts;
  float dropout = 0;  // after the activation

  Gating gating() const { return {.act = act, .limit = gate_limit, .shift = gate_shift}; }
};

// Where the norms of a sublayer f are, x being the residual stream.
enum class NormPlace : uint8_t {
  before,    // x + f(norm(x))              GPT-2, Llama
  after,     // norm(x + f(x))              the 2017 Transformer, BERT
  branch,    // x + norm(f(x))              OLMo 2
  around,    // x + norm2(f(norm1(x)))      Gemma
  parallel,  // x + f(norm1(x)) + g(norm2(x))  attention and feed-forward of the same x: GPT-NeoX
};

struct LayerSpec {
  AttentionSpec attention;
  std::optional<AttentionSpec> cross;  // cross attention: the decoder of an encoder-decoder
  FeedForwardSpec feed;
  NormPlace place = NormPlace::before;
  NormSpec norm;
  float dropout = 0;  // on a sublayer's output, before it is added
};

}  // namespace qkv
