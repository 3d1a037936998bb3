// The facts of a model that a report shows beside its name.
#include "inspect/report/look_report.h"
#include "model/weight_list.h"

namespace qkv {
namespace {

const char* positions_of(const StackSpec& stack) {
  const AttentionSpec& attention = stack.layers.front().attention;
  if (attention.rope) return "rope";
  if (attention.relative) return "relative";
  if (attention.alibi != 0) return "alibi";
  if (stack.positions.kind == PositionSpec::Kind::learned) return "learned";
  return stack.positions.kind == PositionSpec::Kind::sinusoidal ? "sinusoidal" : "none";
}

}  // namespace

Json facts_json(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  const LayerSpec& layer = stack.layers.front();
  int64_t parameters = 0, experts = 0, visited = 0, feed = 0;
  for (const WeightSpec& weight : weight_list(spec)) parameters += weight.shape.count();
  for (const LayerSpec& each : stack.layers) {
    feed = std::max(feed, each.feed.width);
    if (!each.feed.experts) continue;
    experts = std::max(experts, each.feed.experts->count);
    visited = std::max(visited, each.feed.experts->rule.top_k);
    feed = std::max(feed, each.feed.experts->width);
  }
  return {{"kind", name_of(spec.kind)},
          {"family", spec.family},
          {"layers", stack.layers.size()},
          {"encoder_layers", spec.has_source() ? spec.encoder.layers.size() : 0},
          {"heads", layer.attention.heads},
          {"kv_heads", layer.attention.kv_heads},
          {"width", spec.width},
          {"head_width", layer.attention.width},
          {"ffn", feed},
          {"gated", layer.feed.gated},
          {"experts", experts},
          {"experts_per_token", visited},
          {"vocabulary", spec.vocabulary},
          {"context", spec.context},
          {"parameters", parameters},
          {"norm", layer.norm.kind == NormSpec::Kind::rms ? "rms_norm" : "layer_norm"},
          {"positions", positions_of(stack)},
          {"tied", spec.head.tied}};
}

}  // namespace qkv
