#include "inspect/look/story.h"

#include <cmath>

namespace qkv {
namespace {

std::span<const float> part(const std::vector<float>& all, int64_t at, int64_t width) {
  return std::span(all).subspan(static_cast<size_t>(at * width), static_cast<size_t>(width));
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

HeadStory story_of_head(const AttentionSpec& spec, const SeenAttention& a, int64_t row, const HeadId& head) {
  const std::span<const float> q = part(a.q_at, head.head, a.width), z = part(a.z_at, head.head, a.value_width),
                               probs = part(a.probs_at, head.head, a.keys),
                               scores = part(a.scores_at, head.head, a.keys);
  HeadStory story{
      .head = head,
      .q = {q.begin(), q.end()},
      .scale = spec.scale.value_or(1 / std::sqrt(static_cast<double>(spec.width))),
      .z_norm = norm_of(z),
      .out_norm = static_cast<double>(a.out_norm[static_cast<size_t>((row - a.rows.first) * a.heads + head.head)])};
  double all = 0;
  for (size_t j = 0; j < probs.size(); ++j) {
    all += static_cast<double>(probs[j]);
    story.other_keys += std::isfinite(scores[j]) ? 1 : 0;
  }
  story.nowhere = std::max(1 - all, 0.0);
  story.others = all;
  for (const TopKey& top : a.top_of(row, head.head)) {
    if (top.key < 0) break;
    const auto key = static_cast<size_t>(top.key);
    const int64_t of_key = top.key * a.kv_heads + kv_head_of(spec, head.head);
    story.matches.push_back({.key = top.key,
                             .qk = dot(q, part(a.k, of_key, a.width)),
                             .score = static_cast<double>(scores[key]),
                             .share = static_cast<double>(probs[key]),
                             .value_norm = static_cast<double>(
                                 a.value_norm[key * static_cast<size_t>(a.heads) + static_cast<size_t>(head.head)])});
    story.others -= story.matches.back().share;
    --story.other_keys;
  }
  story.others = std::max(story.others, 0.0);
  return story;
}

}  // namespace

std::vector<LayerStory> story_of(const ModelSpec& spec, const Looked& seen) {
  std::vector<LayerStory> stories;
  for (size_t l = 0; l < seen.layers.size(); ++l) {
    LayerStory layer{.layer = static_cast<int64_t>(l), .seen = &seen.layers[l]};
    for (const SeenAttention& a : seen.attentions) {
      if (a.place.layer != layer.layer || a.q_at.empty()) continue;
      AttentionStory attention{.place = a.place, .concat = a.z_at, .out = a.out_at};
      for (int64_t h = 0; h < a.heads; ++h) {
        const HeadId head{a.place.stack, a.place.layer, static_cast<int16_t>(h)};
        attention.heads.push_back(story_of_head(attention_at(spec, a.place), a, seen.token, head));
      }
      layer.attentions.push_back(std::move(attention));
    }
    stories.push_back(std::move(layer));
  }
  return stories;
}

}  // namespace qkv
