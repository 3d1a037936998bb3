// SmolLM 3: Llama with every fourth layer without rotary positions.
#include "model/families/all.h"

namespace qkv::families {
namespace {

ModelSpec smollm3_spec(const Config& c) {
  ModelSpec s = llama_like(c);
  s.head.tied = c.flag({"tie_word_embeddings"}, true);
  const auto layers = static_cast<int64_t>(s.decoder.layers.size());
  const std::vector<bool> turns = read_rope_layers(c, layers, 4);
  const std::vector<bool> sliding =
      read_used_windows(c, [&](int64_t layer) { return !turns[static_cast<size_t>(layer)]; });
  for (size_t i = 0; i < s.decoder.layers.size(); ++i) {
    AttentionSpec& a = s.decoder.layers[i].attention;
    if (!turns[i]) a.rope.reset();
    if (sliding[i]) a.window = c.whole({"sliding_window"}, 0);
  }
  return s;
}

}  // namespace

const Family smollm3{.name = "smollm3",
                     .architecture = "SmolLM3ForCausalLM",
                     .known_as = "SmolLM3 3B",
                     .spec = smollm3_spec,
                     .names = llama_like_names,
                     .defaults = R"({"rope_theta": 2000000})"};

}  // namespace qkv::families
