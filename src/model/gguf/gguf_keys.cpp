#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "model/gguf/gguf_config.h"

namespace qkv {
namespace {

class Keys {
 public:
  Keys(GgufMetadata& out, std::string architecture) : out_(out), prefix_(std::move(architecture) + ".") {}
  void whole(const std::string& key, int64_t value) {
    out_.add_u32(prefix_ + key, narrow<uint32_t>(value, "GGUF key " + prefix_ + key));
  }
  void number(const std::string& key, double value) { out_.add_f32(prefix_ + key, static_cast<float>(value)); }
  void text(const std::string& key, const std::string& value) { out_.add_text(prefix_ + key, value); }
  void flag(const std::string& key, bool value) { out_.add_flag(prefix_ + key, value); }

 private:
  GgufMetadata& out_;
  std::string prefix_;
};

// The first layer with (or without) a sliding window; layer 0 if there is none.
const AttentionSpec& first_attention(const StackSpec& stack, bool sliding) {
  for (const LayerSpec& layer : stack.layers) {
    if ((layer.attention.window > 0) == sliding) return layer.attention;
  }
  return stack.layers.front().attention;
}

void add_rope(Keys& keys, const ModelSpec& spec, const RopeSpec& rope) {
  keys.whole("rope.dimension_count", rope.width);
  keys.number("rope.freq_base", rope.base);
  const ops::RopeScaling& s = rope.scaling;
  using Kind = ops::RopeScaling::Kind;
  switch (s.kind) {
    case Kind::plain:
      if (spec.family == "phi3") keys.whole("rope.scaling.original_context_length", spec.context);
      break;
    case Kind::llama3:  // in rope_freqs.weight
      keys.whole("rope.scaling.original_context_length", static_cast<int64_t>(s.original_context));
      break;
    case Kind::linear:
      keys.text("rope.scaling.type", "linear");
      keys.number("rope.scaling.factor", s.factor);
      break;
    case Kind::yarn:
      keys.text("rope.scaling.type", "yarn");
      keys.number("rope.scaling.factor", s.factor);
      keys.whole("rope.scaling.original_context_length", static_cast<int64_t>(s.original_context));
      keys.number("rope.scaling.yarn_beta_fast", s.beta_fast);
      keys.number("rope.scaling.yarn_beta_slow", s.beta_slow);
      if (s.attention_factor > 0) keys.number("rope.scaling.yarn_attn_factor", s.attention_factor);
      if (s.mscale_all_dim > 0) keys.number("rope.scaling.yarn_log_multiplier", 0.1 * s.mscale_all_dim);
      break;
    case Kind::longrope: {
      const double scale = static_cast<double>(spec.context) / s.original_context;
      const double formula = scale > 1 ? std::sqrt(1 + std::log(scale) / std::log(s.original_context)) : 1;
      keys.text("rope.scaling.type", "longrope");
      keys.whole("rope.scaling.original_context_length", static_cast<int64_t>(s.original_context));
      keys.number("rope.scaling.attn_factor", s.attention_factor > 0 ? s.attention_factor : formula);
      break;
    }
  }
}

void add_experts(Keys& keys, const StackSpec& stack) {
  int64_t dense = 0;
  while (dense < static_cast<int64_t>(stack.layers.size()) && !stack.layers[static_cast<size_t>(dense)].feed.experts) {
    ++dense;
  }
  if (dense == static_cast<int64_t>(stack.layers.size())) return;
  const ExpertsSpec& e = *stack.layers[static_cast<size_t>(dense)].feed.experts;
  keys.whole("expert_count", e.count);
  keys.whole("expert_used_count", e.rule.top_k);
  keys.whole("expert_feed_forward_length", e.width);
  if (e.shared_gate) keys.whole("expert_shared_feed_forward_length", e.shared_width);
  if (!e.rule.sigmoid) return;
  keys.whole("leading_dense_block_count", dense);
  keys.whole("expert_shared_count", e.shared_width / e.width);
  keys.number("expert_weights_scale", e.rule.scaling);
  keys.flag("expert_weights_norm", e.rule.renormalise);
  keys.whole("expert_gating_func", e.rule.sigmoid ? 2 : 1);
  keys.whole("expert_group_count", e.rule.groups);
  keys.whole("expert_group_used_count", e.rule.top_groups);
}

void add_family_keys(Keys& keys, const ModelSpec& spec, const AttentionSpec& full, const AttentionSpec& slides) {
  const std::string& family = spec.family;
  if (slides.window > 0 || family == "phi3") keys.whole("attention.sliding_window", slides.window);  // 0: Phi-4
  if (family == "gemma3_text" && slides.window > 0) keys.number("rope.freq_base_swa", slides.rope->base);
  if (full.softcap > 0) keys.number("attn_logit_softcapping", full.softcap);
  if (spec.head.softcap > 0) keys.number("final_logit_softcapping", spec.head.softcap);
  if (family == "granite") {
    keys.number("attention.scale", *full.scale);
    keys.number("embedding_scale", spec.decoder.embedding_factor);
    keys.number("residual_scale", spec.decoder.layers.front().branch_factor);
    keys.number("logit_scale", 1 / spec.head.factor);
  }
  if (family == "cohere2") keys.number("logit_scale", spec.head.factor);
  if (family == "stablelm") {
    keys.flag("use_parallel_residual", spec.decoder.layers.front().place == NormPlace::shared);
  }
  if (family == "gpt_neox") {
    keys.flag("use_parallel_residual", spec.decoder.layers.front().place == NormPlace::parallel);
  }
  if (full.latent) {
    if (full.latent->q_rank > 0) keys.whole("attention.q_lora_rank", full.latent->q_rank);
    keys.whole("attention.kv_lora_rank", full.latent->kv_rank);
  }
  if (family == "t5") {
    keys.whole("decoder_block_count", static_cast<int64_t>(spec.decoder.layers.size()));
    keys.whole("attention.relative_buckets_count", full.relative->buckets);
    keys.whole("decoder_start_token_id", spec.tokens.decoder_start.value_or(0));
  }
}

}  // namespace

void add_model_keys(GgufMetadata& metadata, const ModelSpec& spec) {
  constexpr int64_t kContextOfT5 = 512;  // of the published models; not in their configs
  constexpr int64_t kContextOfBloom = 2048;
  const int64_t unsaid = spec.family == "t5" ? kContextOfT5 : spec.family == "bloom" ? kContextOfBloom : 0;
  const int64_t context = spec.context > 0 ? spec.context : unsaid;
  QKV_CHECK(context > 0, "GGUF needs to know the model's context, which its config does not say",
            Hint("add max_position_embeddings to config.json"));
  const StackSpec& first = spec.has_source() ? spec.encoder : spec.decoder;
  const AttentionSpec &full = first_attention(first, false), &slides = first_attention(first, true);
  Keys keys(metadata, gguf_architecture(spec));
  keys.whole("vocab_size", spec.vocabulary);
  keys.whole("context_length", context);
  keys.whole("embedding_length", spec.width);
  keys.whole("block_count", static_cast<int64_t>(first.layers.size()));
  keys.whole("feed_forward_length", first.layers.front().feed.width);
  keys.whole("attention.head_count", full.heads);
  keys.whole("attention.head_count_kv", full.kv_heads);
  keys.whole("attention.key_length", full.width);
  keys.whole("attention.value_length", full.value_width);
  const bool rms = spec.norm.kind == NormSpec::Kind::rms;
  keys.number(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", spec.norm.eps);
  if (spec.family == "t5") keys.number("attention.layer_norm_epsilon", spec.norm.eps);
  if (const auto& rope = full.rope ? full.rope : slides.rope) add_rope(keys, spec, *rope);
  add_experts(keys, first);
  add_family_keys(keys, spec, full, slides);
}

}  // namespace qkv
