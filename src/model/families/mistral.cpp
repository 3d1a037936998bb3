// Mistral: Llama with a sliding window.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec mistral_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  for (LayerSpec& layer : s.decoder.layers) layer.attention.window = c.whole({"sliding_window"}, 0);
  return s;
}

}  // namespace

const Family mistral{.name = "mistral",
                     .architecture = "MistralForCausalLM",
                     .known_as = "Mistral 7B, Nemo, Small",
                     .spec = mistral_spec,
                     .names = llama_like_names,
                     .defaults = R"({"sliding_window": 4096})"};

}  // namespace qkv::families
