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
  double offset = 0;  // multiplies by (weight + offset)
  bool bias = true;   // layer: adds one
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

// Llama 4: queries of far positions are scaled up, times 1 + scale log(1 + floor((p + 1) / floor)).
struct TemperatureSpec {
  double scale = 0.1, floor = 8192;
  bool operator==(const TemperatureSpec&) const = default;
};

struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0;
  int64_t width = 0, value_width = 0;  // of one head's keys and values
  std::vector<int32_t> kv_map;         // key/value head of each query head; empty: equal groups in order
  bool causal = false;
  int64_t window = 0;           // 0: all keys
  int64_t chunk = 0;            // 0: all keys; else those of the row's own chunk of so many positions (Llama 4)
  std::optional<double> scale;  // default 1 / sqrt(width)
  double softcap = 0;
  bool q_bias = false, k_bias = false, v_bias = false, out_bias = false;
  // unit: of every head, without a weight, so that the rotation may follow or precede it
  enum class QkNorm : uint8_t { none, per_head, whole, unit } qk_norm = QkNorm::none;
  // A norm over all heads joined still includes heads that were cut: W_Q and W_K keep them, as the last ones.
  int64_t normed_heads = 0, normed_kv_heads = 0;  // heads of W_Q and W_K then; 0: none was cut
  NormSpec norm;                                  // of q, k and latents
  bool sinks = false;
  std::optional<RopeSpec> rope;
  std::optional<RelativeBiasSpec> relative;
  double alibi = 0;  // scores + alibi slope_h (j - i); 0: none
  std::optional<TemperatureSpec> temperature;
  std::optional<LatentSpec> latent;
  float dropout = 0;  // on the probabilities

  // The most keys a causal row sees, itself included; 0: all before it.
  int64_t reach() const { return window == 0 || chunk == 0 ? window + chunk : std::min(window, chunk); }
  int64_t projected_heads() const { return std::max(heads, normed_heads); }  // of W_Q
  int64_t projected_kv_heads() const { return std::max(kv_heads, normed_kv_heads); }
};

struct ExpertsSpec {
  int64_t count = 0, width = 0;
  RouteRule rule;
  int64_t shared_width = 0;   // of the expert every token visits; 0: none
  bool shared_gate = false;   // its output is multiplied by sigmoid(w x)
  bool weigh_inputs = false;  // an expert reads w x, and its output is not weighted: Llama 4
  bool router_bias = false;
  bool correction = false;  // a bias on the scores, for the choice only
  bool bias = false;
};

struct FeedForwardSpec {
  int64_t width = 0;   // of the dense form; 0 without experts: the layer has no feed-forward
  bool gated = false;  // act(gate x) * (up x), else act(up x)
  Activation act;
  float gate_limit = 0, gate_shift = 0;  // see Gating
  bool bias = false;
  std::optional<ExpertsSpec> experts;
  float dropout = 0;  // after the activation

  bool absent() const { return width == 0 && !experts; }  // attention alone
  Gating gating() const { return {.act = act, .limit = gate_limit, .shift = gate_shift}; }
};

// Where the norms of a sublayer f are, x being the residual stream.
enum class NormPlace : uint8_t {
  before,    // x + f(norm(x))              GPT-2, Llama
  after,     // norm(x + f(x))              the 2017 Transformer, BERT
  branch,    // x + norm(f(x))              OLMo 2
  around,    // x + norm2(f(norm1(x)))      Gemma
  parallel,  // x + f(norm1(x)) + g(norm2(x))  attention and feed-forward of the same x: GPT-NeoX
  shared,    // x + f(norm(x)) + g(norm(x))    the same with one norm: GPT-J
};

struct LayerSpec {
  AttentionSpec attention;
  std::optional<AttentionSpec> cross;  // cross attention: the decoder of an encoder-decoder
  FeedForwardSpec feed;
  NormPlace place = NormPlace::before;
  NormSpec norm;
  bool attention_norm = true;  // false: attention reads x itself (the first layer of ModernBERT)
  double branch_factor = 1;    // on a sublayer's output, before it is added (Granite)
  float dropout = 0;           // the same
};

}  // namespace qkv
