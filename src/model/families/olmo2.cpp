// OLMo 2: Llama with norms on the sublayers' outputs, and on the joined heads of q and k.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec olmo2_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  for (LayerSpec& layer : s.decoder.layers) {
    layer.place = NormPlace::branch;
    layer.attention.qk_norm = AttentionSpec::QkNorm::whole;
  }
  return s;
}

}  // namespace

const Family olmo2{.name = "olmo2",
                   .architecture = "Olmo2ForCausalLM",
                   .known_as = "OLMo 2 1B to 32B",
                   .spec = olmo2_spec,
                   .names = llama_like_names,
                   .defaults = R"({"rms_norm_eps": 1e-5})"};

}  // namespace qkv::families
