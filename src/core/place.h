// Names of the points inside a model: which tensor (Site) of which layer (Place).
#pragma once

#include <cstdint>

namespace qkv {

enum class Site : uint8_t {
  embed,
  resid_pre,
  resid_mid,
  resid_post,
  attn_q,       // [N, H, D] as multiplied: after norm and rotary
  attn_k,       // [M, G, D]
  attn_v,       // [M, G, E]
  attn_scores,  // [rows, H, S] input of the softmax
  attn_probs,   // [rows, H, S] its output
  attn_z,       // [N, H, E] output of each head, before W_O
  attn_out,
  attn_lse,  // [N, H]
  mlp_pre,
  mlp_post,
  mlp_out,
  route_logits,
  route_ids,
  route_weights,
  final,
  logits,
};
const char* name_of(Site site);

enum class Stack : uint8_t { decoder, encoder, cross };

struct Place {
  Stack stack = Stack::decoder;
  int16_t layer = 0;
};

}  // namespace qkv
