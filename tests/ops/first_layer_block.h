// One layer of any family, composed from ops as config.json says, from recorded hidden states to the next ones.
#pragma once

#include "base/json.h"
#include "first_layer_weights.h"
#include "ops/positions.h"

namespace qkv::test {

class LayerPass;

struct Heads {
  Tensor q, k, v;  // [N, H, D], [N, G, D], [N, G, E]
};

// Where a family keeps the weights of a layer and how it orders them. Names are inside the layer; empty: has none.
struct Family {
  std::string layers = "model.layers.", inside = ".";  // before and after the layer's number
  std::string io;                                      // "encoder_", "decoder_"
  std::string norm1 = "input_layernorm", norm2 = "post_attention_layernorm", final_norm = "model.norm";
  std::string attention_norm, feed_norm;  // on what a branch brings
  std::string q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj", out = "self_attn.o_proj";
  std::string cross_norm, cross;  // cross-attention: names end like q, k, v and out
  std::string mlp = "mlp.", gate = "gate_proj", up = "up_proj", down = "down_proj";
  enum class Norms : uint8_t { before, after, parallel } norms = Norms::before;
  Heads (LayerPass::*project)(const Tensor& h);
  Tensor (LayerPass::*feed)(const Tensor& h);
  bool conv1d = false;  // weights are [in, out]
  bool causal = true;

  int64_t heads = 0, kv_heads = 0, width = 0;  // width of a head
  double eps = 1e-5, offset = 0;
  ops::AttentionOptions attention;
  Activation act = ops::act::silu;
  RouteRule route;
  int64_t experts = 0;

  static Family of(const Json& config, const std::string& stack, int64_t layer);
};

struct Compared {
  std::string what;
  Distance distance;
};

struct LayerChoice {
  std::filesystem::path folder;
  std::string stack;  // "encoder", "decoder", or empty where there is only one
  int64_t layer = 0;
  Json config_patch;  // what config.json says instead, to see that it matters
};
// Everything the golden recorded of this layer, against what we compute from the layer's recorded input.
std::vector<Compared> compare_layer(const LayerChoice& choice, const Kernels& kernels);

}  // namespace qkv::test
