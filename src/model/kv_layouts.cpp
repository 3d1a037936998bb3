#include "model/kv_layouts.h"

namespace qkv {
namespace {

KvLayout layout_of(const AttentionSpec& a) {
  return {.kv_heads = a.kv_heads, .width = a.width, .value_width = a.value_width, .window = a.reach()};
}

}  // namespace

std::vector<KvLayout> kv_layouts(const ModelSpec& spec) {
  std::vector<KvLayout> layers;
  for (const LayerSpec& layer : spec.decoder.layers) layers.push_back(layout_of(layer.attention));
  return layers;
}

std::vector<KvLayout> source_layouts(const ModelSpec& spec) {
  std::vector<KvLayout> layers;
  for (const LayerSpec& layer : spec.decoder.layers) {
    if (layer.cross) layers.push_back(layout_of(*layer.cross));
  }
  return layers;
}

}  // namespace qkv
