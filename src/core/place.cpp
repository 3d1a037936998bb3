#include "core/place.h"

namespace qkv {

const char* name_of(Site site) {
  switch (site) {
    case Site::embed:
      return "embed";
    case Site::resid_pre:
      return "resid.pre";
    case Site::resid_mid:
      return "resid.mid";
    case Site::resid_post:
      return "resid.post";
    case Site::attn_q:
      return "attn.q";
    case Site::attn_k:
      return "attn.k";
    case Site::attn_v:
      return "attn.v";
    case Site::attn_scores:
      return "attn.scores";
    case Site::attn_probs:
      return "attn.probs";
    case Site::attn_z:
      return "attn.z";
    case Site::attn_out:
      return "attn.out";
    case Site::attn_lse:
      return "attn.lse";
    case Site::mlp_pre:
      return "mlp.pre";
    case Site::mlp_post:
      return "mlp.post";
    case Site::mlp_out:
      return "mlp.out";
    case Site::route_logits:
      return "route.logits";
    case Site::route_ids:
      return "route.ids";
    case Site::route_weights:
      return "route.weights";
    case Site::final:
      return "final";
    case Site::logits:
      return "logits";
  }
  return "?";
}

}  // namespace qkv
